package controller

import (
	"context"
	"time"

	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/observe"
)

// orphanEvery is how often the workload of a pod is looked for. For some pods no event tells that they became orphans:
// when a Deployment is deleted with --cascade=orphan, only a ReplicaSet changes.
const orphanEvery = 5 * time.Second

// orphans reconciles pods whose workload was deleted without them in the middle of an update. No plan
// will ever end their update. It runs on the leader, because this leader or an earlier one has closed their gates.
type orphans struct {
	// cached reads the cache, live the API server itself.
	cached, live observe.Reader
	writer       write.Writer
}

// Reconcile does what is left to do for one pod if the pod is an orphan. The write has the pod's resourceVersion as a
// guard. So a pod that a workload has adopted meanwhile is left to that workload.
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
		return reconcile.Result{RequeueAfter: orphanEvery}, nil
	}
	step, may, wait := podstate.Orphan(pod, s.cached.IsUnreachable(ctx, pod), time.Now())
	if !may {
		return reconcile.Result{RequeueAfter: wait}, nil // 0: the kubelet's next report makes an event
	}
	_, err := s.writer.Carry(ctx, step)
	if write.IsOutdated(err) {
		return reconcile.Result{}, nil // and so does the newer version of the pod
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

// mayBeOrphan reports whether something is left to do for a pod if it becomes an orphan.
func mayBeOrphan(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && podstate.MayBeOrphan(pod)
}
