package readiness_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

func TestApplied(t *testing.T) {
	at := metav1.NewTime(fixture.Start)
	before := readiness.MovedContainer{Image: "v2", ImageID: "sha256:v1", ContainerID: "p/app", At: at}
	unsure := before
	unsure.Unsure = true
	stopping := unsure
	stopping.Stopping = true
	again := before
	again.Image, again.Restart = "docker.io/library/v1:latest", true
	againUnsure := again
	againUnsure.Unsure = true
	status := func(id, image, imageID string, since time.Time) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", ContainerID: id, Image: image, ImageID: imageID,
				State: fixture.RunningSince(since)}
		}
	}
	observed := func(generation int64) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.ObservedGeneration = generation }
	}
	waiting := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	}
	later := fixture.Start.Add(2 * time.Second)
	cases := map[string]struct {
		container readiness.MovedContainer
		changes   []func(*corev1.Pod)
		now       time.Time
		applied   bool
		wait      time.Duration
	}{
		"not observed":                          {before, []func(*corev1.Pod){observed(1)}, later, false, 0},
		"observed, the old container":           {before, nil, later, false, 0},
		"new container, new image":              {before, []func(*corev1.Pod){status("new", "v2", "sha256:v2", later)}, later, true, 0},
		"new container, new digest, other name": {before, []func(*corev1.Pod){status("new", "sha256:abc", "sha256:v2", later)}, later, true, 0},
		"new container, not observed": {before, []func(*corev1.Pod){status("new", "v2", "sha256:v2", later), observed(1)},
			later, false, 0},
		"new container, kubelet without observed": {before, []func(*corev1.Pod){status("new", "v2", "sha256:v2", later), observed(0)}, later,
			true, 0},
		"the old image crashed once more": {before, []func(*corev1.Pod){status("new", "v1", "sha256:v1", later)}, later, false,
			3 * time.Second},
		"the same digest, stable": {before, []func(*corev1.Pod){status("new", "v1", "sha256:v1", later)},
			later.Add(3 * time.Second), true, 0},
		"the same digest, started before": {before, []func(*corev1.Pod){status("new", "v1", "sha256:v1", fixture.Start.Add(-time.Minute))}, later,
			false, 38 * time.Second},
		"the same digest, another clock": {before, []func(*corev1.Pod){status("new", "v1", "sha256:v1", fixture.Start.Add(-time.Minute))},
			fixture.Start.Add(40 * time.Second), true, 0},
		"new image that cannot be pulled": {before, []func(*corev1.Pod){waiting}, later, false, 0},
		"unsure, named":                   {unsure, []func(*corev1.Pod){status("p/app", "v2", "sha256:v2", later)}, later, true, 0},
		"unsure, named in full": {unsure, []func(*corev1.Pod){status("p/app", "docker.io/library/v2:latest", "", later)}, later,
			true, 0},
		"unsure, named, kubelet without observed": {unsure, []func(*corev1.Pod){status("p/app", "v2", "sha256:v2", later), observed(0)}, later,
			false, 38 * time.Second},
		"stopping, named": {stopping, []func(*corev1.Pod){status("p/app", "v2", "sha256:v2", later)}, later, false,
			38 * time.Second},
		"stopping, new container": {stopping, []func(*corev1.Pod){status("new", "v2", "sha256:v2", later)}, later, true, 0},
		"stopping, after the grace period": {stopping, []func(*corev1.Pod){status("p/app", "v2", "sha256:v2", fixture.Start)},
			fixture.Start.Add(40 * time.Second), true, 0},
		"unsure, another name": {unsure, []func(*corev1.Pod){status("new", "v1", "sha256:v1", later)}, later, false,
			38 * time.Second},
		"a restart, the old container": {again, nil, later, false, 0},
		"a restart, another container": {again, []func(*corev1.Pod){status("new", "v1", "sha256:v1", later)}, later, true, 0},
		"a restart, and its kubelet has not seen the patch": {again, []func(*corev1.Pod){status("new", "v1", "sha256:v1", later), observed(1)},
			later, false, 0},
		"a restart, kubelet without observed": {again, []func(*corev1.Pod){status("new", "v1", "sha256:v1", later), observed(0)}, later, false,
			38 * time.Second},
		"a restart, out of service": {again, []func(*corev1.Pod){status("new", "v1", "sha256:v1", later), fixture.Out}, later, false,
			38 * time.Second},
		"a restart, out of service, after the grace period": {again,
			[]func(*corev1.Pod){status("new", "v1", "sha256:v1", later), fixture.Out}, fixture.Start.Add(40 * time.Second), true, 0},
		"an unsure restart, by its name": {againUnsure, []func(*corev1.Pod){status("new", again.Image, "sha256:v1", later)}, later,
			false, 38 * time.Second},
		"unsure, after the grace period": {unsure, []func(*corev1.Pod){status("new", "v1", "sha256:v1", later)},
			fixture.Start.Add(40 * time.Second), true, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1),
				append([]func(*corev1.Pod){observed(2)}, c.changes...)...)
			move := readiness.Move{Generation: 2, Containers: map[string]readiness.MovedContainer{"app": c.container}}
			for _, kind := range []string{"container", "sidecar"} {
				if applied, wait := move.Applied(pod, c.now); applied != c.applied || wait != c.wait {
					t.Errorf("%s: applied is %v, wait %s", kind, applied, wait)
				}
				asSidecar(pod)
			}
		})
	}
}

