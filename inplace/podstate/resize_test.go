package podstate_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestAvailableInAResize: a pod counts as unavailable from the note of a resize until its kubelet has done it. If another edit came in
// between and the resize was never written, the note says nothing. Nothing would ever end such a state.
func TestAvailableInAResize(t *testing.T) {
	for name, c := range map[string]struct {
		noted, spec, status string // CPU; "" is no note
		gets                string
		want                bool
	}{
		"nothing is noted yet":                      {"", "100m", "100m", "200m", true},
		"noted, not written":                        {"200m", "100m", "100m", "200m", false},
		"written, not done":                         {"200m", "200m", "100m", "200m", false},
		"done":                                      {"200m", "200m", "200m", "200m", true},
		"noted for another edit, not written":       {"9000m", "100m", "100m", "200m", true},
		"noted for another edit, which was undone":  {"9000m", "100m", "100m", "100m", true},
		"written for another edit, not done":        {"300m", "300m", "100m", "200m", false},
		"written for another edit, done":            {"300m", "300m", "300m", "200m", true},
		"written for an edit that was undone, done": {"300m", "300m", "300m", "100m", true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := resizing(t, c.noted, c.spec, c.status)
			if s := stateToResize(pod, c.gets); s.Available != c.want {
				t.Errorf("available %v, want %v", s.Available, c.want)
			}
		})
	}
}

// TestAvailableWithoutCapacity: a pod that its kubelet has not begun to resize serves unchanged, and counts. It must not count if a
// container restarts as soon as there is capacity.
func TestAvailableWithoutCapacity(t *testing.T) {
	for name, c := range map[string]struct {
		condition corev1.PodConditionType
		reason    string
		restarts  bool
		want      bool
	}{
		"deferred":                      {corev1.PodResizePending, corev1.PodReasonDeferred, false, true},
		"deferred, and restarts then":   {corev1.PodResizePending, corev1.PodReasonDeferred, true, false},
		"refused":                       {corev1.PodResizePending, corev1.PodReasonInfeasible, false, true},
		"refused, so that none restart": {corev1.PodResizePending, corev1.PodReasonInfeasible, true, true},
		"in progress":                   {corev1.PodResizeInProgress, "", false, false},
	} {
		pod := resizing(t, "200m", "200m", "100m")
		reports(pod, c.condition, c.reason)
		move := readiness.MoveOf(pod)
		app := move.Resize["app"]
		app.Restarts = c.restarts
		move.Resize = readiness.Resize{"app": app}
		pod.Annotations[inplace.AnnotationMove] = move.String()
		if s := stateToResize(pod, "200m"); s.Available != c.want || s.Serving != c.want {
			t.Errorf("%s: available %t, serving %t", name, s.Available, s.Serving)
		}
	}
}

// reports has the kubelet report that the pod's resize is not done.
func reports(pod *corev1.Pod, kind corev1.PodConditionType, reason string) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason,
		Message: "no room", ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(fixture.Start)})
}

// TestResizesOfUsers: a user resizes a pod directly, and its kubelet is at it. An update neither waits for that nor undoes it.
func TestResizesOfUsers(t *testing.T) {
	pod := resizing(t, "", "300m", "100m")
	reports(pod, corev1.PodResizeInProgress, "")
	if s := stateToResize(pod, "100m"); s.Resizing || s.Needs().Left() || !s.Available {
		t.Errorf("resizing %t, needs %s, available %t", s.Resizing, s.Needs(), s.Available)
	}
}

// TestResizeDeadline: a resize never fails in a Deployment without a deadline.
func TestResizeDeadline(t *testing.T) {
	for want, seconds := range map[time.Duration]*int32{
		10 * time.Minute: nil, 0: new(int32(math.MaxInt32)), time.Minute: new(int32(60)),
	} {
		if got := podstate.ResizeDeadline(seconds); got != want {
			t.Errorf("the deadline is %s, not %s", got, want)
		}
	}
}

