package shutdown

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stayput/stayput/controller/internal/fixture"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

// TestProcessShutdownWritesLittle checks the number of writes, because a process that stops has only seconds, even in a
// large cluster. It marks one ReplicaSet for each update.
func TestProcessShutdownWritesLittle(t *testing.T) {
	const workloads = 40
	c := newCluster(t)
	for i := range workloads - 1 {
		c.copyOfWeb(fmt.Sprintf("web-%d", i))
	}
	var writes atomic.Int64
	counting := interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			writes.Add(1)
			return to.Patch(ctx, object, patch, options...)
		},
	})
	if err := OfProcess(t.Context(), counting, counting, observe.Reader{Reader: counting}); err != nil {
		t.Fatal(err)
	}
	if nudged := c.nudged(); nudged != workloads {
		t.Errorf("%d of %d native controllers got a nudge", nudged, workloads)
	}
	if writes.Load() > workloads {
		t.Errorf("wrote %d times", writes.Load())
	}
}

// TestProcessShutdownGoesOnAfterErrors has one namespace that cannot be read, and one object in another namespace that
// cannot be written.
func TestProcessShutdownGoesOnAfterErrors(t *testing.T) {
	c := newCluster(t)
	c.copyOfWeb("another")
	locked := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "locked", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}
	c.Add(locked)
	c.Refuse = func(object client.Object, _ string) error {
		if object.GetName() == "another-new" {
			return apierrors.NewInternalError(fixture.ErrText("no"))
		}
		return nil
	}
	live := interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if where := (&client.ListOptions{}).ApplyOptions(options); where.Namespace == locked.Name {
				return apierrors.NewInternalError(fixture.ErrText("not there"))
			}
			return from.List(ctx, list, options...)
		},
	})
	err := OfProcess(t.Context(), live, live, observe.Reader{Reader: live})
	if err == nil || !strings.Contains(err.Error(), "no") || !strings.Contains(err.Error(), "not there") {
		t.Errorf("error %v, want both", err)
	}
	if c.ReplicaSet("web-new").Labels[inplace.LabelRenewed] == "" {
		t.Error("the native controller of another update got no nudge")
	}
}

// copyOfWeb adds another Deployment in the same state, with one pod on a node of its own.
func (c *cluster) copyOfWeb(name string) {
	c.T.Helper()
	rename := strings.NewReplacer(`"web"`, strconv.Quote(name), "web-", name+"-")
	pod := fixture.Decode[corev1.Pod](c.T, rename.Replace(fmt.Sprintf(fixture.PodJSON, "web-old-0")))
	pod.Spec.NodeName = "node-of-" + name
	for _, object := range []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}},
		fixture.Decode[apps.Deployment](c.T, rename.Replace(fixture.DeploymentJSON)),
		fixture.Decode[apps.ReplicaSet](c.T, rename.Replace(
			fmt.Sprintf(fixture.ReplicaSetJSON, "web-old", "old", "10:00", 1, "app:1", "old", 1))),
		fixture.Decode[apps.ReplicaSet](c.T, rename.Replace(
			fmt.Sprintf(fixture.ReplicaSetJSON, "web-new", "new", "11:00", 0, "app:2", "new", 0))),
		pod,
	} {
		c.Add(object)
	}
}

// nudged returns how many native controllers got a nudge.
func (c *cluster) nudged() int {
	c.T.Helper()
	list := &apps.ReplicaSetList{}
	if err := c.List(c.T.Context(), list, client.HasLabels{inplace.LabelRenewed}); err != nil {
		c.T.Fatal(err)
	}
	return len(list.Items)
}
