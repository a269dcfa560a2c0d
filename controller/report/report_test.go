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

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
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
	return &story{cluster: c, reporter: New(kinds.Deployments, c.Recorder, metrics), metrics: metrics, Frozen: c.Snapshot()}
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
	s.reporter.Report(kinds.Deployment{Rollout: s.Read}, plan, writes)
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

// TestReportOfABudget: an update that waits for a PodDisruptionBudget is news when it has waited for a while, once for each of them.
func TestReportOfABudget(t *testing.T) {
	s := newStory(t)
	s.begin()
	waits := func(budget, message string, moving int32, long time.Duration) {
		refused := held
		refused.Phase, refused.AwaitsBudget, refused.Message, refused.Progress.Moving = steps.PhaseBudget, budget, message, moving
		s.Read.Seen.Now = s.Read.Seen.Now.Add(long)
		s.report(refused)
	}
	waits("web", "2 of 2", 0, 0)
	waits("web", "2 of 2", 1, time.Hour) // a pod is in progress
	waits("web", "2 of 2", 0, 0)
	waits("web", "2 of 2", 0, budgetPatience-1)
	fixture.WantTold(t, s.Recorder)
	waits("web", "3 of 3", 0, 1)
	fixture.WantTold(t, s.Recorder, "Normal "+EventAwaitsBudget+" 3 of 3")
	if n := s.metrics.inProgress.count()[shop].refused; n != 1 {
		t.Errorf("%d updates wait for a PodDisruptionBudget, want 1", n)
	}
	waits("web", "2 of 2", 0, time.Hour)
	waits("other", "1 of 1", 0, 0)
	fixture.WantTold(t, s.Recorder, "Normal "+EventAwaitsBudget+" 1 of 1")
	s.report(held)
	if n := s.metrics.inProgress.count()[shop].refused; n != 0 {
		t.Errorf("%d updates wait for a PodDisruptionBudget, want none", n)
	}
}

// TestReportOfHooks: a hook that holds a pod is news when it has done so for a while, once for each hook; that it has timed out, once for
// each pod.
func TestReportOfHooks(t *testing.T) {
	s := newStory(t)
	s.begin()
	waits := func(hook, pod string, long time.Duration, timedOut bool) {
		plan := held
		plan.HookWaits = []steps.HookWait{{Pod: pod, Hooks: inplace.Hooks{hook}, Since: s.Read.Seen.Now.Add(-long), Timeout: time.Minute,
			TimedOut: timedOut}}
		s.report(plan)
	}
	waits("a/lb", "p", hookPatience-1, false)
	fixture.WantTold(t, s.Recorder)
	waits("a/lb", "p", hookPatience, false)
	fixture.WantTold(t, s.Recorder, "Normal "+EventAwaitsHook+" waiting for annotation a/lb to be removed from pod p")
	waits("a/lb", "q", time.Hour, false)
	fixture.WantTold(t, s.Recorder)
	waits("a/shards", "q", time.Hour, false)
	fixture.WantTold(t, s.Recorder, "Normal "+EventAwaitsHook+" waiting for annotation a/shards to be removed from pod q")
	for range 2 {
		waits("a/lb", "p", time.Minute, true)
	}
	waits("a/lb", "q", time.Minute, true)
	fixture.WantTold(t, s.Recorder, "Warning "+EventHookTimedOut+" pod p goes on with annotation a/lb: not removed within 1m0s",
		"Warning "+EventHookTimedOut+" pod q goes on with annotation a/lb: not removed within 1m0s")
	s.wantsOf("two pods", `
		stayput_pre_restart_hook_timeouts_total{workload_namespace=""} 0
		stayput_pre_restart_hook_timeouts_total{workload_namespace="shop"} 2`, "stayput_pre_restart_hook_timeouts_total")
}

// TestReportOfARequest: each answer of a pod is an event on it.
func TestReportOfARequest(t *testing.T) {
	s := newStory(t)
	pod := s.Read.Seen.Pods[0]
	s.report(steps.Plan{}, write.Done{Step: steps.PatchPod{Pod: pod, Waits: "app waits: an update is in progress"}, Before: pod, After: pod})
	s.report(steps.Plan{}, write.Done{Step: steps.PatchPod{Pod: pod, Refuses: "why"}, Before: pod, After: pod})
	fixture.WantTold(t, s.Recorder, "Normal "+EventRestartWaits+" app waits: an update is in progress", "Warning "+EventRestartRefused+" why")
}

// TestReportOfAHookWithoutAnUpdate: a pod that restarts because its annotation asks for it goes on without the hook, too.
func TestReportOfAHookWithoutAnUpdate(t *testing.T) {
	s := newStory(t)
	pod := s.Read.Seen.Pods[0]
	plan := steps.Plan{HookWaits: []steps.HookWait{{Pod: pod.Name, Hooks: inplace.Hooks{"a/lb"}, Timeout: time.Minute, TimedOut: true}}}
	s.report(plan)
	s.report(plan, write.Done{Step: steps.PatchPod{Pod: pod, Asked: "app"}, Before: pod, After: pod})
	fixture.WantTold(t, s.Recorder, "Normal "+EventRestarts+" ",
		"Warning "+EventHookTimedOut+" pod "+pod.Name+" goes on with annotation a/lb: not removed within 1m0s")
}

// TestReportOfALimit: an update of which no pod restarts because of a limit is news at once, once for each limit.
func TestReportOfALimit(t *testing.T) {
	s := newStory(t)
	s.begin()
	waits := func(flag string, moving int32) {
		limited := held
		limited.Phase, limited.Message, limited.Progress.Moving = steps.PhaseLimit, "why", moving
		limited.AwaitsLimit = steps.AwaitsLimit{Flag: flag, Why: "others", First: s.Read.Seen.Pods[0], Pods: 3, Most: 2}
		s.report(limited)
	}
	waits(concurrency.FlagTotal, 1) // a pod is in progress
	if n := s.metrics.inProgress.count()[shop].awaiting[concurrency.FlagTotal]; n != 2 {
		t.Errorf("%d pods wait, want 2", n)
	}
	overtaken := held // it takes a pod, and another workload's pod has its place
	overtaken.Overtaken = true
	s.report(overtaken)
	fixture.WantTold(t, s.Recorder)
	waits(concurrency.FlagTotal, 0)
	fixture.WantTold(t, s.Recorder, "Normal "+EventAwaitsLimit+" why")
	waits(concurrency.FlagTotal, 0)
	fixture.WantTold(t, s.Recorder)
	waits(concurrency.FlagPerNode, 0)
	fixture.WantTold(t, s.Recorder, "Normal "+EventAwaitsLimit+" why")
	waits(concurrency.FlagPerNode, 1)
	fixture.WantTold(t, s.Recorder)
	s.report(held)
	if n := s.metrics.inProgress.count()[shop].awaiting[concurrency.FlagPerNode]; n != 0 {
		t.Errorf("%d pods wait, want none", n)
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
