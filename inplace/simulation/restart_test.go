package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/sample"
)

// imageNames returns the images of the pods, in the order of their numbers.
func (s *lockstep) imageNames() string {
	var all []string
	for _, pod := range sorted(s.pods.objects) {
		all = append(all, pod.Spec.Containers[0].Image)
	}
	return strings.Join(all, " ")
}

func TestStepsOfARestart(t *testing.T) {
	s := newLockstep(t, 2, nil)
	before := sorted(s.pods.objects)
	s.edit("restarts", fixture.App{Image: "v1", Restarted: "1"})
	s.rest()
	if renewed, out := slices.Index(s.steps, "renew 1"), slices.Index(s.steps, "out 1"); out < 0 ||
		s.times[out].Sub(s.times[renewed]) < time.Second {
		t.Errorf("the kubelet had no time to write volumes anew: %v", s.times)
	}
	s.expect("A marks", "B marks", "renew 1", "out 1", "A 2 → 1", "move 1", "B 0 → 1", "renew 2", "out 2", "A 1 → 0", "move 2", "B 1 → 2",
		"A marks", "B marks")
	s.intact(before)
	if got, want := s.imageNames(), fixture.Another+" "+fixture.Another; got != want {
		t.Errorf("the pods have %s, want %s", got, want)
	}
	ids := map[string]string{}
	for _, pod := range before {
		if left := s.pods.objects[pod.Name].Annotations[inplace.AnnotationRestarts]; left != "" {
			t.Errorf("%s still has an annotation that says %s", pod.Name, left)
		}
		if ids[pod.Name] = s.kubelet.state[pod.Name]["app"].id; ids[pod.Name] == pod.Status.ContainerStatuses[0].ContainerID {
			t.Errorf("%s has not restarted", pod.Name)
		}
	}
	s.edit("restarts", fixture.App{Image: "v1", Restarted: "2"})
	s.rest()
	s.intact(before)
	if got, want := s.imageNames(), "v1 v1"; got != want {
		t.Errorf("after another restart the pods have %s, want %s", got, want)
	}
	for _, pod := range before {
		if s.kubelet.state[pod.Name]["app"].id == ids[pod.Name] {
			t.Errorf("%s has not restarted again", pod.Name)
		}
	}
}

// TestRestartUndoneMidUpdate: pods that have restarted do so again, the others are left alone.
func TestRestartUndoneMidUpdate(t *testing.T) {
	s := newLockstep(t, 4, nil)
	before := sorted(s.pods.objects)
	s.edit("restarts", fixture.App{Image: "v1", Restarted: "1"})
	s.until(s.moved(2))
	s.edit("undoes", fixture.App{Image: "v1"})
	s.rest()
	s.intact(before)
	untouched := 0
	for _, pod := range before {
		if s.kubelet.state[pod.Name]["app"].id == pod.Status.ContainerStatuses[0].ContainerID {
			untouched++
		}
	}
	if got, want := s.imageNames(), "v1 v1 v1 v1"; got != want || untouched != 2 {
		t.Errorf("the pods have %s, want %s; %d were left alone, want 2", got, want, untouched)
	}
}

// TestRestartAlongWithAnImage: each container restarts once. A container with a new image restarts by that.
func TestRestartAlongWithAnImage(t *testing.T) {
	s := newLockstep(t, 1, nil)
	s.edit("adds a container", fixture.App{Image: "v1", Sidecar: "s1"})
	s.rest()
	pod, made := sorted(s.pods.objects)[0], s.kubelet.ids
	s.edit("sets the image and restarts", fixture.App{Image: "v2", Sidecar: "s1", Restarted: "1"})
	s.rest()
	s.goOn(time.Minute) // if no report has shown that the second container stopped, the pod comes back when it must have
	s.intact([]*corev1.Pod{pod})
	now := s.pods.objects[pod.Name]
	if got, want := fixture.Images(now), "app=v2,side=docker.io/library/s1:latest"; got != want || s.kubelet.ids != made+2 {
		t.Errorf("the pod has %s, want %s; %d containers were started, want 2", got, want, s.kubelet.ids-made)
	}
}

