package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/replicas"
	"github.com/stayput/stayput/inplace/serving"
	"github.com/stayput/stayput/inplace/statuses"
	"github.com/stayput/stayput/inplace/steps"
)

// twoOfFour is a Deployment of 4 of which 2 may be missed: p and q are on the target, r and s on the source. Its status says so.
func twoOfFour(p, q, r, s func(*corev1.Pod)) *deployments.Rollout {
	rollout := fixture(4, app{image: "v2"})
	two := intstr.FromInt32(2)
	rollout.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = &two
	source, target := replicaSetOf(rollout, "a", app{image: "v1"}, 2), replicaSetOf(rollout, "b", app{image: "v2"}, 2)
	for i, change := range []func(*corev1.Pod){p, q, r, s} {
		rs := []*apps.ReplicaSet{target, target, source, source}[i]
		rs.Labels[inplace.LabelSettling] = begun
		pod := podOf(rollout, string("pqrs"[i]), rs, nonNil(change))
		if conditions.IsTrue(pod, corev1.PodReady) {
			rs.Status.ReadyReplicas++
			rs.Status.AvailableReplicas++
		}
	}
	rollout.Deployment.Status = statuses.Formula{Deployment: rollout.Deployment, Sets: rollout.ReplicaSets, Target: target, Now: start}.NativeStatus()
	statuses.RemoveCondition(&rollout.Deployment.Status, appsv1.DeploymentProgressing)
	statuses.SetCondition(&rollout.Deployment.Status, statuses.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, statuses.ReasonUpdated, "", start))
	rollout.Beats = steps.Beats{}
	return rollout
}

// TestBeats: what is due waits for what comes within a beat, and no longer.
func TestBeats(t *testing.T) {
	seen := func(ago time.Duration) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) { r.Ahead = readiness.Ahead{"q": start.Add(-ago)} }
	}
	waited := func(what steps.PutOff, ago time.Duration) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) { r.Beats = steps.Beats{what: start.Add(-ago)} }
	}

	goingOut := func(pod *corev1.Pod) {
		drained(pod)
		conditions.Condition(pod, corev1.PodReady).Status = corev1.ConditionTrue
	}
	lately := func(pod *corev1.Pod) {
		drained(pod)
		conditions.Condition(pod, inplace.ConditionServing).LastTransitionTime.Time = start
	}
	out := func(since time.Duration) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) {
			r.Settings.Drain = 2 * time.Second
			r.Endpoints = serving.Endpoints{"r": {NobodySent: true}, "s": {OutSince: start.Add(-since)}}
		}
	}
	cases := map[string]struct {
		rollout *deployments.Rollout
		change  []func(*deployments.Rollout)
		steps   string
		putOff  string
	}{
		"nobody comes back":              {twoOfFour(nil, unready, nil, nil), nil, "close r", ""},
		"one comes back in a moment":     {twoOfFour(nil, aheadSince(start), nil, nil), []func(*deployments.Rollout){seen(readiness.Lasts - steps.Beat)}, "", "start"},
		"one comes back later":           {twoOfFour(nil, aheadSince(start), nil, nil), nil, "close r", ""}, // nobody has seen when it came
		"the moment is over":             {twoOfFour(nil, aheadSince(start), nil, nil), []func(*deployments.Rollout){seen(readiness.Lasts - steps.Beat), waited(steps.PutOffStart, steps.Beat)}, "close r", ""},
		"the caller puts nothing off":    {twoOfFour(nil, aheadSince(start), nil, nil), []func(*deployments.Rollout){seen(readiness.Lasts - steps.Beat), func(r *deployments.Rollout) { r.Beats = nil }}, "close r", ""},
		"both are drained":               {twoOfFour(nil, nil, drained, drained), nil, "2 → 0", ""},
		"the other is not known to be":   {twoOfFour(nil, nil, drained, goingOut), nil, "", "move"},
		"the other is nearly drained":    {twoOfFour(nil, nil, lately, lately), []func(*deployments.Rollout){out(2*time.Second - steps.Beat)}, "", "move"},
		"the other has just begun to be": {twoOfFour(nil, nil, lately, lately), []func(*deployments.Rollout){out(time.Second)}, "2 → 1", ""},
		"it has waited for the other":    {twoOfFour(nil, nil, drained, goingOut), []func(*deployments.Rollout){waited(steps.PutOffMove, steps.Beat)}, "2 → 1", ""},
		"one became ready":               {twoOfFour(nil, nil, drained, drained), []func(*deployments.Rollout){countReady(1)}, "2 → 0", "status"},
		"one became ready long ago":      {twoOfFour(nil, nil, drained, drained), []func(*deployments.Rollout){countReady(1), waited(steps.PutOffStatus, steps.StatusBeat)}, "status, 2 → 0", ""},
		"the edit was not noted yet":     {twoOfFour(nil, unready, drained, drained), []func(*deployments.Rollout){editedAnew}, "status, 2 → 0", ""},
		"too few are available":          {twoOfFour(nil, nil, drained, drained), []func(*deployments.Rollout){countReady(-2)}, "status, 2 → 0", ""},
		"too few, while one moves":       {twoOfFour(nil, nil, drained, drained), []func(*deployments.Rollout){countReady(-2), uncounted}, "2 → 0", "status"},
		"too few, and one moves on":      {twoOfFour(nil, nil, drained, drained), []func(*deployments.Rollout){countReady(-2), uncounted, waited(steps.PutOffStatus, steps.Beat)}, "status, 2 → 0", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {

			for _, change := range c.change {
				change(c.rollout)
			}
			plan := c.rollout.Plan()
			if planned := brief(plan.Steps); planned != c.steps {
				t.Errorf("steps are %q, not %q", planned, c.steps)
			}
			if putOff := strings.Join(stringsOf(plan.PutOff), ", "); putOff != c.putOff {
				t.Errorf("put off is %q, not %q", putOff, c.putOff)
			}
			if c.putOff != "" && (plan.After == 0 || plan.After > steps.StatusBeat) {
				t.Errorf("what was put off is looked at again after %s", plan.After)
			}
		})
	}
}

