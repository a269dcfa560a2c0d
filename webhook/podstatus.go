package webhook

import (
	"context"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
)

// mutatePodStatus has Ready and our gate stored as inplace.StoredConditions says, where the API server cannot do so by itself. Neither cache nor
// API server is asked about the pod: what is stored follows from the write alone.
func (h Handlers) mutatePodStatus(_ context.Context, req admission.Request) (answer, error) {
	if req.Operation != admissionv1.Update || req.SubResource != "status" {
		return allow(), nil
	}
	sent, err := decode[corev1.Pod](req.Object)
	if err != nil {
		return allow(), err
	}
	old, err := decode[corev1.Pod](req.OldObject)
	if err != nil {
		return allow(), err
	}
	writer := inplace.WriterOf(inplace.UserIn(h.Hold.Namespace), req.UserInfo.Username, req.UserInfo.Groups, sent.Spec.NodeName)
	operations := setConditions(sent.Status.Conditions, inplace.StoredConditions(old, sent, writer))
	if len(operations) == 0 {
		return allow(), nil
	}
	return patch(corrected, operations), nil
}

// setConditions returns the operations that make the conditions of a pod's status others, in the same order, with new ones at the end.
func setConditions(sent, stored []corev1.PodCondition) []jsonpatch.Operation {
	if len(sent) == 0 && len(stored) > 0 {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/status/conditions", stored)}
	}
	var operations []jsonpatch.Operation
	for i, condition := range stored {
		switch {
		case i >= len(sent):
			operations = append(operations, jsonpatch.NewOperation("add", "/status/conditions/-", condition))
		case !equality.Semantic.DeepEqual(sent[i], condition):
			operations = append(operations, jsonpatch.NewOperation("replace", fmt.Sprintf("/status/conditions/%d", i), condition))
		}
	}
	return operations
}
