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
	// probeAgain is sooner: while the proof is missing, new pods get no gate and the replica is not ready.
	probeAgain = 5 * time.Second
	// probeLasts leaves room for one probe that takes long, not for one that fails.
	probeLasts = 75 * time.Second
	// probePods bounds the pods a probe tries, each of another namespace: the policy of one must not speak for the others.
	probePods = 3
)

// Prober finds out whether this process could open the gate of a pod born now. A gate that nobody can open keeps its pod from
// serving for ever, so gates are only promised by a process that has just shown it can keep the promise.
type Prober struct {
	Client client.Client
	Cache  cache.Cache
	// proved is the time of the last proof, in Unix nanoseconds; 0 if it failed.
	proved atomic.Int64
}

// Ready reports whether pods are watched and a pod status write succeeded in the last 75 s.
func (p *Prober) Ready() bool {
	return time.Since(time.Unix(0, p.proved.Load())) < probeLasts
}

// NeedLeaderElection is false: webhooks run on every replica.
func (p *Prober) NeedLeaderElection() bool { return false }

// Start waits until pods are watched, then probes every 30 s, after a failure every 5 s, until the context ends.
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

// wrote notes that a pod status write succeeded.
func (p *Prober) wrote(now time.Time) { p.proved.Store(now.UnixNano()) }

// probe tries a write, notes for Ready what came of it, and returns when to probe again.
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

// tryWrite makes a dry run on a gated pod, which asks everything that a real write asks; without such pods it asks for the
// permission.
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

// gatedPods returns a few live pods with our gate, no two of one namespace.
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

// dryRun makes a patch of the pod's status that changes nothing.
func (p *Prober) dryRun(ctx context.Context, pod *corev1.Pod) error {
	target := &corev1.Pod{}
	target.Namespace, target.Name = pod.Namespace, pod.Name
	same := write.Operations{jsonpatch.NewOperation("test", "/metadata/uid", pod.UID)}
	return p.Client.Status().Patch(ctx, target, same, client.DryRunAll, write.FieldOwner)
}

// mayWrite asks the API server whether we may patch the status of pods.
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