// TestRestartBesideAnImageThatNeverRuns: one container has restarted, and the other cannot. So the containers never all run. An edit that
// mends this has its turn.
func TestRestartBesideAnImageThatNeverRuns(t *testing.T) {
	broken := fixture.App{Image: "v1", Sidecar: "s-bad", Restarted: "1"}
	for name, mended := range map[string]fixture.App{
		"undone":                 {Image: "v1", Sidecar: "s1"},
		"mended":                 {Image: "v1", Sidecar: "s2", Restarted: "1"},
		"mended by a restart":    {Image: "v1", Sidecar: "s2", Restarted: "2"},
		"undone, with a new app": {Image: "v2", Sidecar: "s1", Restarted: "2"},
	} {
		s := newLockstep(t, 3, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", Sidecar: "s1"}.Template() })
		before := sorted(s.pods.objects)
		s.edit("restarts, with an image that is not", broken)
		s.rest()
		if s.complete() {
			t.Fatal("the image could be pulled")
		}
		s.edit(name, mended)
		s.rest()
		for range 3 * len(before) { // each may have to wait until its old container must have been killed
			s.now = s.now.Add(time.Minute)
			s.rest()
		}
		if !s.complete() {
			t.Fatalf("%s: %s", name, s.describe())
		}
		s.intact(before)
	}
}

// TestAnnouncementThatHasExpired: a pod is told to renew its volumes long before its turn. It is told again.
func TestAnnouncementThatHasExpired(t *testing.T) {
	for name, test := range map[string]struct {
		ago  time.Duration
		want string
	}{
		"just now": {0, ""},
		"a while":  {10 * time.Second, "out p"},
		"long ago": {time.Hour, "renew p"},
	} {
		r := fixture.New(1, fixture.App{Image: "v1", Restarted: "1"})
		a := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
		newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v1", Restarted: "1"}, 0)
		for _, rs := range []*apps.ReplicaSet{a, newRS} {
			rs.Labels[inplace.LabelUpdating] = inplace.FormatTime(fixture.Start)
		}
		fixture.PodOf(r, "p", a, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestarts: inplace.FormatTime(fixture.Start.Add(-test.ago)) + "-" +
				newRS.Labels[inplace.LabelTemplateHash]}
		})
		got := ""
		for _, step := range r.Plan().Steps {
			if described := step.Describe(); strings.Contains(described, "volumes") {
				got = "renew p"
			} else if steps.TakesOut(step) {
				got = "out p"
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestRestartOfSidecars: sidecars restart with the containers, each once. Reports between the two restarts prove neither.
func TestRestartOfSidecars(t *testing.T) {
	s := newLockstep(t, 1, nil)
	s.edit("adds a sidecar", fixture.App{Image: "v1", Mesh: "m1", NoSetup: true})
	s.rest()
	pod, made := sorted(s.pods.objects)[0], s.kubelet.ids
	killed := func() {
		s.rest()
		s.now = s.now.Add(readiness.GracePeriod(pod) + readiness.KubeletMargin)
		s.rest()
	}
	s.edit("restarts", fixture.App{Image: "v1", Mesh: "m1", NoSetup: true, Restarted: "1"})
	killed()
	s.intact([]*corev1.Pod{pod})
	now := s.pods.objects[pod.Name]
	if got, want := fixture.Images(now), "app="+fixture.Another+",mesh=docker.io/library/m1:latest"; got != want || s.kubelet.ids != made+2 {
		t.Errorf("the pod has %s, want %s; %d containers were started, want 2", got, want, s.kubelet.ids-made)
	}
	s.edit("undoes", fixture.App{Image: "v1", Mesh: "m1", NoSetup: true})
	killed()
	s.intact([]*corev1.Pod{pod})
	if got := fixture.Images(s.pods.objects[pod.Name]); got != "app=v1,mesh=m1" {
		t.Errorf("after the undo the pod has %s", got)
	}
}

// TestRestartOfTheLastEndpoint: it is patched first, and moved when its kubelet reports another container.
func TestRestartOfTheLastEndpoint(t *testing.T) {
	s := lastEndpoint(t, nil)
	before := sorted(s.pods.objects)
	s.edit("restarts", fixture.App{Image: "v1", Restarted: "1"})
	s.rest()
	s.expect("A marks", "B marks", "renew 1", "patch 1", "A 1 → 0", "move 1", "B 0 → 1", "A marks", "B marks")
	s.intact(before)
	if got := s.imageNames(); got != fixture.Another {
		t.Errorf("the pod has %s, want %s", got, fixture.Another)
	}
}

// TestRestartOfTheLastEndpointUndone: a container that was restarted before its move gets its old image name again.
func TestRestartOfTheLastEndpointUndone(t *testing.T) {
	s := lastEndpoint(t, nil)
	before := sorted(s.pods.objects)
	s.edit("restarts", fixture.App{Image: "v1", Restarted: "1"})
	s.until(s.moved(1))
	s.edit("undoes", fixture.App{Image: "v1"})
	s.rest()
	s.now = s.now.Add(readiness.GracePeriod(before[0]) + readiness.KubeletMargin)
	s.rest()
	s.intact(before)
	if got := s.imageNames(); got != "v1" {
		t.Errorf("the pod has %s, want v1", got)
	}
}

func TestDaemonStepsOfARestart(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	rest := func() {
		for range 30 {
			f.Once()
		}
	}
	f.Edit(fixture.App{Image: "v1", Restarted: "1"})
	rest()
	f.Expect("mark 2 true false", "renew p1", "out p1", "p1 is 2 app="+fixture.Another, "renew p2", "out p2",
		"p2 is 2 app="+fixture.Another,
		"mark 2 false false")
	f.UpdatedTo("2", fixture.Another)
	for _, pod := range f.Seen.Pods {
		if pod.Annotations[inplace.AnnotationRestartedAt] != "1" || pod.Status.ContainerStatuses[0].ContainerID == pod.Name+"/app" {
			t.Errorf("%s has annotations %v and runs container %s", pod.Name, pod.Annotations, pod.Status.ContainerStatuses[0].ContainerID)
		}
	}
	f.Edit(fixture.App{Image: "v1"})
	rest()
	f.Expect("mark 1 true false", "renew p1", "out p1", "p1 is 1 app=v1", "renew p2", "out p2", "p2 is 1 app=v1", "mark 1 false false")
	if f.Seen.Pods[0].Annotations[inplace.AnnotationRestartedAt] != "" {
		t.Errorf("after the undo: %v", f.Seen.Pods[0].Annotations)
	}
}

// TestDaemonStepsOfARestartOfASidecar: one report shows that both have restarted.
func TestDaemonStepsOfARestartOfASidecar(t *testing.T) {
	meshed := func(restarted string) fixture.App {
		return fixture.App{Image: "v1", Mesh: "m1", NoSetup: true, Restarted: restarted}
	}
	f := fixture.NewFleet(t, 1)
	f.Edit(meshed(""))
	r := fixture.New(1, fixture.App{})
	f.Seen.Pods[0].Spec = fixture.PodOf(r, "made", fixture.ReplicaSetOf(r, "x", meshed(""), 1)).Spec
	f.Seen.Pods[0].Spec.NodeName, f.Seen.Pods[0].Status.InitContainerStatuses = "n1", r.Seen.Pods[0].Status.InitContainerStatuses
	f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2"
	f.Edit(meshed("1"))
	for range 30 {
		f.Once()
	}
	f.Expect("mark 3 true false", "renew p1", "out p1", "p1 is 3 app="+fixture.Another+",mesh=docker.io/library/m1:latest",
		"mark 3 false false")
	if !apps.IsTrue(f.Seen.Pods[0], corev1.PodReady) {
		t.Error("the pod is not ready")
	}
}

// TestDaemonStepsForAVariable: the write that restarts the container has the label that it reads, whatever the pod's identity is by then.
func TestDaemonStepsForAVariable(t *testing.T) {
	for name, changes := range map[string][]func(*fixture.Fleet){
		"out of service": nil, "while it serves": {auxiliaryNames("app")},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 1, changes...)
			f.Edit(fixture.App{Image: "v1", Reads: true})
			pod, r := f.Seen.Pods[0], fixture.New(1, fixture.App{})
			pod.Spec = fixture.PodOf(r, "made", fixture.ReplicaSetOf(r, "x", fixture.App{Image: "v1", Reads: true}, 1)).Spec
			pod.Spec.NodeName, pod.Labels[inplace.LabelRevisionHash] = "n1", "2"
			f.Edit(fixture.App{Image: "v1", Reads: true, Chart: "1"})
			for range 60 {
				f.Once()
				if is := f.Seen.Pods[0]; (is.Spec.Containers[0].Image == "v1") != (is.Labels[fixture.ChartKey] == "") {
					t.Fatalf("the pod has %s and labels %v", fixture.Images(is), is.Labels)
				}
			}
			f.UpdatedTo("3", fixture.Another)
		})
	}
}

