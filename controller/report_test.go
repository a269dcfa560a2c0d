package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
)

// story tells one reconcile after another to a reporter.
type story struct {
	*cluster
	r *Reconciler
	frozen
}

func newStory(t *testing.T) *story {
	t.Helper()
	c := newCluster(t)
	return &story{cluster: c, r: c.reconciler(nil), frozen: c.snapshot()}
}

func (s *story) replicaSetOf(name string) *inplace.ReplicaSet {
	for _, replicaSet := range s.rollout.ReplicaSets {
		if replicaSet.Name == name {
			return replicaSet
		}
	}
	s.t.Fatalf("no ReplicaSet %s", name)
	return nil
}

// marks are the writes that put a mark on ReplicaSets; the snapshot has them afterwards.
func (s *story) marks(label string, names ...string) []write {
	var writes []write
	for _, name := range names {
		before := s.replicaSetOf(name)
		after := before.DeepCopyObject().(*inplace.ReplicaSet)
		after.Labels[label] = "1767262800"
		writes = append(writes, write{step: inplace.PatchReplicaSet{ReplicaSet: before}, before: before, after: after})
	}
	return writes
}

// apply shows the writes in the snapshot.
func (s *story) apply(writes []write) {
	for _, w := range writes {
		for i, replicaSet := range s.rollout.ReplicaSets {
			if replicaSet.UID == w.after.GetUID() {
				s.rollout.ReplicaSets[i] = w.after.(*inplace.ReplicaSet)
			}
		}
	}
}

func (s *story) report(plan inplace.Plan, writes ...write) {
	if plan.Verdict.Target == nil {
		plan.Verdict.Target = s.rollout.Target()
	}
	s.r.reporter.report(kinds.Deployment{Rollout: s.rollout}, plan, writes)
	s.apply(writes)
}

var held = inplace.Plan{Verdict: inplace.Verdict{Held: true}}

func (s *story) begin() {
	s.report(held, s.marks(inplace.LabelSettling, "web-old", "web-new")...)
	wantTold(s.t, s.recorder, EventStarted)
}

// complete shows every pod in the target, and no mark.
func (s *story) complete() {
	*s.replicaSetOf("web-old").Spec.Replicas = 0
	s.replicaSetOf("web-old").Status = appsv1.ReplicaSetStatus{}
	s.rollout.Pods = nil
	for _, replicaSet := range s.rollout.ReplicaSets {
		delete(replicaSet.Labels, inplace.LabelSettling)
	}
	s.rollout.Deployment.Status.UpdatedReplicas = 3
}

func TestReportOfAnUpdate(t *testing.T) {
	s := newStory(t)
	s.begin()
	s.report(held)
	pod := s.rollout.Pods[0]
	moved := pod.DeepCopy()
	moved.Spec.Containers[0].Image = "app:2"
	s.report(held, write{step: inplace.PatchPod{Pod: pod, Moves: true}, before: pod, after: moved})
	wantTold(t, s.recorder, EventMoved+" app: app:1 -> app:2")
	if n := testutil.ToFloat64(s.metrics.inFlight); n != 1 {
		t.Errorf("%v updates in flight, want 1", n)
	}

	s.complete()
	s.rollout.Now = s.rollout.Now.Add(12 * time.Second)
	s.report(inplace.Plan{})
	wantTold(t, s.recorder, EventCompleted+" Running pods were updated in place in 12s")
	s.report(inplace.Plan{})
	wantTold(t, s.recorder)
	for name, value := range map[string]float64{
		"started":   testutil.ToFloat64(s.metrics.started.WithLabelValues("in-place")),
		"completed": testutil.ToFloat64(s.metrics.completed.WithLabelValues("in-place")),
		"moved":     testutil.ToFloat64(s.metrics.moved),
	} {
		if value != 1 {
			t.Errorf("%s is %v, want 1", name, value)
		}
	}
	if n := testutil.ToFloat64(s.metrics.inFlight); n != 0 {
		t.Errorf("%v updates in flight, want none", n)
	}
}

func TestReportDoesNotRepeatAfterScaling(t *testing.T) {
	s := newStory(t)
	s.begin()
	for _, replicaSet := range s.rollout.ReplicaSets {
		delete(replicaSet.Labels, inplace.LabelSettling)
	}
	s.report(held)
	s.report(held, s.marks(inplace.LabelSettling, "web-old", "web-new")...)
	wantTold(t, s.recorder)
}

func TestReportOfAnUndo(t *testing.T) {
	s := newStory(t)
	s.begin()
	s.rollout.Deployment.Spec.Template = s.replicaSetOf("web-old").Spec.Template
	s.report(held)
	wantTold(t, s.recorder, EventStarted+" Moving running pods to ReplicaSet web-old")
	if n := testutil.ToFloat64(s.metrics.superseded.WithLabelValues("in-place")); n != 1 || testutil.CollectAndCount(s.metrics.failed) != 0 {
		t.Errorf("%v superseded, want 1 that counts as no failure", n)
	}
}

