package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// start reconciles until the first writes: a new process first makes sure that its cache is no older than its predecessor.
func (c *cluster) start(r *Reconciler) {
	c.t.Helper()
	if result := c.reconcile(r); result.RequeueAfter != soon || c.patches != 0 {
		c.t.Fatalf("first reconcile: %+v and %d patches, want none before the live versions are known", result, c.patches)
	}
}

func TestReconcileMarksFirst(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	for _, name := range []string{"web-old", "web-new"} {
		if !inplace.Settling(c.replicaSet(name)) {
			t.Errorf("%s is not marked", name)
		}
	}
	wantTold(t, c.recorder, "Normal "+EventStarted+" Moving running pods to ReplicaSet web-new")
}

func TestReconcileWaitsForItsOwnWrites(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(c.snapshot())
	c.start(r)
	c.reconcile(r)
	before := c.patches
	if result := c.reconcile(r); result.RequeueAfter != lookAgain {
		t.Errorf("requeued after %s, want %s", result.RequeueAfter, lookAgain)
	}
	if c.patches != before {
		t.Errorf("%d patches were planned on a cache older than our writes", c.patches-before)
	}
	r.cached = r.live
	c.reconcile(r) // the marks are stored: a gate closes
	c.kubeletSeesGates()
	c.reconcile(r)
	if got := *c.replicaSet("web-old").Spec.Replicas; got != 2 {
		t.Errorf("the cache has caught up and a pod is drained, but the source wants %d replicas, not 2", got)
	}
}

// kubeletSeesGates makes the pods whose gate is closed unready.
func (c *cluster) kubeletSeesGates() {
	c.t.Helper()
	for _, pod := range c.snapshot().rollout.Pods {
		if !inplace.Closed(pod) {
			continue
		}
		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == corev1.PodReady {
				pod.Status.Conditions[i].Status, pod.Status.Conditions[i].Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
			}
		}
		if err := c.Status().Update(c.t.Context(), pod); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestReconcileWaitsForThePredecessorsWrites(t *testing.T) {
	c := newCluster(t)
	stale := c.snapshot()
	predecessor := c.reconciler(nil)
	c.start(predecessor)
	c.reconcile(predecessor)
	before := c.patches

	successor := c.reconciler(stale)
	for range 3 {
		c.reconcile(successor)
	}
	if c.patches != before {
		t.Errorf("%d patches were planned on a cache older than the predecessor's writes", c.patches-before)
	}
}

func TestReconcileLeavesADeletedDeploymentAlone(t *testing.T) {
	c := newCluster(t)
	stale := c.snapshot()
	if err := c.Delete(t.Context(), stale.rollout.Deployment.DeepCopyObject().(client.Object)); err != nil {
		t.Fatal(err)
	}
	r := c.reconciler(stale)
	for range 2 {
		if result := c.reconcile(r); result.RequeueAfter != lookAgain || c.patches != 0 {
			t.Errorf("%+v and %d patches, want to wait for the cache to see the deletion", result, c.patches)
		}
	}
}

func TestReconcileTakesOverSilently(t *testing.T) {
	c := newCluster(t)
	predecessor := c.reconciler(nil)
	c.start(predecessor)
	c.reconcile(predecessor)
	told(c.recorder)

	successor := c.reconciler(nil)
	c.reconcile(successor)
	c.reconcile(successor)
	wantTold(t, c.recorder)
}

func TestReconcileConflictIsQuiet(t *testing.T) {
	c := newCluster(t)
	c.refuse = func(object client.Object, _ string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "replicasets"}, object.GetName(), nil)
	}
	r := c.reconciler(nil)
	c.start(r)
	if result := c.reconcile(r); result.RequeueAfter <= 0 || result.RequeueAfter > lookAgain {
		t.Errorf("requeued after %s, want at most %s", result.RequeueAfter, lookAgain)
	}
	wantTold(t, c.recorder)
}

func TestReconcileReleasesWhatIsRefused(t *testing.T) {
	c := newCluster(t)
	c.refuse = func(_ client.Object, patch string) error {
		if strings.Contains(patch, "settling") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "replicasets"}, "web-old", errText("policy no-marks"))
		}
		return nil
	}
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	if c.replicaSet("web-new").Labels[inplace.LabelReleased] == "" {
		t.Error("the target is not marked as released")
	}
	wantTold(t, c.recorder, "policy no-marks")
}

