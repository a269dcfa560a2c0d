package controller

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/drain"
	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/internal/observe"
)

// cluster is an API server with an update in progress.
type cluster struct {
	*fixture.Cluster
	metrics *report.Metrics
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := fixture.New(t)
	return &cluster{c, report.NewMetrics(c.Registry)}
}

func draining(t *testing.T) *cluster {
	t.Helper()
	c := fixture.Draining(t)
	return &cluster{c, report.NewMetrics(c.Registry)}
}

// reconciler returns the Reconciler of a new process, which remembers nothing. It reads through the given reader, or
// the API server if that is nil.
func (c *cluster) reconciler(cached deploymentReader) *Reconciler {
	live := c.Observer()
	if cached == nil {
		cached = live
	}
	return &Reconciler{
		cached:     observe.SourceOf(cached.Rollout),
		live:       observe.SourceOf(live.WithoutNodes().Rollout),
		drains:     &drain.Drains{Cached: live, Live: live},
		namespaces: live,
		leadership: c.leadership(),
		hold:       c.hold(),
		writer:     c.writer(),
		Reporter:   report.New(observe.Deployments, c.Recorder, c.metrics),
	}
}

func (c *cluster) leadership() observe.Leadership {
	return observe.Leadership{Reader: c, Namespace: fixture.Fallbacks.Namespace, Identity: fixture.Leader}
}

func (c *cluster) hold() observe.Hold {
	return observe.Hold{Reader: c, Namespace: fixture.Fallbacks.Namespace}
}

func (c *cluster) reconcile(r *Reconciler) reconcile.Result {
	c.T.Helper()
	result, err := r.Reconcile(c.T.Context(), reconcile.Request{NamespacedName: fixture.Web})
	if err != nil {
		c.T.Fatal(err)
	}
	return result
}

// deploymentReader reads a Deployment with its ReplicaSets and pods; see observe.Reader.
type deploymentReader interface {
	Rollout(ctx context.Context, key types.NamespacedName) (*deployments.Rollout, error)
}

func (c *cluster) writer() write.Writer {
	return write.Writer{Client: c, Live: c, Fallbacks: fixture.Fallbacks}
}

// remembers reports whether the Reconciler remembers any workload.
func (r *Reconciler) remembers() bool {
	remembers := false
	r.memories.of.Range(func(_, _ any) bool {
		remembers = true
		return false
	})
	return remembers
}