func TestMarkOfAnotherPodIsNone(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v2"}, 1))
	pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Generation: 2,
		Containers: map[string]readiness.MovedContainer{"app": {Image: "v2"}}}.String()}
	for generation, known := range map[int64]bool{0: true, 1: false, 2: true, 3: true} {
		pod.Generation = generation
		if got := len(readiness.MoveOf(pod).Containers) > 0; got != known {
			t.Errorf("at generation %d the mark counts: %t, want %t", generation, got, known)
		}
	}
}

// TestMarksAreParsedOnce: a mark is parsed again only when the pod has another one. What it is worth depends on the pod as it is now.
func TestMarksAreParsedOnce(t *testing.T) {
	r := fixture.New(2, fixture.App{Image: "v2"})
	rs := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 2)
	pod := fixture.PodOf(r, "p", rs)
	marked := func(hash string, generation int64) {
		move := readiness.Move{Hash: hash, Generation: generation, Containers: map[string]readiness.MovedContainer{"app": {Image: "v2"}}}
		pod.Annotations = map[string]string{inplace.AnnotationMove: move.String()}
	}
	marked("b", 2)
	if got := readiness.MoveOf(pod); got.Hash != "" {
		t.Errorf("a mark of a generation that the pod has not reached is %+v", got)
	}
	if pod.Generation = 2; readiness.MoveOf(pod).Hash != "b" {
		t.Errorf("the mark is %+v", readiness.MoveOf(pod))
	}
	if allocations := testing.AllocsPerRun(10, func() { readiness.MoveOf(pod) }); allocations != 0 {
		t.Errorf("it takes %v allocations to get it again", allocations)
	}
	if marked("c", 2); readiness.MoveOf(pod).Hash != "c" {
		t.Errorf("the next mark is %+v", readiness.MoveOf(pod))
	}
}

