package webhook

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/readiness"
)

// mutatePodStatus leaves a pod out of service that its kubelet would put back too early (readiness.StoredReady). It reads nothing from the
// cache or the API server: what is stored follows from the report alone.
func mutatePodStatus(_ context.Context, req admission.Request) (answer, error) {
	if req.Operation != admissionv1.Update || req.SubResource != "status" {
		return allow(), nil
	}
	sent, err := decodePod(req, req.Object, "status")
	if err != nil {
		return allow(), err
	}
	old, err := decodePod(req, req.OldObject)
	if err != nil || !readiness.ByKubelet(req.UserInfo.Username, req.UserInfo.Groups, sent.Spec.NodeName) {
		return allow(), err
	}
	ready := readiness.StoredReady(old, sent, time.Now())
	if ready == nil {
		return allow(), nil
	}
	operations := readiness.SetReady(sent, *ready)
	if len(operations) == 0 {
		return allow(), nil
	}
	return patch(corrected, operations), nil
}
