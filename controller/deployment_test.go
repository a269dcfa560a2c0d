package controller

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/report"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// start reconciles until the first writes. A new process first checks that its cache is as new as what the previous
// leader wrote.
func (c *cluster) start(r *Reconciler) {
	c.T.Helper()
	if result := c.reconcile(r); result.RequeueAfter != atOnce || c.Patches != 0 {
		c.T.Fatalf("first reconcile: %+v and %d patches, want none before the live versions are known", result, c.Patches)
	}
}

func TestReconcileMarksFirst(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	for _, name := range []string{"web-old", "web-new"} {
		if !revisions.Updating(c.ReplicaSet(name)) {
			t.Errorf("%s is not marked", name)
		}
	}
	fixture.WantTold(t, c.Recorder, "Normal "+report.EventStarted+" Moving running pods to ReplicaSet web-new")
}

func TestReconcileWaitsForItsOwnWrites(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(c.Snapshot())
	c.start(r)
	c.reconcile(r)
	before := c.Patches
	if result := c.reconcile(r); result.RequeueAfter != inplace.LookAgain {
		t.Errorf("requeued after %s, want %s", result.RequeueAfter, inplace.LookAgain)
	}
	if c.Patches != before {
		t.Errorf("%d patches were planned on a cache older than the process's own writes", c.Patches-before)
	}
	r.cached = r.live
	c.reconcile(r) // reads the marks, and takes a pod out of service
	c.reconcile(r)
	if got := *c.ReplicaSet("web-old").Spec.Replicas; got != 2 {
		t.Errorf("the cache has caught up and a pod is drained, but the old ReplicaSet wants %d replicas, not 2", got)
	}
}

func TestReconcileWaitsForThePredecessorsWrites(t *testing.T) {
	c := newCluster(t)
	stale := c.Snapshot()
	predecessor := c.reconciler(nil)
	c.start(predecessor)
	c.reconcile(predecessor)
	before := c.Patches

	successor := c.reconciler(stale)
	for range 3 {
		c.reconcile(successor)
	}
	if c.Patches != before {
		t.Errorf("%d patches were planned on a cache older than the predecessor's writes", c.Patches-before)
	}
}

func TestReconcileLeavesADeletedDeploymentAlone(t *testing.T) {
	c := newCluster(t)
	stale := c.Snapshot()
	if err := c.Delete(t.Context(), stale.Read.Deployment.DeepCopyObject().(client.Object)); err != nil {
		t.Fatal(err)
	}
	r := c.reconciler(stale)
	for range 2 {
		if result := c.reconcile(r); result.RequeueAfter != inplace.LookAgain || c.Patches != 0 {
			t.Errorf("%+v and %d patches, want to wait for the cache to see the deletion", result, c.Patches)
		}
	}
}

func TestReconcileTakesOverSilently(t *testing.T) {
	c := newCluster(t)
	predecessor := c.reconciler(nil)
	c.start(predecessor)
	c.reconcile(predecessor)
	fixture.Told(c.Recorder)

	successor := c.reconciler(nil)
	c.reconcile(successor)
	c.reconcile(successor)
	fixture.WantTold(t, c.Recorder)
}

func TestReconcileConflictIsQuiet(t *testing.T) {
	c := newCluster(t)
	c.Refuse = func(object client.Object, _ string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "replicasets"}, object.GetName(), nil)
	}
	r := c.reconciler(nil)
	c.start(r)
	if result := c.reconcile(r); result.RequeueAfter <= 0 || result.RequeueAfter > inplace.LookAgain {
		t.Errorf("requeued after %s, want at most %s", result.RequeueAfter, inplace.LookAgain)
	}
	fixture.WantTold(t, c.Recorder)
}

func TestReconcileFallsBackForWhatIsRefused(t *testing.T) {
	c := newCluster(t)
	c.Refuse = func(_ client.Object, patch string) error {
		if strings.Contains(patch, "~1updating") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "replicasets"}, "web-old", fixture.ErrText("policy no-marks"))
		}
		return nil
	}
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	if !c.fellBack(c.Snapshot().Read.Deployment.UID) {
		t.Error("the update did not fall back")
	}
	fixture.WantTold(t, c.Recorder, "policy no-marks")
}

// TestFallsBackFromWhatWasJustWritten: pods restart while they serve, and the API server refuses the second of two patches. The fallback
// knows of the first one, although no cache has it yet, and gives that pod its image again.
func TestFallsBackFromWhatWasJustWritten(t *testing.T) {
	c := newCluster(t)
	deployment := c.Snapshot().Read.Deployment
	deployment.Annotations = map[string]string{inplace.AnnotationAuxiliary: "app"}
	deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(2))
	c.do(c.Update(t.Context(), deployment))
	first, refused := "", 0
	c.Refuse = func(object client.Object, patch string) error {
		if _, is := object.(*corev1.Pod); !is || !strings.Contains(patch, "/spec/") {
			return nil
		}
		if first = cmp.Or(first, object.GetName()); object.GetName() != first {
			refused++
			return apierrors.NewForbidden(corev1.Resource("pods"), object.GetName(), fixture.ErrText("policy one-only"))
		}
		return nil
	}
	r := c.reconciler(nil)
	c.start(r)
	c.reconcileTimes(r, 4)
	if refused == 0 || !c.fellBack(deployment.UID) {
		t.Fatalf("%d patches were refused; fell back: %t", refused, c.fellBack(deployment.UID))
	}
	for _, pod := range c.Snapshot().Read.Seen.Pods {
		if image := pod.Spec.Containers[0].Image; image != "app:1" {
			t.Errorf("%s of ReplicaSet web-old has image %s", pod.Name, image)
		}
	}
}

