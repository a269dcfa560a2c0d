package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/internal/observe"
)

// validatePod holds deletions by which native controllers would replace pods that are updated in place.
func (h Handlers) validatePod(ctx context.Context, req admission.Request) (answer, error) {
	pod, err := decodePod(req, req.OldObject, "spec")
	if err != nil {
		return allow(), err
	}
	refuse, err := h.refusePod(ctx, kindBy(req), pod)
	return deletion(req, refuse), err
}

// validateRevision keeps revisionHistoryLimit from deleting the ControllerRevision of a partially patched pod. Native controllers take any
// refusal as an error (cleanupHistory in pkg/controller/daemon/update.go, truncateHistory in
// pkg/controller/statefulset/stateful_set_control.go): all else is done by then, and they retry by themselves.
func (h Handlers) validateRevision(ctx context.Context, req admission.Request) (answer, error) {
	revision, err := decode[apps.ControllerRevision](req.OldObject)
	if err != nil {
		return allow(), err
	}
	revision.Namespace = req.Namespace
	stays, err := h.either(func(reader observe.Reader) (bool, error) { return h.keepsRevision(ctx, kindBy(req), reader, revision) })
	refuse, err := refusal(conflict).ifHeld(stays, err)
	return deletion(req, refuse), err
}

// throttleDeletion delays the answer to the native controller of the pod while its deletion is held.
func (h Handlers) throttleDeletion(ctx context.Context, req admission.Request) (answer, error) {
	pod, err := decodePod(req, req.OldObject, "spec")
	if err != nil || metav1.GetControllerOfNoCopy(pod) == nil || deployments.MayBeDeleted(pod) {
		return allow(), err
	}
	h.throttled[req.UserInfo.Username].wait(ctx, ownerOf(pod), h.futile(kindBy(req), pod))
	return allow(), nil
}

// ownerOf returns the namespace and name of the object that controls the pod.
func ownerOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: metav1.GetControllerOfNoCopy(pod).Name}
}
