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

// orphanEvery is how often it is asked whose a pod is. No event tells that of every pod: when a Deployment is deleted with
// --cascade=orphan, it is a ReplicaSet that changes.
const orphanEvery = 5 * time.Second

// orphans looks after pods in the middle of an update whose Deployment or DaemonSet has gone without them: nobody will end it. It runs on the
// leader, which has closed their gates, or follows whoever has.
type orphans struct {
	// cached reads the cache, live the API server itself.
	cached, live observe.Reader
	writer       write.Writer
}

// Reconcile does what is left to do for one pod if it has become nobody's. The write names the pod's resourceVersion, so that one which
// has a workload again meanwhile is left to that.
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
		return reconcile.Result{RequeueAfter: wait}, nil // 0: the kubelet's next report brings us back
	}
	_, err := s.writer.Carry(ctx, step)
	if write.IsOutdated(err) {
		return reconcile.Result{}, nil // and so does the newer version
	}
	return reconcile.Result{}, err
}

// isOrphan asks the API server only about a pod whose workload the cache does not have.
func (s *orphans) isOrphan(ctx context.Context, pod *corev1.Pod) (bool, error) {
	for _, reader := range []observe.Reader{s.cached, s.live} {
		if workload, err := reader.WorkloadOf(ctx, pod); workload != nil || err != nil {
			return false, err
		}
	}
	return true, nil
}

// mayBeOrphan reports whether something is left to do for a pod if its workload goes without it.
func mayBeOrphan(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && podstate.MayBeOrphan(pod)
}
