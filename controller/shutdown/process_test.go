package shutdown

import (
	"context"
	"fmt"
	"slices"
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

// TestProcessShutdownAsksLittle checks the number of requests, because a process that stops has only seconds, even in a
// large cluster. It marks one ReplicaSet for each update. Before, it reads the marked revisions of each kind, the
// namespaces, and one list of each type in the one namespace with updates.
func TestProcessShutdownAsksLittle(t *testing.T) {
	const workloads = 300
	c := newCluster(t)
	for i := range workloads - 1 {
		c.copyOfWeb(fmt.Sprintf("web-%d", i))
	}
	asked := &requests{}
	counting := interceptor.NewClient(c.Client.(client.WithWatch), asked.funcs())
	if err := OfProcess(t.Context(), counting, observe.Reader{Reader: counting}); err != nil {
		t.Fatal(err)
	}
	if nudged := c.nudged(); nudged != workloads {
		t.Errorf("%d of %d native controllers got a nudge", nudged, workloads)
	}
	if reads := asked.reads.Load(); reads > 11 {
		t.Errorf("read %d times", reads)
	}
	if writes := asked.writes.Load(); writes > workloads {
		t.Errorf("wrote %d times", writes)
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
	err := OfProcess(t.Context(), live, observe.Reader{Reader: live})
	if err == nil || !strings.Contains(err.Error(), "no") || !strings.Contains(err.Error(), "not there") {
		t.Errorf("error %v, want both", err)
	}
	if c.ReplicaSet("web-new").Labels[inplace.LabelRenewed] == "" {
		t.Error("the native controller of another update got no nudge")
	}
}

// TestProcessShutdownComesFirstWhereMarksAre checks that namespaces with marks come first, even if their label was
// removed. There a native controller certainly waits.
func TestProcessShutdownComesFirstWhereMarksAre(t *testing.T) {
	c := newCluster(t)
	marked := map[string]string{inplace.LabelUpdating: "1"}
	owner := []metav1.OwnerReference{*fixture.OwnedBy("DaemonSet", "agent", "agent")}
	c.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "another", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}})
	c.Add(&apps.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "unlabelled", Name: "agent-1", Labels: marked, OwnerReferences: owner}})
	replicaSet := c.ReplicaSet("web-old")
	replicaSet.Labels[inplace.LabelUpdating] = "1"
	if err := c.Update(t.Context(), replicaSet); err != nil {
		t.Fatal(err)
	}
	namespaces, err := runner{reader: observe.Reader{Reader: c}}.concerned(t.Context())
	if want := []string{fixture.Web.Namespace, "unlabelled", "another"}; err != nil || !slices.Equal(namespaces, want) {
		t.Errorf("%q, %v; want %q", namespaces, err, want)
	}
}

// requests counts reads and writes.
type requests struct{ reads, writes atomic.Int64 }

func (r *requests) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			r.reads.Add(1)
			return from.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			r.reads.Add(1)
			return from.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			r.writes.Add(1)
			return to.Patch(ctx, object, patch, options...)
		},
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
