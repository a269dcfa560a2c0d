package controller

import (
	"context"

	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// orphans deletes pre-pull pods whose workload was deleted without them in the middle of an update. No plan will ever do
// that. It runs on the leader, and looks for the workload again and again: for some no event tells that they became orphans.
// When a Deployment is deleted with --cascade=orphan, only a ReplicaSet changes.
type orphans struct {
	// cached reads the cache, live the API server itself.
	cached, live observe.Reader
	writer       write.Writer
}

// Reconcile deletes one pre-pull pod if it is an orphan.
func (s *orphans) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := s.cached.Get(ctx, request.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !mayBeOrphan(pod) {
		return reconcile.Result{}, nil
	}
	switch orphan, err := s.isOrphan(ctx, pod); {
	case err != nil:
		return reconcile.Result{}, err
	case !orphan:
		return reconcile.Result{RequeueAfter: inplace.LookAgain}, nil
	}
	_, err := s.writer.Carry(ctx, steps.DeletePrePullPod{Pod: pod, Why: "its workload is gone"})
	if write.IsOutdated(err) {
		return reconcile.Result{}, nil // the newer version of the pod makes an event
	}
	return reconcile.Result{}, err
}

// isOrphan reports whether the pod has no workload. It asks the API server only if the cache does not have the
// workload.
func (s *orphans) isOrphan(ctx context.Context, pod *corev1.Pod) (bool, error) {
	for _, reader := range []observe.Reader{s.cached, s.live} {
		if workload, err := reader.WorkloadOf(ctx, pod); workload != nil || err != nil {
			return false, err
		}
	}
	return true, nil
}

// mayBeOrphan reports whether the object is a pod that is to be deleted if it becomes an orphan.
func mayBeOrphan(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && podstate.MayBeOrphan(pod)
}