// TestReconcilePersistsAFallbackThatIsRefused has a policy that refuses all writes to ReplicaSets. No
// pod may be taken out of service for an update that Stayput then cannot make.
func TestReconcilePersistsAFallbackThatIsRefused(t *testing.T) {
	c := newCluster(t)
	c.Refuse = func(object client.Object, _ string) error {
		if _, is := object.(*apps.ReplicaSet); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "replicasets"}, object.GetName(), fixture.ErrText("policy hands-off"))
		}
		return nil
	}
	r := c.reconciler(nil)
	c.start(r)
	for range 5 {
		_, _ = r.Reconcile(t.Context(), fixture.Request) // with the errors of what is refused
		for _, pod := range c.Snapshot().Read.Seen.Pods {
			if readiness.Out(pod) {
				t.Fatalf("pod %s is taken out of service", pod.Name)
			}
		}
	}
	if decision := c.Snapshot().Read.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Errorf("the decision is %+v", decision)
	}
	fixture.WantTold(t, c.Recorder, "policy hands-off")
}

func TestReconcileFallsBackWhenWritesFailForTooLong(t *testing.T) {
	c := newCluster(t)
	c.Refuse = func(object client.Object, _ string) error {
		if _, is := object.(*apps.ReplicaSet); is {
			return apierrors.NewInternalError(fixture.ErrText("failed calling webhook"))
		}
		return nil
	}
	r := c.reconciler(nil)
	c.start(r)
	if _, err := r.Reconcile(t.Context(), fixture.Request); err == nil || !c.Snapshot().Read.Decision().Held {
		t.Fatalf("fell back at once (%v)", err)
	}
	r.memories.recall(fixture.Web).Succeeded()
	r.memories.recall(fixture.Web).Failed(time.Now().Add(-engine.FailingPatience))
	_, _ = r.Reconcile(t.Context(), fixture.Request)
	if decision := c.Snapshot().Read.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Errorf("two minutes later the decision is %+v", decision)
	}
	fixture.WantTold(t, c.Recorder, "failed calling webhook")
}

func TestReconcileRetriesWhatFails(t *testing.T) {
	c := newCluster(t)
	c.Refuse = func(client.Object, string) error { return apierrors.NewInternalError(fixture.ErrText("etcd is away")) }
	r := c.reconciler(nil)
	c.start(r)
	_, err := r.Reconcile(t.Context(), fixture.Request)
	if err == nil || !strings.Contains(err.Error(), "etcd is away") {
		t.Errorf("error %v, want that of the API server", err)
	}
	if c.fellBack(c.Snapshot().Read.Deployment.UID) {
		t.Error("fell back although nothing was refused")
	}
}

func TestReconcileForgetsWhatIsGone(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	if err := c.Delete(t.Context(), c.Snapshot().Read.Deployment); err != nil {
		t.Fatal(err)
	}
	c.reconcile(r)
	if r.remembers() || len(r.Reporter.Updates) != 0 {
		t.Error("a deleted Deployment is remembered")
	}
}

func TestReconcileTakesNoPodForAnOvertakenEdit(t *testing.T) {
	takesNoPodAfter(t, func(d *apps.Deployment) { d.Generation++ })
}

func TestReconcileTakesNoPodForAPartitionItHasNotSeen(t *testing.T) {
	takesNoPodAfter(t, func(d *apps.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.AnnotationPartition, "100%")
	})
}

// takesNoPodAfter makes an edit that the cache does not show yet, and checks that no pod is taken out of service.
func takesNoPodAfter(t *testing.T, edit func(*apps.Deployment)) {
	t.Helper()
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r) // writes the marks
	r = c.reconciler(c.Snapshot())
	c.reconcile(r) // remembers the live versions
	edited := fixture.Decode[apps.Deployment](t, fixture.DeploymentJSON)
	if err := c.Get(t.Context(), fixture.Web, edited); err != nil {
		t.Fatal(err)
	}
	edit(edited)
	if err := c.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	before := c.Patches
	if result := c.reconcile(r); result.RequeueAfter != inplace.LookAgain || c.Patches != before {
		t.Errorf("%d patches, requeued after %s; want none, and %s", c.Patches-before, result.RequeueAfter, inplace.LookAgain)
	}
}