func TestMayGoBack(t *testing.T) {
	its := func(change func(*corev1.ContainerStatus)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { change(&pod.Status.ContainerStatuses[0]) }
	}
	observed := func(pod *corev1.Pod) { pod.Status.ObservedGeneration = 2 }
	unready := its(func(c *corev1.ContainerStatus) { c.Ready = false })
	restarted := its(func(c *corev1.ContainerStatus) { c.ContainerID = "new" })
	updated := its(func(c *corev1.ContainerStatus) { c.ContainerID, c.ImageID = "new", "sha256:v2" })
	renamed := its(func(c *corev1.ContainerStatus) { c.ContainerID, c.Image = "new", "v2" })
	stopped := its(func(c *corev1.ContainerStatus) { c.State = corev1.ContainerState{} })
	neighbour := fixture.ConditionIs(corev1.ContainersReady, corev1.ConditionFalse)
	wasUnready := func(pod *corev1.Pod) { pod.Annotations = map[string]string{"unready": "before"} }
	cases := map[string]struct {
		mark    bool
		changes []func(*corev1.Pod)
		want    bool
	}{
		"never patched":                                   {false, nil, true},
		"just patched":                                    {true, nil, false},
		"a probe flake before the patch":                  {true, []func(*corev1.Pod){unready}, false},
		"a crash before the patch":                        {true, []func(*corev1.Pod){restarted}, false},
		"observed before the kill":                        {true, []func(*corev1.Pod){observed}, false},
		"observed, and its container down":                {true, []func(*corev1.Pod){observed, unready}, true},
		"observed, down, but it came again as it was":     {true, []func(*corev1.Pod){observed, restarted, unready}, false},
		"observed, and it was down before":                {true, []func(*corev1.Pod){observed, unready, wasUnready}, false},
		"observed, and it does not run":                   {true, []func(*corev1.Pod){observed, stopped, wasUnready}, true},
		"observed, and a container that stays is down":    {true, []func(*corev1.Pod){observed, neighbour}, false},
		"observed, and its container is new":              {true, []func(*corev1.Pod){observed, updated, wasUnready}, true},
		"observed, and it came again as it was":           {true, []func(*corev1.Pod){observed, restarted, wasUnready}, false},
		"observed, and the same has come by its new name": {true, []func(*corev1.Pod){observed, renamed, wasUnready}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1),
				append([]func(*corev1.Pod){fixture.Out}, c.changes...)...)
			move := readiness.Move{}
			if c.mark {
				move = readiness.Move{Generation: 2, Containers: map[string]readiness.MovedContainer{"app": {Image: "v2", ImageID: "sha256:v1",
					ContainerID: "p/app", At: metav1.NewTime(fixture.Start), Unready: pod.Annotations["unready"] != ""}}}
			}
			for _, kind := range []string{"container", "sidecar"} {
				if back, _ := move.MayGoBack(nil, pod, fixture.Start); back != c.want {
					t.Errorf("%s: may go back is %v", kind, back)
				}
				asSidecar(pod)
			}
		})
	}
}

// TestStopped: one container may have restarted while another cannot run. What has not been reported may still run.
func TestStopped(t *testing.T) {
	move := readiness.Move{Generation: 2, Containers: map[string]readiness.MovedContainer{
		"app":  {Image: "v2", ImageID: "sha256:v1", ContainerID: "p/app", At: metav1.NewTime(fixture.Start)},
		"side": {Image: "s2", ImageID: "sha256:s1", ContainerID: "p/side", At: metav1.NewTime(fixture.Start)}}}
	restarted := corev1.ContainerStatus{Name: "app", ContainerID: "new", Image: "v2", State: fixture.RunningSince(fixture.Start)}
	runs := corev1.ContainerStatus{Name: "side", ContainerID: "p/side", Image: "s1", Ready: true, State: fixture.RunningSince(fixture.Start)}
	waits := corev1.ContainerStatus{Name: "side", ContainerID: "p/side", Image: "s1"}
	for name, test := range map[string]struct {
		observed int64
		reports  []corev1.ContainerStatus
		want     bool
	}{
		"the other one cannot run":                        {2, []corev1.ContainerStatus{restarted, waits}, true},
		"the other one still runs":                        {2, []corev1.ContainerStatus{restarted, runs}, false},
		"the other one does not run, as before the patch": {0, []corev1.ContainerStatus{restarted, waits}, false},
		"the other one is not reported":                   {2, []corev1.ContainerStatus{restarted}, false},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ObservedGeneration: test.observed, ContainerStatuses: test.reports}}
		if got, _ := move.Stopped(pod, fixture.Start); got != test.want {
			t.Errorf("%s: stopped %t", name, got)
		}
	}
}

// TestRestarted: until a container certainly is another one, a pre-pull pod keeps its image on the node.
func TestRestarted(t *testing.T) {
	move := readiness.Move{Containers: map[string]readiness.MovedContainer{"app": {Image: "v2", ImageID: "sha256:v1", ContainerID: "old"}}}
	for name, test := range map[string]struct {
		id, image, imageID string
		want               bool
	}{
		"another container, another image":                      {"new", "sha256:v2", "sha256:v2", true},
		"another container, the same image by its new name":     {"new", "v2", "sha256:v1", true},
		"another container, and only the name of its image":     {"new", "v2", "", true},
		"it failed, and came again as it was":                   {"new", "v1", "sha256:v1", false},
		"another container, of which no image is reported":      {"new", "", "", false},
		"the old container":                                     {"old", "v1", "sha256:v1", false},
		"the old container, whose image now has both names":     {"old", "v2", "sha256:v1", false},
		"no container yet, and what its image is to be already": {"", "v2", "sha256:v2", false},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", ContainerID: test.id, Image: test.image, ImageID: test.imageID}}}}
		if got := move.Restarted(pod); got != test.want {
			t.Errorf("%s: restarted %t", name, got)
		}
	}
}

