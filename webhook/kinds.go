package webhook

import (
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// kinds are the kinds of workloads whose edits and native writes the webhooks decide on.
var kinds = []kind{deploymentKind, daemonSetKind, statefulSetKind}

// kindBy returns the kind of workload whose native controller deletes the object; nil if another client does.
func kindBy(req admission.Request) *kind {
	for _, kind := range kinds {
		if by(req, kind.podsBy, admissionv1.Delete) {
			return &kind
		}
	}
	return nil
}

func throttledByUser() map[string]*throttled {
	by := map[string]*throttled{deploymentController: newThrottled(throttling{throttle, 1})}
	for _, kind := range kinds {
		by[kind.podsBy] = newThrottled(kind.throttle)
	}
	return by
}