// TestRestartIsReported: a container with another ID than at the patch proves nothing, as it may have failed before its kubelet knew of the
// patch. A container with another ID than in a report that knew of the patch proves the restart.
func TestRestartIsReported(t *testing.T) {
	is := func(id string, observed int64) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].ContainerID, pod.Status.ObservedGeneration = id, observed
			pod.Status.ContainerStatuses[0].ImageID = "sha256:v1"
			moved := readiness.MoveOf(pod)
			entry := moved.Containers["app"]
			entry.Restart, entry.Image = true, pod.Status.ContainerStatuses[0].Image
			moved.Containers["app"] = entry
			pod.Annotations[inplace.AnnotationMove] = moved.String()
		}
	}
	for name, test := range map[string]struct {
		before, now func(*corev1.Pod)
		changes     []func(*corev1.Pod)
		returns     bool
	}{
		"it is killed for the patch":                    {is("old", 2), is("new", 2), nil, true},
		"the patch is seen":                             {is("old", 1), is("old", 2), nil, false},
		"it failed before":                              {is("old", 1), is("failed", 2), nil, false},
		"and is killed for the patch then":              {is("failed", 2), is("new", 2), nil, true},
		"it has been killed by the first report":        {is("old", 1), is("new", 2), nil, false},
		"and by the second":                             {is("new", 2), is("new", 2), nil, false},
		"it failed, and the patch is not seen":          {is("old", 1), is("failed", 1), nil, false},
		"it is down, and the patch seen":                {is("old", 1), is("old", 2), []func(*corev1.Pod){stoppedContainer}, true},
		"it has no ID yet":                              {is("old", 2), is("", 2), nil, false},
		"it is unready under the ID that was patched":   {is("old", 1), is("old", 2), []func(*corev1.Pod){unreadyContainer}, true},
		"it is unready, and failed before it was known": {is("old", 1), is("failed", 2), []func(*corev1.Pod){unreadyContainer}, false},
	} {
		before, now := fixture.PatchedOut(test.before), fixture.PatchedOut(append(test.changes, test.now)...)
		if back := readiness.StoredReady(before, now, fixture.Start) == nil; back != test.returns {
			t.Errorf("%s: the kubelet's Ready passes: %t", name, back)
		}
	}
}