// TestKilled: it takes as long as the container that was patched last may take to stop.
func TestKilled(t *testing.T) {
	move := readiness.Move{Containers: map[string]readiness.MovedContainer{"app": {At: metav1.NewTime(fixture.Start)},
		"side": {At: metav1.NewTime(fixture.Start.Add(10 * time.Second))}}}
	for after, wait := range map[time.Duration]time.Duration{30 * time.Second: 20 * time.Second, 45 * time.Second: 5 * time.Second,
		50 * time.Second: 0} {
		if killed, left := move.Killed(&corev1.Pod{}, fixture.Start.Add(after)); killed != (wait == 0) || left != wait {
			t.Errorf("after %s: killed %t, wait %s", after, killed, left)
		}
	}
}

// asSidecar makes the pod's first container a sidecar, beside a container that no patch changes.
func asSidecar(pod *corev1.Pod) {
	side, status := pod.Spec.Containers[0], pod.Status.ContainerStatuses[0]
	side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	pod.Spec.InitContainers, pod.Status.InitContainerStatuses = []corev1.Container{side}, []corev1.ContainerStatus{status}
	pod.Spec.Containers[0].Name, pod.Status.ContainerStatuses[0] = "beside", corev1.ContainerStatus{Name: "beside", ContainerID: "p/beside",
		Ready: true, State: fixture.RunningSince(fixture.Start)}
}

// TestMayGoBackAfterASecondEdit has a pod whose container app was patched first, and then side, or app again.
func TestMayGoBackAfterASecondEdit(t *testing.T) {
	at := metav1.NewTime(fixture.Start)
	app2 := readiness.MovedContainer{Image: "v2", ImageID: "sha256:v1", ContainerID: "p/app", At: at}
	side2 := readiness.MovedContainer{Image: "s2", ImageID: "sha256:s1", ContainerID: "p/side", At: at}
	again := readiness.MovedContainer{Image: "v3", ContainerID: "p/app", At: at, Unsure: true}
	cases := map[string]struct {
		// If statuses is set, the pod was unready before the last patch. ids are the IDs of new containers, and statuses are their images.
		moved         map[string]readiness.MovedContainer
		ids, statuses map[string]string
		running       bool
		want          bool
	}{
		"only the first has restarted": {map[string]readiness.MovedContainer{"app": app2, "side": side2}, map[string]string{"app": "new"},
			nil, true, false},
		"both have": {map[string]readiness.MovedContainer{"app": app2, "side": side2},
			map[string]string{"app": "new", "side": "new"}, nil, true, true},
		"one in between runs, unready": {map[string]readiness.MovedContainer{"app": again}, map[string]string{"app": "new"},
			map[string]string{"app": "v2"}, true, false},
		"none runs": {map[string]readiness.MovedContainer{"app": again}, map[string]string{"app": "new"},
			map[string]string{"app": "v2"}, false, true},
		"the last runs": {map[string]readiness.MovedContainer{"app": again}, map[string]string{"app": "new"},
			map[string]string{"app": "v3"}, true, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1", Sidecar: "s1"})
			pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", Sidecar: "s1"}, 1), fixture.Out)
			pod.Status.ObservedGeneration = 2
			if c.statuses != nil {
				fixture.ConditionIs(corev1.ContainersReady, corev1.ConditionFalse)(pod)
			}
			for i := range pod.Status.ContainerStatuses {
				status := &pod.Status.ContainerStatuses[i]
				status.ContainerID, status.Image = cmp.Or(c.ids[status.Name], status.ContainerID), cmp.Or(c.statuses[status.Name], status.Image)
				status.Ready = c.statuses == nil
				if c.ids[status.Name] != "" {
					status.ImageID = "sha256:new"
				}
				if !c.running {
					status.State = corev1.ContainerState{}
				}
			}
			for name, moved := range c.moved {
				moved.Unready = c.statuses != nil
				c.moved[name] = moved
			}
			move := readiness.Move{Generation: 2, Containers: c.moved}
			if back, _ := move.MayGoBack(nil, pod, fixture.Start); back != c.want {
				t.Errorf("may go back is %v", back)
			}
		})
	}
}