// Who refuses marks refuses the label of a release as well. No pod may be taken out of service for what turns out not to be ours to do.
func TestReconcileRecordsAReleaseThatIsRefused(t *testing.T) {
	c := newCluster(t)
	c.refuse = func(object client.Object, _ string) error {
		if _, is := object.(*inplace.ReplicaSet); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "replicasets"}, object.GetName(), errText("policy hands-off"))
		}
		return nil
	}
	r := c.reconciler(nil)
	c.start(r)
	for range 5 {
		_, _ = r.Reconcile(t.Context(), request) // with the errors of what is refused
		for _, pod := range c.snapshot().rollout.Pods {
			if inplace.Closed(pod) {
				t.Fatalf("pod %s is taken out of service", pod.Name)
			}
		}
	}
	if verdict := c.snapshot().rollout.Verdict(); verdict.Held || verdict.Reasons[0].Code != inplace.CodeReleased {
		t.Errorf("the verdict is %+v", verdict)
	}
	wantTold(t, c.recorder, "policy hands-off")
}

func TestReconcileGivesBackWhatFailsForTooLong(t *testing.T) {
	c := newCluster(t)
	c.refuse = func(object client.Object, _ string) error {
		if _, is := object.(*inplace.ReplicaSet); is {
			return apierrors.NewInternalError(errText("failed calling webhook"))
		}
		return nil
	}
	r := c.reconciler(nil)
	c.start(r)
	if _, err := r.Reconcile(t.Context(), request); err == nil || !c.snapshot().rollout.Verdict().Held {
		t.Fatalf("given back at once (%v)", err)
	}
	r.failing.note(web, time.Now().Add(-failingPatience))
	_, _ = r.Reconcile(t.Context(), request)
	if verdict := c.snapshot().rollout.Verdict(); verdict.Held || verdict.Reasons[0].Code != inplace.CodeReleased {
		t.Errorf("two minutes later the verdict is %+v", verdict)
	}
	wantTold(t, c.recorder, "failed calling webhook")
}

func TestFailingIsForgotten(t *testing.T) {
	now, f := time.Now(), failing{}
	for _, step := range []struct {
		after   time.Duration
		succeed bool
		tooLong bool
	}{{0, false, false}, {failingPatience - 1, false, false}, {failingPatience, false, true}, {failingPatience, true, false}, {failingPatience, false, false}} {
		if step.succeed {
			f.forget(web)
		} else if tooLong := f.tooLong(web, now.Add(step.after)); tooLong != step.tooLong {
			t.Errorf("after %s it is too long: %t", step.after, tooLong)
		}
	}
}

func TestReconcileRetriesWhatFails(t *testing.T) {
	c := newCluster(t)
	c.refuse = func(client.Object, string) error { return apierrors.NewInternalError(errText("etcd is away")) }
	r := c.reconciler(nil)
	c.start(r)
	_, err := r.Reconcile(t.Context(), request)
	if err == nil || !strings.Contains(err.Error(), "etcd is away") {
		t.Errorf("error %v, want that of the API server", err)
	}
	if c.replicaSet("web-new").Labels[inplace.LabelReleased] != "" {
		t.Error("released although nothing was refused")
	}
}

func TestReconcileForgetsWhatIsGone(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r)
	if err := c.Delete(t.Context(), c.snapshot().rollout.Deployment); err != nil {
		t.Fatal(err)
	}
	c.reconcile(r)
	if r.writer.memory.knows(web) || len(r.reporter.updates) != 0 {
		t.Error("a deleted Deployment is remembered")
	}
}

func TestReconcileClosesNoGateForAnOvertakenEdit(t *testing.T) {
	c := newCluster(t)
	r := c.reconciler(nil)
	c.start(r)
	c.reconcile(r) // marks
	r = c.reconciler(c.snapshot())
	c.reconcile(r) // remembers what is there
	edited := decode[inplace.Deployment](t, deploymentJSON)
	if err := c.Get(t.Context(), web, edited); err != nil {
		t.Fatal(err)
	}
	edited.Generation++
	if err := c.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	before := c.patches
	if result := c.reconcile(r); result.RequeueAfter != lookAgain || c.patches != before {
		t.Errorf("%d patches, requeued after %s", c.patches-before, result.RequeueAfter)
	}
}