func stoppedContainer(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{}
}

func unreadyContainer(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Ready = false }

// TestPodsThatCannotRestart: if no other name for an image is known, the update is left to the native controller, once the pod is old
// enough to have run.
func TestPodsThatCannotRestart(t *testing.T) {
	full := "r.io/app:1"
	created := func(ago time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.CreationTimestamp.Time = fixture.Start.Add(-ago)
			fixture.Unready(pod)
		}
	}
	begun := func(ago time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.StartTime = &metav1.Time{Time: fixture.Start.Add(-ago)} }
	}
	const yetToRun = "container app of pod p has not run yet, so no other name for its image is known by which it could be restarted"
	runs := func(id string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].ImageID = id }
	}
	for name, test := range map[string]struct {
		changes []func(*corev1.Pod)
		want    string
	}{
		"it tells which image": {[]func(*corev1.Pod){runs("r.io/app" + sample.Digests[0])}, ""},
		"one of another name": {[]func(*corev1.Pod){runs("r.io/imported" + sample.Digests[0])},
			`container app of pod p runs image "r.io/imported` + sample.Digests[0] +
				`", which has no other name by which it could be restarted`},
		"it has not started":      {[]func(*corev1.Pod){runs(""), created(time.Second)}, ""},
		"it pulls its image":      {[]func(*corev1.Pod){runs(""), created(119 * time.Second)}, ""},
		"it does so for too long": {[]func(*corev1.Pod){runs(""), created(2 * time.Minute)}, yetToRun},
		"it waited for a node":    {[]func(*corev1.Pod){runs(""), created(time.Hour), begun(time.Minute)}, ""},
		"it has an init container": {[]func(*corev1.Pod){runs("r.io/app" + sample.Digests[0]), withInit},
			"pod p: init container vault would not run again"},
		"it has a sidecar": {[]func(*corev1.Pod){runs("r.io/app" + sample.Digests[0]), withSidecar}, ""},
	} {
		r := fixture.New(1, fixture.App{Image: full, Restarted: "1"})
		fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: full}, 1), test.changes...)
		fixture.ReplicaSetOf(r, "b", fixture.App{Image: full, Restarted: "1"}, 0)
		for _, pod := range r.Seen.Pods {
			r.Seen.DryRun.Pod.Spec.InitContainers = pod.Spec.InitContainers // new pods have them, too
		}
		plan := r.Plan()
		if got := plan.Decision.Reasons.String(); got != test.want {
			t.Errorf("%s: native because of %q, want %q", name, got, test.want)
		}
		for _, step := range plan.Steps {
			if strings.HasPrefix(step.Describe(), "move") || steps.TakesOut(step) {
				t.Errorf("%s: %s", name, step.Describe())
			}
		}
	}
}

func withInit(pod *corev1.Pod) {
	pod.Spec.InitContainers = []corev1.Container{{Name: "vault", Image: "vault:1"}}
}

func withSidecar(pod *corev1.Pod) {
	withInit(pod)
	pod.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
}

// TestRestartByTheSettings: without the annotation a restart is native.
func TestRestartByTheSettings(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v1", Restarted: "1"})
	fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1))
	for list, on := range map[string]bool{inplace.AnnotationRestartedAt: true, "note": false} {
		r.Seen.Rules = inplace.Rules{}.For(map[string]string{inplace.AnnotationRestartAnnotations: list})
		if held := r.Decision().Held; held != on {
			t.Errorf("with the list %s: held %t", list, held)
		}
	}
}
