package report

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/write"

	appsv1 "k8s.io/api/apps/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// shop is the namespace of the Deployment.
var shop = fixture.Web.Namespace

// story reports one reconcile after another to a Reporter.
type story struct {
	*cluster
	reporter *Reporter
	metrics  *Metrics
	fixture.Frozen
}

func newStory(t *testing.T) *story {
	t.Helper()
	c := newCluster(t)
	metrics := NewMetrics(c.Registry)
	metrics.Namespaces.Add(shop)
	metrics.Namespaces.Begin()
	return &story{cluster: c, reporter: New(observe.Deployments, c.Recorder, metrics), metrics: metrics, Frozen: c.Snapshot()}
}

func (s *story) replicaSetOf(name string) *apps.ReplicaSet {
	for _, replicaSet := range s.Read.ReplicaSets {
		if replicaSet.Name == name {
			return replicaSet
		}
	}
	s.T.Fatalf("no ReplicaSet %s", name)
	return nil
}

// marks returns the writes that put a mark on ReplicaSets. apply adds them to the snapshot.
func (s *story) marks(label string, names ...string) []write.Done {
	var writes []write.Done
	for _, name := range names {
		before := s.replicaSetOf(name)
		after := before.DeepCopyObject().(*apps.ReplicaSet)
		after.Labels[label] = "1767262800"
		writes = append(writes, write.Done{Step: steps.PatchReplicaSet{ReplicaSet: before}, Before: before, After: after})
	}
	return writes
}

// apply adds the writes to the snapshot.
func (s *story) apply(writes []write.Done) {
	for _, w := range writes {
		for i, replicaSet := range s.Read.ReplicaSets {
			if replicaSet.UID == w.After.GetUID() {
				s.Read.ReplicaSets[i] = w.After.(*apps.ReplicaSet)
			}
		}
	}
}

func (s *story) report(plan steps.Plan, writes ...write.Done) {
	if plan.Decision.UpdateRevision == nil {
		plan.Decision.UpdateRevision = steps.RevisionOf(s.Read.UpdateRevision())
	}
	s.reporter.Report(s.Read, plan, writes)
	s.apply(writes)
}

var held = steps.Plan{Decision: steps.Decision{Held: true}}

func (s *story) begin() {
	s.report(held, s.marks(inplace.LabelUpdating, "web-old", "web-new")...)
	fixture.WantTold(s.T, s.Recorder, EventStarted)
}

// complete changes the snapshot so that every pod has the update revision and no mark is left.
func (s *story) complete() {
	*s.replicaSetOf("web-old").Spec.Replicas = 0
	s.replicaSetOf("web-old").Status = appsv1.ReplicaSetStatus{}
	s.Read.Seen.Pods = nil
	for _, replicaSet := range s.Read.ReplicaSets {
		delete(replicaSet.Labels, inplace.LabelUpdating)
	}
	s.Read.Deployment.Status.UpdatedReplicas = 3
}

