package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
)

// mutatePodStatus stores Ready and Stayput's gate as readiness.StoredConditions says, in clusters whose API server cannot do so by
// itself. It reads nothing from the cache or the API server: what is stored follows from the write alone.
func (h podGates) mutatePodStatus(_ context.Context, req admission.Request) (answer, error) {
	if req.Operation != admissionv1.Update || req.SubResource != "status" {
		return allow(), nil
	}
	sent, err := decodePod(req, req.Object, "status")
	if err != nil {
		return allow(), err
	}
	old, err := decodePod(req, req.OldObject)
	if err != nil {
		return allow(), err
	}
	writer := readiness.WriterOf(h.user, req.UserInfo.Username, req.UserInfo.Groups, sent.Spec.NodeName)
	operations := patches.SetConditions(sent.Status.Conditions, readiness.StoredConditions(old, sent, writer))
	if len(operations) == 0 {
		return allow(), nil
	}
	return patch(corrected, operations), nil
}