// countReady has the target's controller count as many more pods as ready.
func countReady(more int32) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) {
		for _, rs := range r.ReplicaSets {
			rs.Status.ReadyReplicas = max(0, rs.Status.ReadyReplicas+more)
			rs.Status.AvailableReplicas = max(0, rs.Status.AvailableReplicas+more)
		}
	}
}

func editedAnew(r *deployments.Rollout) { r.Deployment.Generation++ }

func uncounted(r *deployments.Rollout) { r.ReplicaSets[1].Status.Replicas-- }

func stringsOf(all []steps.PutOff) []string {
	var texts []string
	for _, each := range all {
		texts = append(texts, string(each))
	}
	return texts
}

func brief(planned []steps.Step) string {
	var texts []string
	for _, step := range planned {
		switch step := step.(type) {
		case steps.SetGate:
			texts = append(texts, map[bool]string{true: "open ", false: "close "}[step.Open]+step.Pod.Name)
		case steps.PatchReplicaSet:
			texts = append(texts, strings.TrimPrefix(step.Why, "replicas "))
		case steps.PatchPod:
			texts = append(texts, "move "+step.Pod.Name)
		case steps.PatchStatus:
			texts = append(texts, "status")
		}
	}
	return strings.Join(texts, ", ")
}

func TestBeatsAreCountedFromTheFirst(t *testing.T) {
	beats := steps.Beats{steps.PutOffMove: start, steps.PutOffStatus: start}.Next(steps.Plan{PutOff: []steps.PutOff{steps.PutOffStart, steps.PutOffMove}}, start.Add(steps.Beat))
	if len(beats) != 2 || beats[steps.PutOffMove] != start || beats[steps.PutOffStart] != start.Add(steps.Beat) {
		t.Errorf("since when something is put off: %v", beats)
	}
}

