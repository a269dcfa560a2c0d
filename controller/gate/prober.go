package gate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stayput/stayput/controller/write"

	"gomodules.xyz/jsonpatch/v2"
	authorizationv1 "k8s.io/api/authorization/v1"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/inplace/readiness"
)

const (
	probeEvery = 30 * time.Second
	// probeAgain is shorter: without proof, new pods get no gate and the replica is not ready.
	probeAgain = 5 * time.Second
	// probeLasts is long enough for one probe that takes long, but not for one that fails.
	probeLasts = 75 * time.Second
	// probePods bounds how many pods a probe tries. Each is in another namespace, because the policy of one namespace says
	// nothing about the others.
	probePods = 3
)

// Prober finds out whether this process could open the gate of a pod that is created now. A gate that no process can
// open keeps its pod from serving for ever. So a webhook adds gates only if its process has just proved that it can
// open them.
type Prober struct {
	Client client.Client
	Cache  cache.Cache
	// proved is the time of the last proof, in Unix nanoseconds; 0 if the last probe failed.
	proved atomic.Int64
}

// Ready reports whether pods are watched and a write of a pod status succeeded in the last 75 s.
func (p *Prober) Ready() bool {
	return time.Since(time.Unix(0, p.proved.Load())) < probeLasts
}

// NeedLeaderElection returns false, because webhooks run on every replica.
func (p *Prober) NeedLeaderElection() bool { return false }

// Start waits until pods are watched. Then it probes every 30 s, or 5 s after a failure, until the context ends.
func (p *Prober) Start(ctx context.Context) error {
	if _, err := p.Cache.GetInformer(ctx, &corev1.Pod{}); err != nil {
		return fmt.Errorf("waiting for the pod informer: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(p.probe(ctx)):
		}
	}
}

// wrote notes that a write of a pod status succeeded.
func (p *Prober) wrote(now time.Time) { p.proved.Store(now.UnixNano()) }

// probe tries a write, notes the result for Ready, and returns when to probe again.
func (p *Prober) probe(ctx context.Context) time.Duration {
	now := time.Now()
	if err := p.tryWrite(ctx); err != nil {
		p.proved.Store(0)
		log.FromContext(ctx).Error(err, "Pod status cannot be written: no readiness gates are added to new pods until it can")
		return probeAgain
	}
	p.wrote(now)
	return probeEvery
}

// tryWrite makes a dry run on pods with Stayput's gate, for which the API server checks all that it checks for a real
// write. If there is no such pod, it only asks for the permission.
func (p *Prober) tryWrite(ctx context.Context) error {
	pods, err := p.gatedPods(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, pod := range pods {
		err := p.dryRun(ctx, pod)
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return p.mayWrite(ctx)
}

// gatedPods returns up to probePods live pods with Stayput's gate, no two in one namespace.
func (p *Prober) gatedPods(ctx context.Context) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := p.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	taken := sets.New[string]()
	for i := range list.Items {
		pod := &list.Items[i]
		if len(pods) < probePods && pod.DeletionTimestamp == nil && readiness.Gated(pod) && !taken.Has(pod.Namespace) {
			pods = append(pods, pod)
			taken.Insert(pod.Namespace)
		}
	}
	return pods, nil
}

// dryRun makes a dry run of a patch that changes nothing in the pod's status.
func (p *Prober) dryRun(ctx context.Context, pod *corev1.Pod) error {
	patched := &corev1.Pod{}
	patched.Namespace, patched.Name = pod.Namespace, pod.Name
	same := write.Operations{jsonpatch.NewOperation("test", "/metadata/uid", pod.UID)}
	return p.Client.Status().Patch(ctx, patched, same, client.DryRunAll, write.FieldOwner)
}

// mayWrite asks the API server whether Stayput may patch the status of pods.
func (p *Prober) mayWrite(ctx context.Context) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "patch", Resource: "pods", Subresource: "status"},
	}}
	if err := p.Client.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("no permission to patch pods/status in all namespaces: %s", review.Status.Reason)
	}
	return nil
}