func TestReportOfARelease(t *testing.T) {
	s := newStory(t)
	s.begin()
	plan := inplace.Plan{Message: "policy says no", Verdict: inplace.Verdict{Reasons: inplace.Reasons{{Code: "Refused", Message: "policy says no"}}}}
	s.report(plan, s.marks(inplace.LabelReleased, "web-new")...)
	wantTold(t, s.recorder, "Warning "+EventReleased+" Left to the Deployment controller: policy says no")
	s.report(plan, s.marks(inplace.LabelReleased, "web-new")...)
	wantTold(t, s.recorder)
	if n := testutil.ToFloat64(s.metrics.failed.WithLabelValues("in-place", "Refused")); n != 1 {
		t.Errorf("%v failed, want 1", n)
	}
}

func TestReportOfRecreation(t *testing.T) {
	native := inplace.Plan{Phase: inplace.PhaseNative, Verdict: inplace.Verdict{Reasons: inplace.Reasons{{Code: "TemplateField", Message: "env changed"}}}}
	s := newStory(t)
	s.report(native)
	wantTold(t, s.recorder, EventRecreated+" Pods are recreated: env changed")
	s.report(native)
	wantTold(t, s.recorder)

	late := newStory(t)
	late.replicaSetOf("web-new").Status.Replicas = 1
	late.report(native)
	wantTold(t, late.recorder)

	begun := newStory(t)
	begun.replicaSetOf("web-new").Status.Replicas = 1
	begun.report(inplace.Plan{Phase: inplace.PhaseNative, Verdict: inplace.Verdict{
		Reasons: inplace.Reasons{{Code: inplace.CodeUnderWay, Message: "begun with new pods"}},
	}})
	wantTold(t, begun.recorder, EventRecreated+" Pods are recreated: begun with new pods")
}

func TestReportOfARecreationWithoutTarget(t *testing.T) {
	s := newStory(t)
	s.rollout.ReplicaSets = slices.DeleteFunc(s.rollout.ReplicaSets, func(rs *inplace.ReplicaSet) bool { return rs.Name == "web-new" })
	rewritten := inplace.Plan{Verdict: inplace.Verdict{Reasons: inplace.Reasons{{Code: inplace.CodeRewrittenImage, Message: "another image"}}}}
	s.report(rewritten, s.marks(inplace.LabelReleased, "web-old")...)
	wantTold(t, s.recorder, EventRecreated+" Pods are recreated: another image")
	s.report(rewritten)
	wantTold(t, s.recorder)
}

func TestReportOfAStall(t *testing.T) {
	s := newStory(t)
	s.begin()
	stalled := held
	stalled.Phase, stalled.Message = inplace.PhaseStalled, "0 of 3 pods updated"
	s.report(stalled)
	wantTold(t, s.recorder, "Warning "+EventStalled+" 0 of 3 pods updated")
	s.report(stalled)
	wantTold(t, s.recorder)
}

func TestReportCountsWhatStallsNow(t *testing.T) {
	stalled := held
	stalled.Phase = inplace.PhaseStalled
	s := newStory(t)
	s.begin()
	wantStalled := func(when string, want float64) {
		if n := testutil.ToFloat64(s.metrics.stalled); n != want {
			t.Errorf("%s: %v updates stall, want %v", when, n, want)
		}
	}
	s.report(stalled)
	s.report(stalled)
	wantStalled("no progress", 1)
	s.report(held)
	wantStalled("it goes on", 0)
	s.report(stalled)
	s.complete()
	s.report(inplace.Plan{})
	wantStalled("completed", 0)
}

func TestReportMeasuresAbsence(t *testing.T) {
	s := newStory(t)
	s.begin()
	ready := s.rollout.Pods[0]
	away := ready.DeepCopy()
	for i := range away.Status.Conditions {
		if away.Status.Conditions[i].Type != corev1.ContainersReady {
			away.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	for _, pod := range []*corev1.Pod{away, away, ready, ready} {
		s.rollout.Pods[0] = pod
		s.rollout.Now = s.rollout.Now.Add(time.Second)
		s.report(held)
	}
	if count, sum := s.absences(); count != 1 || sum != 2 {
		t.Errorf("%d absences of %v s, want one of 2 s", count, sum)
	}
}

// absences returns what stayput_pod_unavailable_seconds says.
func (c *cluster) absences() (count uint64, sum float64) {
	c.t.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "stayput_pod_unavailable_seconds" {
			histogram := family.GetMetric()[0].GetHistogram()
			return histogram.GetSampleCount(), histogram.GetSampleSum()
		}
	}
	c.t.Fatal("no histogram of absences")
	return 0, 0
}
