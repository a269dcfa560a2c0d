package gate

import (
	"context"
	"time"

	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/observe"
)

// patience is the age of a pod up to which only the leader opens its gate, so that not every replica patches it.
const patience = time.Second

// Gates opens the readiness gates of new pods where the API server does not open them itself (manifests/ready). It runs
// on every replica, so that no pod depends on a single process.
type Gates struct {
	Client  client.Client
	Cached  observe.Reader
	Elected <-chan struct{}
	Prober  *Prober
}

// Reconcile opens the gate of one pod if it was never opened. The patch has the pod's resourceVersion as a guard. So a
// gate that the leader has closed meanwhile stays closed.
func (g *Gates) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := g.Cached.Get(ctx, request.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := time.Now()
	if !AwaitsGate(pod) {
		return reconcile.Result{}, nil
	}
	if wait := patience - now.Sub(pod.CreationTimestamp.Time); wait > 0 && !g.leads() {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{}, g.open(ctx, pod, now)
}

// open opens the gate. If the pod has a newer version, the event of that version makes Reconcile try again.
func (g *Gates) open(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	patched := &corev1.Pod{}
	patched.Namespace, patched.Name = pod.Namespace, pod.Name
	err := g.Client.Status().Patch(ctx, patched,
		write.Operations(podstate.OpenGate(pod, g.Cached.IsUnreachable(ctx, pod), now).Operations), write.FieldOwner)
	if write.IsOutdated(err) {
		return nil
	}
	if err == nil {
		g.Prober.wrote(now)
	}
	return err
}

func (g *Gates) leads() bool {
	select {
	case <-g.Elected:
		return true
	default:
		return false
	}
}

// AwaitsGate reports whether a pod that is not being deleted has Stayput's gate, its kubelet has reported, and the gate
// was never opened.
func AwaitsGate(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && pod.DeletionTimestamp == nil && readiness.AwaitsGate(pod)
}