func TestTogether(t *testing.T) {
	open, closes, status, move := steps.SetGate{Open: true}, steps.SetGate{}, steps.PatchStatus{}, steps.PatchPod{}
	d := steps.Draft{}
	for _, step := range []steps.Step{closes, move, open, closes, steps.PatchReplicaSet{}, status, open} {
		d.Step(step)
	}
	d.Arrange()
	var sizes []int
	for _, lot := range steps.Together(d.Result.Steps) {
		sizes = append(sizes, len(lot))
	}
	if !slices.Equal(sizes, []int{2, 1, 2, 2}) {
		t.Errorf("lots of %v steps, not gates that open, the status, the rest, and gates that close", sizes)
	}
	if steps.Together(nil) != nil {
		t.Error("no steps are some lots")
	}
}

func TestSurplusPasses(t *testing.T) {
	sizes := func(source, target int32) func(source, target *apps.ReplicaSet) {
		return func(s, t *apps.ReplicaSet) { s.Spec.Replicas, t.Spec.Replicas = &source, &target }
	}
	and := func(changes ...func(source, target *apps.ReplicaSet)) func(source, target *apps.ReplicaSet) {
		return func(source, target *apps.ReplicaSet) {
			for _, change := range changes {
				change(source, target)
			}
		}
	}
	leaves := func(source, _ *apps.ReplicaSet) { source.Status.Replicas = 3 }
	comes := func(_, target *apps.ReplicaSet) { target.Status.Replicas = 1 }
	unobserved := func(source, _ *apps.ReplicaSet) { source.Generation = 2 }
	cases := map[string]struct {
		change func(source, target *apps.ReplicaSet)
		of     string
		passes bool
	}{
		"lowered and observed":                  {sizes(1, 2), "web-a", true},
		"lowered, and some have left":           {and(sizes(1, 2), leaves), "web-a", true},
		"lowered and not observed":              {and(sizes(1, 2), unobserved), "web-a", false},
		"not lowered":                           {sizes(2, 2), "web-a", false},
		"not marked":                            {and(sizes(1, 2), func(source, _ *apps.ReplicaSet) { delete(source.Labels, inplace.LabelSettling) }), "web-a", false},
		"come to a source, and not counted":     {and(sizes(1, 2), func(source, _ *apps.ReplicaSet) { source.Status.Replicas = 1 }), "web-a", false},
		"come and not counted":                  {and(sizes(2, 1), comes), "web-b", true},
		"come and counted":                      {sizes(2, 1), "web-b", true},
		"come and not counted, others to leave": {and(sizes(1, 1), comes), "web-b", true},
		"the source was not observed":           {and(sizes(1, 1), comes, unobserved), "web-b", false},
		"gone":                                  {sizes(1, 1), "web-c", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := twoOfFour(nil, nil, nil, nil)
			c.change(r.ReplicaSets[0], r.ReplicaSets[1])
			if passes := replicas.SurplusPasses(c.of, r.ReplicaSets, r.Pods, r.Target()); passes != c.passes {
				t.Errorf("the surplus passes: %t, want %t", passes, c.passes)
			}
		})
	}
}

// The ReplicaSet controller's cache of pods is late: it has counted r and s of the source before r moved, but not x, which it has made for a pod that
// somebody deleted. Ours has come to show x, so that the count is what it should be without r.
func TestReplacementHidesThatAPodHasLeft(t *testing.T) {
	rollout := fixture(3, app{image: "v2"})
	rollout.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
	source, target := replicaSetOf(rollout, "a", app{image: "v1"}, 1), replicaSetOf(rollout, "b", app{image: "v2"}, 0)
	source.Labels[inplace.LabelSettling], target.Labels[inplace.LabelSettling] = begun, begun
	source.Status.Replicas = 2
	rollout.Beats = steps.Beats{}
	podOf(rollout, "s", source)
	podOf(rollout, "r", target, drained)
	podOf(rollout, "x", source).CreationTimestamp = metav1.NewTime(start)
	for _, step := range rollout.Plan().Steps {
		if p, ok := step.(steps.PatchReplicaSet); ok && p.ReplicaSet == target {
			t.Errorf("the target is raised although its controller may not know r yet: %s", p.Why)
		}
	}
}