func TestMarkKeepsWhatIsPending(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v1", Sidecar: "s1"})
	pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", Sidecar: "s1"}, 1))
	first := readiness.Move{}.Next(pod, "b", nil, fixture.Reimaged("app", "v2"), fixture.Start)
	if first.Generation != 2 || first.Containers["app"].ContainerID != "p/app" || first.Containers["app"].Unsure {
		t.Errorf("the first mark is %+v", first)
	}
	pod.Generation = 2
	second := first.Next(pod, "c", first.Pending(pod, fixture.Start), fixture.Reimaged("side", "s2"), fixture.Start)
	if second.Generation != 3 || second.Containers["app"] != first.Containers["app"] || second.Containers["side"].Unsure {
		t.Errorf("the second mark is %+v: app is still on its way, side was not", second)
	}
	pod.Generation = 3
	third := second.Next(pod, "a", second.Pending(pod, fixture.Start), fixture.Reimaged("app", "v1"), fixture.Start)
	if !third.Containers["app"].Unsure {
		t.Errorf("the third mark is %+v: app may still run v1, and then never restarts", third)
	}
	if third.Containers["app"].Stopping {
		t.Errorf("the third mark is %+v: no kubelet has acted on the one before", third)
	}
	pod.Status.ObservedGeneration = 3
	seen := second.Next(pod, "a", second.Pending(pod, fixture.Start), fixture.Reimaged("app", "v1"), fixture.Start)
	if !seen.Containers["app"].Stopping {
		t.Errorf("the third mark is %+v: the kubelet has acted on the one before, so app stops", seen)
	}
	for id, stopping := range map[string]bool{"p/app": true, "new": false} {
		pod.Generation, pod.Status.ContainerStatuses[0].ContainerID = 4, id
		fourth := seen.Next(pod, "b", seen.Pending(pod, fixture.Start), fixture.Reimaged("app", "v2"), fixture.Start)
		if fourth.Containers["app"].Stopping != stopping {
			t.Errorf("the fourth mark is %+v: p/app was about to stop, and %s runs", fourth, id)
		}
	}
	pod.Generation, pod.Status.ContainerStatuses[0].ContainerID = 3, "p/app"
	pod.Status.ObservedGeneration = 0
	label := third.Next(pod, "d", third.Pending(pod, fixture.Start), edit.Change{}, fixture.Start)
	if label.Hash != "d" || label.Generation != third.Generation || len(label.Containers) != 2 {
		t.Errorf("a change of labels alone made the mark %+v", label)
	}
}

// TestMarkWhereGenerationsAreNotCounted: a generation in the mark would say that a pod which was taken out of service once more has been
// patched already, so that it came back before its containers restart.
func TestMarkWhereGenerationsAreNotCounted(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v1"})
	pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1))
	pod.Generation, pod.Status.ObservedGeneration = 0, 0
	mark := readiness.Move{}.Next(pod, "b", nil, fixture.Reimaged("app", "v2"), fixture.Start)
	if fixture.Out(pod); mark.PatchedSinceOut(pod) {
		t.Errorf("the mark is %+v", mark)
	}
}

// TestNothingProvesNothing: a mark without containers, of a pod whose kubelet reports no generation.
func TestNothingProvesNothing(t *testing.T) {
	pod, move := &corev1.Pod{}, readiness.Move{}
	if move.Observed(pod) || move.OldStopped(pod, pod) || move.Restarted(pod) {
		t.Error("an empty mark proves something")
	}
}

