package controller

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
)

// looks counts how often a Deployment is read.
type looks struct {
	fixture.Frozen
	count int
}

func (l *looks) Rollout(ctx context.Context, key types.NamespacedName) (*deployments.Rollout, error) {
	l.count++
	return l.Frozen.Rollout(ctx, key)
}

// withPods returns a cache with that many pods.
func (c *cluster) withPods(count int) *looks {
	c.T.Helper()
	seen := &looks{Frozen: c.Snapshot()}
	one := seen.Read.Seen.Pods[0]
	for i := len(seen.Read.Seen.Pods); i < count; i++ {
		pod := one.DeepCopy()
		pod.Name, pod.UID = fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("pod-%d", i))
		seen.Read.Seen.Pods = append(seen.Read.Seen.Pods, pod)
	}
	seen.Read.Deployment.Spec.Replicas = ptr.To(int32(count))
	for _, rs := range seen.Read.ReplicaSets {
		if rs.Name == "web-old" {
			rs.Spec.Replicas, rs.Status.Replicas = ptr.To(int32(count)), int32(count)
		}
	}
	return seen
}

// TestLargeWorkloadsAreLeftAloneAfterALook checks that a large workload is not planned again with each event of each
// pod.
func TestLargeWorkloadsAreLeftAloneAfterALook(t *testing.T) {
	for pods, want := range map[int]int{99: 3, 400: 1} {
		t.Run(fmt.Sprint(pods), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				seen := c.withPods(pods)
				r := c.reconciler(seen)
				for range 3 { // events
					c.reconcile(r)
				}
				if seen.count != want {
					t.Errorf("%d events made %d looks at %d pods, want %d", 3, seen.count, pods, want)
				}
				if want > 1 {
					return
				}
				again := c.reconcile(r).RequeueAfter
				if again <= 0 || again > steps.MinInterval(pods) {
					t.Fatalf("the next look comes after %s, want it within %s", again, steps.MinInterval(pods))
				}
				time.Sleep(again)
				if c.reconcile(r); seen.count != want+1 {
					t.Errorf("%d looks after the minimum interval, want %d", seen.count, want+1)
				}
			})
		})
	}
}

// TestNoIntervalIsKeptAfterAFailure checks that the queue alone decides when to try again after a failure. A minimum
// interval would make the queue forget how many failures there were.
func TestNoIntervalIsKeptAfterAFailure(t *testing.T) {
	c := newCluster(t)
	seen := c.withPods(400)
	r := c.reconciler(seen)
	r.live = func(context.Context, types.NamespacedName) (engine.Rollout, error) {
		return nil, fixture.ErrText("down")
	}
	for range 2 {
		if _, err := r.Reconcile(t.Context(), fixture.Request); err == nil {
			t.Error("no error, although the live reader failed")
		}
	}
	if seen.count != 2 {
		t.Errorf("%d looks, want one at each try", seen.count)
	}
}