// TestIsBack: an undo is complete when each pod has the CPU and memory of its revision again. A pod that cannot get them back, or takes too
// long, must not keep the update from its end.
func TestIsBack(t *testing.T) {
	const deadline = 10 * time.Minute
	restart, resize := fixture.Reimaged("app", "v1").Containers, edit.ContainerChanges{
		{Container: "app", Resources: edit.ResourceChange{To: edit.Amounts{CPURequest: "100m"}}}}
	for name, c := range map[string]struct {
		noted, status string
		pending       string
		after         time.Duration
		containers    edit.ContainerChanges
		other         bool // it has another revision than that of the update
		want          bool
		wait          time.Duration
	}{
		"done":                        {noted: "200m", status: "100m", want: true},
		"not partially patched":       {status: "100m"},
		"of an old revision":          {noted: "200m", status: "100m", other: true},
		"not written":                 {noted: "200m", status: "200m", containers: resize},
		"its containers restart next": {noted: "200m", status: "100m", containers: restart},
		"not done":                    {noted: "200m", status: "200m", wait: deadline},
		"not done, and restarts next": {noted: "200m", status: "200m", containers: restart, wait: deadline},
		"deferred":                    {noted: "200m", status: "200m", pending: corev1.PodReasonDeferred, wait: deadline},
		"refused":                     {noted: "200m", status: "200m", pending: corev1.PodReasonInfeasible, want: true, wait: deadline},
		"too late":                    {noted: "200m", status: "200m", after: deadline, want: true},
	} {
		pod := resizing(t, c.noted, "100m", c.status)
		if c.pending != "" {
			reports(pod, corev1.PodResizePending, c.pending)
		}
		marked := podstate.MarkedPod{Pod: pod, Move: readiness.MoveOf(pod), PodRevision: podstate.PodRevision{Updated: !c.other}}
		s := &podstate.Work{MarkedPod: marked, Containers: c.containers, Resizing: !marked.Move.Resized(pod)}
		if back, wait := s.IsBack(deadline, fixture.Start.Add(c.after)); back != c.want || wait != c.wait {
			t.Errorf("%s: back %t, and again in %s", name, back, wait)
		}
	}
}

// TestNotResized: a pod's node has no room. The update falls back when all others are done. Pods that stay as they are must not keep it
// from that, or it would never end.
func TestNotResized(t *testing.T) {
	updated := podstate.State{}
	updated.Updated = true
	for name, c := range map[string]struct {
		other podstate.State
		falls bool
	}{
		"the other is updated":            {updated, true},
		"the other is a surge pod":        {podstate.State{Surge: true}, true},
		"the other is at the partition":   {podstate.State{AtPartition: true}, true},
		"the other has yet to be moved":   {podstate.State{}, false},
		"the other is infeasible as well": {podstate.State{Infeasible: "no room there"}, true},
	} {
		c.other.Pod = &corev1.Pod{}
		infeasible := &podstate.State{Infeasible: "no room"}
		infeasible.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		why := podstate.NotResized(&steps.PlanBuilder{}, []*podstate.State{infeasible, &c.other}, true, time.Minute, fixture.Start)
		if falls := why != nil && why.Message == "pod p does not get its CPU and memory: no room"; falls != c.falls {
			t.Errorf("%s: falls back because of %v", name, why)
		}
	}
}

// resizing returns a pod with that mark, whose spec and status have that CPU.
func resizing(t *testing.T, noted, spec, status string) *corev1.Pod {
	t.Helper()
	r := fixture.New(1, fixture.App{Image: "v1", CPU: "100m"})
	pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", CPU: "100m"}, 1))
	pod.Spec.NodeName = "n1" // a pod on no node has no kubelet that must act
	pod.Spec.Containers[0].Resources = resourcesOf(spec)
	pod.Status.ContainerStatuses[0].Resources = new(resourcesOf(status))
	if noted == "" {
		return pod
	}
	mark, err := json.Marshal(readiness.Move{Hash: "b", Resize: readiness.Resize{"app": {
		Back: edit.AmountsOf(resourcesOf("100m")), To: edit.AmountsOf(resourcesOf(noted)), At: metav1.NewTime(fixture.Start)}}})
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations = map[string]string{inplace.AnnotationMove: string(mark)}
	return pod
}

func resourcesOf(cpu string) corev1.ResourceRequirements {
	return fixture.App{CPU: cpu}.Template().Typed().Spec.Containers[0].Resources
}

// stateToResize returns the state of the pod of an old ReplicaSet of which the new one has that CPU.
func stateToResize(pod *corev1.Pod, gets string) podstate.State {
	r := fixture.New(1, fixture.App{Image: "v1", CPU: gets})
	from, to := fixture.App{Image: "v1", CPU: "100m"}.Template(), fixture.App{Image: "v1", CPU: gets}.Template()
	change := edit.Compare(from, to, r.Seen.Rules)
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v1", CPU: gets}, 0)
	revision := podstate.PodRevision{Revision: "web-a", TemplateContainers: edit.Living(&from.Decoded().Spec), Change: &change,
		UpdateHash: "b"}
	newPods := r.Seen.DryRun.Of(newRS.UID, to, edit.Living(&to.Decoded().Spec))
	return podstate.StateOf(&steps.PlanBuilder{}, pod, revision, newPods, 0, fixture.Start)
}