// TestARestartNeedsAnotherReport: a container that restarts with its own image, and is another one now, may have failed before its kubelet
// knew of the patch. Only the report before tells.
func TestARestartNeedsAnotherReport(t *testing.T) {
	move := readiness.Move{Generation: 2, Containers: map[string]readiness.MovedContainer{"app": {Image: "docker.io/library/v1:latest",
		ImageID: "sha256:v1", ContainerID: "old", At: metav1.NewTime(fixture.Start), Restart: true}}}
	pod := &corev1.Pod{}
	report := func(id string, observed int64, ready bool) *corev1.Pod {
		report := pod.DeepCopy()
		report.Status.ObservedGeneration = observed
		report.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: id, Image: "v1", ImageID: "sha256:v1",
			Ready: ready, State: fixture.RunningSince(fixture.Start)}}
		return report
	}
	for name, test := range map[string]struct {
		last    *corev1.Pod
		report  *corev1.Pod
		stopped bool
	}{
		"no report before":               {nil, report("new", 2, false), false},
		"the old one, and it was seen":   {report("old", 2, true), report("new", 2, true), true},
		"the old one, and it was not":    {report("old", 1, true), report("new", 2, true), false},
		"the new one":                    {report("new", 2, true), report("new", 2, true), false},
		"the old one, which is unready":  {nil, report("old", 2, false), true},
		"a report without a container":   {report("old", 2, true), report("", 2, true), false},
		"a report without any container": {report("old", 2, true), pod, false},
	} {
		if got := move.OldStopped(test.last, test.report); got != test.stopped {
			t.Errorf("%s: stopped %t", name, got)
		}
	}
}

// TestMarkOfASidecar: what the mark notes of a sidecar comes from the sidecar's own status.
func TestMarkOfASidecar(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v1", Mesh: "m1"})
	pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", Mesh: "m1"}, 1))
	does := edit.Change{Containers: append(fixture.Reimaged("app", "v2").Containers, fixture.Reimaged("mesh", "m2").Containers...)}
	mark := readiness.Move{}.Next(pod, "b", nil, does, fixture.Start)
	want := strings.ReplaceAll(`{"hash":"b","generation":2,"containers":{"app":{"image":"v2","imageID":"sha256:v1","containerID":"p/app","at":"AT"},`+
		`"mesh":{"image":"m2","imageID":"sha256:m1","containerID":"p/mesh","at":"AT"}}}`, "AT", fixture.Start.UTC().Format(time.RFC3339))
	if mark.String() != want {
		t.Errorf("got  %s\nwant %s", mark, want)
	}
	pod.Generation, pod.Annotations = 2, map[string]string{inplace.AnnotationMove: want}
	if got := readiness.MoveOf(pod); got.String() != want {
		t.Errorf("it is read as %+v", got)
	}
}

func TestMarkIsBoundedByWhatAPodCanNeed(t *testing.T) {
	long := strings.Repeat("x", 500)
	for name, test := range map[string]struct {
		containers, marked int
		counts             bool
	}{
		"every container with long names": {30, 30, true},
		"as many as annotations can hold": {2, 100, false},
	} {
		pod, mark := &corev1.Pod{}, readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{}}
		for i := range test.containers {
			if i%2 == 0 {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{})
				continue
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{})
		}
		for i := range test.marked {
			mark.Containers[long[:60]+fmt.Sprint(i)] = readiness.MovedContainer{Image: long, ImageID: long, ContainerID: long,
				At: metav1.NewTime(fixture.Start), Unsure: true}
		}
		pod.Annotations = map[string]string{inplace.AnnotationMove: mark.String()}
		if got := readiness.MoveOf(pod).Hash != ""; got != test.counts {
			t.Errorf("%s: a mark of %d bytes counts: %t", name, len(mark.String()), got)
		}
	}
}

// TestMarksOfOtherVersionsAreRead: pods keep their marks while Stayput is upgraded or downgraded.
func TestMarksOfOtherVersionsAreRead(t *testing.T) {
	const mark = `{"hash":"b","generation":3,"containers":{"app":{"image":"v2","imageID":"sha256:v1","containerID":"p/app",` +
		`"at":"2026-01-02T03:04:05Z"},` +
		`"side":{"image":"s2","at":"2026-01-02T03:04:05Z","unsure":true,"unready":true,"restart":true}},` +
		`"back":{"app":"v1","mesh":"m1","side":"s1"}}`
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{inplace.AnnotationMove: mark}}}
	if got := readiness.MoveOf(pod).String(); got != mark {
		t.Errorf("got  %s\nwant %s", got, mark)
	}
	if got, want := (readiness.Move{Hash: "b"}).String(), `{"hash":"b"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