func TestReportOfAnUpdate(t *testing.T) {
	s := newStory(t)
	s.begin()
	s.report(held)
	pod := s.Read.Seen.Pods[0]
	pod.Spec.InitContainers = []corev1.Container{{Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	moved := pod.DeepCopy()
	moved.Spec.Containers[0].Image, moved.Spec.InitContainers[0].Image = "app:2", "mesh:2"
	s.report(held, write.Done{Step: steps.PatchPod{Pod: pod, Moves: true}, Before: pod, After: moved})
	fixture.WantTold(t, s.Recorder, EventMoved+" app: app:1 -> app:2, mesh: mesh:1 -> mesh:2")
	if n := s.metrics.inProgress.count()[shop].inFlight; n != 1 {
		t.Errorf("%v updates in flight, want 1", n)
	}

	s.complete()
	s.Read.Seen.Now = s.Read.Seen.Now.Add(12 * time.Second)
	s.report(steps.Plan{})
	fixture.WantTold(t, s.Recorder, EventCompleted+" Running pods were updated in place in 12s")
	s.report(steps.Plan{})
	fixture.WantTold(t, s.Recorder)
	for name, value := range map[string]float64{
		"started":   testutil.ToFloat64(s.metrics.started.WithLabelValues(shop, "in-place")),
		"completed": testutil.ToFloat64(s.metrics.completed.WithLabelValues(shop, "in-place")),
		"moved":     testutil.ToFloat64(s.metrics.moved.WithLabelValues(shop)),
	} {
		if value != 1 {
			t.Errorf("%s is %v, want 1", name, value)
		}
	}
	if n := s.metrics.inProgress.count()[shop].inFlight; n != 0 {
		t.Errorf("%v updates in flight, want none", n)
	}
}

func TestReportDoesNotRepeatAfterScaling(t *testing.T) {
	s := newStory(t)
	s.begin()
	for _, replicaSet := range s.Read.ReplicaSets {
		delete(replicaSet.Labels, inplace.LabelUpdating)
	}
	s.report(held)
	s.report(held, s.marks(inplace.LabelUpdating, "web-old", "web-new")...)
	fixture.WantTold(t, s.Recorder)
}

func TestReportOfAnUndo(t *testing.T) {
	s := newStory(t)
	s.begin()
	s.Read.Deployment.Spec.Template = s.replicaSetOf("web-old").Spec.Template
	s.report(held)
	fixture.WantTold(t, s.Recorder, EventStarted+" Moving running pods to ReplicaSet web-old")
	n := testutil.ToFloat64(s.metrics.superseded.WithLabelValues(shop, "in-place"))
	if n != 1 || testutil.CollectAndCount(s.metrics.failed) != 0 {
		t.Errorf("%v superseded, want 1 that counts as no failure", n)
	}
}

// persisted is the write of a fallback.
var persisted = write.Done{Step: steps.PersistFallback{}, After: &corev1.ConfigMap{}}

// TestReportOfAnUninstall: the fallback is not persisted, and the marks are removed.
func TestReportOfAnUninstall(t *testing.T) {
	s := newStory(t)
	s.begin()
	after := s.replicaSetOf("web-old").DeepCopyObject().(*apps.ReplicaSet)
	delete(after.Labels, inplace.LabelUpdating)
	unmarked := write.Done{Step: steps.PatchReplicaSet{}, Before: s.replicaSetOf("web-old"), After: after}
	uninstalled := inplace.Reasons{{Code: inplace.CodeUninstalled, Message: "Stayput is uninstalled"}}
	s.report(steps.Plan{Decision: steps.Decision{Reasons: uninstalled}}, unmarked)
	fixture.WantTold(t, s.Recorder, "Warning "+EventFellBack+" Left to the Deployment controller: Stayput is uninstalled")
}

func TestReportOfAFallBack(t *testing.T) {
	s := newStory(t)
	s.begin()
	reasons := inplace.Reasons{{Code: "Refused", Message: "policy says no"}}
	plan := steps.Plan{Message: "policy says no", Decision: steps.Decision{Reasons: reasons}}
	s.report(plan, persisted)
	fixture.WantTold(t, s.Recorder, "Warning "+EventFellBack+" Left to the Deployment controller: policy says no")
	s.report(plan, persisted)
	fixture.WantTold(t, s.Recorder)
	if n := testutil.ToFloat64(s.metrics.failed.WithLabelValues(shop, "in-place", "Refused")); n != 1 {
		t.Errorf("%v failed, want 1", n)
	}
}

func TestReportOfRecreation(t *testing.T) {
	native := steps.Plan{Phase: steps.PhaseNative, Decision: steps.Decision{
		Reasons: inplace.Reasons{{Code: "TemplateField", Message: "env changed"}}}}
	s := newStory(t)
	s.report(native)
	fixture.WantTold(t, s.Recorder, EventRecreated+" Pods are recreated: env changed")
	s.report(native)
	fixture.WantTold(t, s.Recorder)

	late := newStory(t)
	late.replicaSetOf("web-new").Status.Replicas = 1
	late.report(native)
	fixture.WantTold(t, late.Recorder)

	begun := newStory(t)
	begun.replicaSetOf("web-new").Status.Replicas = 1
	begun.report(steps.Plan{Phase: steps.PhaseNative, Decision: steps.Decision{
		Reasons: inplace.Reasons{{Code: inplace.CodeNativeRollout, Message: "begun with new pods"}},
	}})
	fixture.WantTold(t, begun.Recorder, EventRecreated+" Pods are recreated: begun with new pods")
}

// TestReportOnDelete: no controller recreates the pods.
func TestReportOnDelete(t *testing.T) {
	kept := inplace.Reason{Code: inplace.CodeOnDelete, Message: "each pod stays until you delete it"}
	native := steps.Plan{Phase: steps.PhaseNative, Decision: steps.Decision{
		Reasons: inplace.Reasons{{Code: inplace.CodeTemplateField, Message: "env changed"}, kept}}}
	s := newStory(t)
	s.report(native)
	fixture.WantTold(t, s.Recorder, EventRecreated+" Pods keep their revision: env changed; each pod stays until you delete it")

	begun := newStory(t)
	begun.begin()
	begun.replicaSetOf("web-new").Status.Replicas = 1
	begun.report(native)
	fixture.WantTold(t, begun.Recorder,
		"Warning "+EventFellBack+" Pods keep their revision: env changed; each pod stays until you delete it")
}

// TestReportOfARuleThatChanges has an update that was made in place until a rule of the user changed.
func TestReportOfARuleThatChanges(t *testing.T) {
	s := newStory(t)
	s.begin()
	s.replicaSetOf("web-new").Status.Replicas = 1
	native := steps.Plan{Phase: steps.PhaseNative, Decision: steps.Decision{
		Reasons: inplace.Reasons{{Code: inplace.CodeAnnotation, Message: "annotation note added"}}}}
	s.report(native)
	fixture.WantTold(t, s.Recorder, "Warning "+EventFellBack+" Left to the Deployment controller: annotation note added")
	s.report(native)
	fixture.WantTold(t, s.Recorder)
}

func TestReportOfARecreationWithoutUpdateRevision(t *testing.T) {
	s := newStory(t)
	s.Read.ReplicaSets = slices.DeleteFunc(s.Read.ReplicaSets, func(rs *apps.ReplicaSet) bool { return rs.Name == "web-new" })
	rewritten := steps.Plan{Decision: steps.Decision{Reasons: inplace.Reasons{{Code: inplace.CodeRewrittenImage, Message: "another image"}}}}
	s.report(rewritten, persisted)
	fixture.WantTold(t, s.Recorder, EventRecreated+" Pods are recreated: another image")
	s.report(rewritten)
	fixture.WantTold(t, s.Recorder)
}

func TestReportOfAStall(t *testing.T) {
	s := newStory(t)
	s.begin()
	stalled := held
	stalled.Phase, stalled.Message = steps.PhaseStalled, "0 of 3 pods updated"
	s.report(stalled)
	fixture.WantTold(t, s.Recorder, "Warning "+EventStalled+" 0 of 3 pods updated")
	s.report(stalled)
	fixture.WantTold(t, s.Recorder)
}

func TestReportOfAStage(t *testing.T) {
	s := newStory(t)
	s.begin()
	stage := func(partition, message string) {
		waits := held
		waits.Phase, waits.Message, s.Read.Seen.Settings.Partition.Value = steps.PhasePartition, message, partition
		s.report(waits)
	}
	stage("2", "1 of 3")
	fixture.WantTold(t, s.Recorder, "Normal "+EventPartition+" 1 of 3")
	stage("2", "3 of 5") // scaled
	fixture.WantTold(t, s.Recorder)
	stage("1", "2 of 3")
	fixture.WantTold(t, s.Recorder, "Normal "+EventPartition+" 2 of 3")
	stage("2", "2 of 3") // raised again
	fixture.WantTold(t, s.Recorder)
}

// TestReportOfAWindow: each time that the window is closed is news.
func TestReportOfAWindow(t *testing.T) {
	s := newStory(t)
	s.begin()
	waits := func(until string) {
		waits := held
		waits.Phase, waits.Message, s.Read.Seen.Settings.Partition.Closed = steps.PhaseWindow, "until "+until, until
		s.report(waits)
	}
	waits("Sat")
	fixture.WantTold(t, s.Recorder, "Normal "+EventWindow+" until Sat")
	waits("Sat")
	fixture.WantTold(t, s.Recorder)
	waits("Sun")
	fixture.WantTold(t, s.Recorder, "Normal "+EventWindow+" until Sun")
}

// TestReportOfWaits: what pods wait for is news when it has lasted for a while, once for each PodDisruptionBudget, limit or hook. As long
// as a pod is in progress, no other workload holds up the update.
func TestReportOfWaits(t *testing.T) {
	for filter, test := range map[string]struct {
		event     string
		shared    bool
		refused   int
		whileMove []string
	}{
		steps.FilterBudget: {event: EventAwaitsBudget, shared: true, refused: 1},
		steps.FilterLimit:  {event: EventAwaitsLimit, shared: true},
		steps.FilterHooks: {event: EventAwaitsHook, whileMove: []string{
			"Normal " + EventAwaitsHook + " 0 of 0 pods updated, 1 in progress; waiting for b"}},
		steps.FilterImages: {},
	} {
		s := newStory(t)
		s.begin()
		waits := func(on string, moving int32, long time.Duration) {
			plan := held
			plan.Waits, plan.Progress.Moving = []steps.Wait{{Filter: filter, For: on, Why: on, Shared: test.shared}}, moving
			s.Read.Seen.Now = s.Read.Seen.Now.Add(long)
			s.report(plan)
		}
		waits("a", 0, 0)
		waits("a", 0, patience-1)
		overtaken := held // it takes a pod, and another workload's pod has its place
		overtaken.Overtaken = true
		s.report(overtaken)
		fixture.WantTold(t, s.Recorder)
		var want []string
		if test.event != "" {
			want = []string{"Normal " + test.event + " 0 of 0 pods updated, 0 in progress; waiting for a"}
		}
		waits("a", 0, 1)
		fixture.WantTold(t, s.Recorder, want...)
		if n := s.metrics.inProgress.count()[shop].refused; n != test.refused {
			t.Errorf("%s: %d updates wait for a PodDisruptionBudget, want %d", filter, n, test.refused)
		}
		waits("a", 0, time.Hour)
		waits("b", 1, 0)
		waits("b", 1, time.Hour)
		fixture.WantTold(t, s.Recorder, test.whileMove...)
		s.report(held)
		if n := s.metrics.inProgress.count()[shop].refused; n != 0 {
			t.Errorf("%s: %d updates wait for a PodDisruptionBudget, want none", filter, n)
		}
	}
}

// TestReportOfHooksThatTimeOut: a pod that goes on without its hooks is news each time, whatever it restarts for.
func TestReportOfHooksThatTimeOut(t *testing.T) {
	s := newStory(t)
	pod := s.Read.Seen.Pods[0]
	for _, step := range []steps.PatchPod{{Stops: true}, {Stops: true, TimedOut: "pod p goes on"}, {TimedOut: "its labels come"}} {
		step.Pod = pod
		s.report(steps.Plan{}, write.Done{Step: step, Before: pod, After: pod})
	}
	fixture.WantTold(t, s.Recorder, "Warning "+EventHookTimedOut+" pod p goes on")
	s.wantsOf("one pod", `
		stayput_pre_restart_hook_timeouts_total{workload_namespace=""} 0
		stayput_pre_restart_hook_timeouts_total{workload_namespace="shop"} 1`, "stayput_pre_restart_hook_timeouts_total")
}

// TestReportOfARequest: each answer of a pod is an event on it.
func TestReportOfARequest(t *testing.T) {
	s := newStory(t)
	pod := s.Read.Seen.Pods[0]
	s.report(steps.Plan{}, write.Done{Step: steps.PatchPod{Pod: pod, Waits: "app waits: an update is in progress"}, Before: pod, After: pod})
	s.report(steps.Plan{}, write.Done{Step: steps.PatchPod{Pod: pod, Refuses: "why"}, Before: pod, After: pod})
	fixture.WantTold(t, s.Recorder, "Normal "+EventRestartWaits+" app waits: an update is in progress", "Warning "+EventRestartRefused+" why")
}

// TestReportCountsPodsAtALimit: by the limit that keeps them in service, whether others are in progress or not.
func TestReportCountsPodsAtALimit(t *testing.T) {
	s := newStory(t)
	s.begin()
	limited, wait := held, steps.Wait{Filter: steps.FilterLimit, For: concurrency.FlagTotal, Why: "others", Shared: true}
	limited.Waits, limited.Progress.Moving = []steps.Wait{wait, wait}, 1
	for _, test := range []struct {
		plan steps.Plan
		want int
	}{{limited, 2}, {held, 0}} {
		s.report(test.plan)
		if n := s.metrics.inProgress.count()[shop].awaiting[concurrency.FlagTotal]; n != test.want {
			t.Errorf("%d pods wait, want %d", n, test.want)
		}
	}
}

func TestReportCountsWhatStallsNow(t *testing.T) {
	stalled := held
	stalled.Phase = steps.PhaseStalled
	s := newStory(t)
	s.begin()
	wantStalled := func(when string, want int) {
		if n := s.metrics.inProgress.count()[shop].stalled; n != want {
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
	s.report(steps.Plan{})
	wantStalled("completed", 0)
}

func TestReportMeasuresAbsence(t *testing.T) {
	s := newStory(t)
	s.begin()
	ready := s.Read.Seen.Pods[0]
	away := ready.DeepCopy()
	away.Status.Conditions = []corev1.PodCondition{readiness.TakenOutUntil(ready, time.Now(), time.Now())}
	for _, pod := range []*corev1.Pod{away, away, ready, ready} {
		s.Read.Seen.Pods[0] = pod
		s.Read.Seen.Now = s.Read.Seen.Now.Add(time.Second)
		s.report(held)
	}
	if count, sum := s.absences(); count != 1 || sum != 2 {
		t.Errorf("%d absences of %v s, want one of 2 s", count, sum)
	}
}

// absences returns the value of stayput_pod_unavailable_seconds.
func (c *cluster) absences() (count uint64, sum float64) {
	c.T.Helper()
	families, err := c.Registry.Gather()
	if err != nil {
		c.T.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "stayput_pod_unavailable_seconds" {
			histogram := family.GetMetric()[1].GetHistogram() // the first is that of no namespace
			return histogram.GetSampleCount(), histogram.GetSampleSum()
		}
	}
	c.T.Fatal("no histogram of absences")
	return 0, 0
}
