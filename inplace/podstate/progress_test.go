package podstate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

func paces(unavailable, surge string) appsv1.DeploymentStrategy {
	u, s := intstr.Parse(unavailable), intstr.Parse(surge)
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &u, MaxSurge: &s}}
}

func short(f steps.Preview) string {
	return fmt.Sprintf("%s; %d pods, %d at a time, %d surge pod, forbidden: %t", f, f.Pods, f.AtATime, f.SurgePods, f.Forbidden)
}

func TestPreview(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int32
		strategy appsv1.DeploymentStrategy
		mode     inplace.Mode
		to       fixture.App
		claim    string
		want     string
	}{
		"as many as may be unavailable": {8, paces("25%", "25%"), inplace.ModeInPlace, fixture.App{Image: "v2"}, "",
			"in place: restarts app; 8 pods, 2 at a time, 0 surge pod, forbidden: false"},
		"none may be unavailable": {8, paces("0", "2"), inplace.ModeInPlace, fixture.App{Image: "v2"}, "",
			"in place: restarts app; 8 pods, 2 at a time, 2 surge pod, forbidden: false"},
		"a percentage of none": {2, paces("25%", "25%"), inplace.ModeInPlace, fixture.App{Image: "v2"}, "",
			"in place: restarts app; 2 pods, 1 at a time, 1 surge pod, forbidden: false"},
		"no second pod can run": {1, paces("25%", "25%"), inplace.ModeInPlace, fixture.App{Image: "v2"}, "data",
			"in place: restarts app; 1 pods, 1 at a time, 0 surge pod, forbidden: false"},
		"there are none": {0, paces("25%", "25%"), inplace.ModeInPlace, fixture.App{Image: "v2"}, "",
			"in place: restarts app; 0 pods, 0 at a time, 0 surge pod, forbidden: false"},
		"by strategy": {2, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, inplace.ModeInPlaceOnly,
			fixture.App{Image: "v2"}, "",
			"recreate: strategy Recreate promises that two versions never run at once; " +
				"2 pods, 1 at a time, 0 surge pod, forbidden: true"},
		"not managed": {2, paces("1", "1"), inplace.ModeNone, fixture.App{Image: "v2"}, "",
			"recreate: not updated in place: the namespace has no label stayput.dev/update, or its value is not known; " +
				"2 pods, 1 at a time, 0 surge pod, forbidden: false"},
		"opted out": {2, paces("1", "1"), inplace.ModeNative, fixture.App{Image: "v2"}, "",
			`recreate: not updated in place: label stayput.dev/update is "native"; 2 pods, 1 at a time, 0 surge pod, forbidden: false`},
	} {
		r := fixture.New(c.replicas, c.to)
		r.Deployment.Spec.Strategy, r.Seen.Mode, r.Seen.Settings.Surge = c.strategy, c.mode, inplace.SurgeNeeded
		old := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, c.replicas)
		r.Seen.DryRun.Claim = c.claim
		if got := short(r.Preview(old.Spec.Template)); got != c.want {
			t.Errorf("%s:\n%s\ninstead of\n%s", name, got, c.want)
		}
	}
}

func TestDaemonPreview(t *testing.T) {
	f := fixture.NewFleet(t, 3, fixture.MaxUnavailable("50%"))
	f.DaemonSet.Status.DesiredNumberScheduled = 3
	before := f.DaemonSet.Spec.Template
	f.DaemonSet.Spec.Template, f.Seen.Nodes = fixture.App{Image: "v2"}.Template(), nil
	if got, want := short(f.Preview(before)), "in place: restarts app; 3 pods, 2 at a time, 0 surge pod, forbidden: false"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	f.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	if got := f.Preview(before); got.InPlace() || got.Reasons[0].Code != inplace.CodeStrategy {
		t.Errorf("the preview of OnDelete is %s", got)
	}
}

// TestPreviewAtAPartition: neither the pods at a time nor the surge pods are more than the partition budget.
func TestPreviewAtAPartition(t *testing.T) {
	for want, partition := range map[string]string{
		"4 at the partition, 2 at a time, 2 surge pod": "4", "5 at the partition, 1 at a time, 1 surge pod": "90%",
		"6 at the partition, 0 at a time, 0 surge pod": "half",
	} {
		r := fixture.New(6, fixture.App{Image: "v2"})
		r.Deployment.Spec.Strategy, r.Seen.Settings.Surge, r.Seen.Settings.Partition.Value = paces("0", "3"), inplace.SurgeNeeded, partition
		f := r.Preview(fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 6).Spec.Template)
		if got := fmt.Sprintf("%d at the partition, %d at a time, %d surge pod", f.AtPartition, f.AtATime, f.SurgePods); got != want {
			t.Errorf("%s: %s instead of %s", partition, got, want)
		}
	}
}

// progress returns the progress of one pod as a short text.
func progress(all []podstate.PodProgress, name string) string {
	at := slices.IndexFunc(all, func(s podstate.PodProgress) bool { return s.Pod.Name == name })
	return fmt.Sprintf("%s %s: %s", all[at].Revision, all[at].Phase, all[at].Awaits)
}

// waitingFor has the first container of the pod wait for that reason.
func waitingFor(reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		fixture.Unready(pod)
		pod.Status.ContainerStatuses[0].Ready = false
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
}

// TestPodProgress: in the middle of an update, one pod of the old ReplicaSet and one of the new.
func TestPodProgress(t *testing.T) {
	moved := func(pod *corev1.Pod) {
		pod.Generation = 2
		mark := readiness.Move{Hash: "b", Generation: 2,
			Containers: map[string]readiness.MovedContainer{"app": {Image: "v2", ContainerID: "x/app"}}}
		pod.Annotations = map[string]string{inplace.AnnotationMove: mark.String()}
		pod.Status.ContainerStatuses[0].ContainerID = "x/app"
	}
	seen := func(pod *corev1.Pod) {
		moved(pod)
		pod.Status.ObservedGeneration = 2
	}
	resized := func(conditions ...corev1.PodCondition) func(pod *corev1.Pod) {
		return func(pod *corev1.Pod) {
			size := readiness.ResizedContainer{To: edit.Amounts{CPURequest: "200m"}}
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{
				Resize: readiness.Resize{"app": size}}.String()}
			pod.Status.Conditions = append(pod.Status.Conditions, conditions...)
		}
	}
	deferred := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred,
		Message: "no room"}
	lately := func(pod *corev1.Pod) {
		pod.Status.Conditions[1].LastTransitionTime = metav1.NewTime(fixture.Start.Add(-1500 * time.Millisecond))
	}
	for want, c := range map[string]struct {
		old    bool
		change func(*corev1.Pod)
	}{
		"web-a waiting: its turn": {old: true}, "web-a updating: its drain": {true, fixture.Out},
		"web-b updated: ": {}, "web-b updating: its kubelet": {change: moved}, "web-b updating: its containers to restart": {change: seen},
		"web-a updating: its CPU and memory":                           {old: true, change: resized()},
		"web-a updating: its CPU and memory: Deferred: no room":        {old: true, change: resized(deferred)},
		"web-b updating: readiness of container app: CrashLoopBackOff": {change: waitingFor("CrashLoopBackOff")},
		"web-b updating: the image of container app: ImagePullBackOff": {change: waitingFor("ImagePullBackOff")},
		"web-b updating: readiness":                                    {change: fixture.Out},
		"web-b updating: being Ready for 9s more":                      {change: lately},
		"web-b updating: a node": {change: func(pod *corev1.Pod) {
			fixture.Unready(pod)
			pod.Spec.NodeName = ""
		}},
	} {
		r := fixture.New(2, fixture.App{Image: "v2"})
		r.Deployment.Spec.MinReadySeconds = 10
		a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
		a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
		owner := b
		if c.old {
			owner = a
		}
		fixture.PodOf(r, "p", owner, func(pod *corev1.Pod) { pod.Spec.NodeName = "n" }, c.change)
		if got := progress(r.PodProgress(), "p"); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

// TestFailing: an update fails only for pods that it has changed, and whose kubelet waits before it tries again to start them.
func TestFailing(t *testing.T) {
	begun := readiness.Move{Back: map[string]string{"app": "v1"}}
	for name, c := range map[string]struct {
		reason             string
		updated, available bool
		move               readiness.Move
		want               string
	}{
		"crashes":               {reason: "CrashLoopBackOff", updated: true, want: "readiness of container app: CrashLoopBackOff"},
		"cannot pull":           {reason: "ErrImagePull", updated: true, want: "the image of container app: ErrImagePull"},
		"is partially patched":  {reason: "ErrImagePull", move: begun, want: "the image of container app: ErrImagePull"},
		"starts":                {reason: "ContainerCreating", updated: true},
		"has its old revision":  {reason: "CrashLoopBackOff"},
		"serves by its old one": {reason: "ErrImagePull", updated: true, available: true},
	} {
		r := fixture.New(1, fixture.App{Image: "v1"})
		pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), waitingFor(c.reason))
		pod.Spec.NodeName = "n"
		marked := podstate.MarkedPod{Pod: pod, Move: c.move, PodRevision: podstate.PodRevision{Updated: c.updated}}
		s := &podstate.State{Work: podstate.Work{MarkedPod: marked, Applied: true}, Available: c.available}
		if got := s.Failing(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestProgressOfARequest: what users are told of a pod of which an annotation asks for restarts, first of side and then of app.
func TestProgressOfARequest(t *testing.T) {
	const first, second = "side,app", "side=1970-01-12T13:46:40Z,app"
	running := map[string]readiness.MovedContainer{"side": {Image: "s1", ContainerID: "p/side"}}
	for name, c := range map[string]struct {
		asks               string
		change             func(*corev1.Pod)
		serving, available bool
		patched            bool
		want               string
	}{
		"available": {asks: first, serving: true, available: true,
			want: "waiting: the restart of side, which its annotation asks for"},
		"serves, and is not available yet": {asks: first, serving: true,
			want: "waiting: the restart of side, which its annotation asks for"},
		"available after the first restart": {asks: second, serving: true, available: true,
			want: "waiting: the restart of app, which its annotation asks for"},
		"not available yet after the first": {asks: second, serving: true, want: "updating: readiness"},
		"not ready":                         {asks: first, change: fixture.Unready, want: "updating: readiness"},
		"drains":                            {asks: first, change: fixture.Out, want: "updating: its drain"},
		"patched after its drain":           {asks: second, change: fixture.Out, patched: true, want: "updating: its containers to restart"},
	} {
		app := fixture.App{Image: "v1", Sidecar: "s1"}
		r := fixture.New(1, app)
		pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", app, 1), c.change)
		pod.Spec.NodeName, pod.Annotations = "n", map[string]string{inplace.AnnotationRestartContainers: c.asks}
		marked := podstate.MarkedPod{Pod: pod, PodRevision: podstate.PodRevision{Updated: true}}
		if c.patched {
			marked.Move = readiness.Move{Generation: 2, Containers: running}
			pod.Generation, pod.Status.ObservedGeneration = 2, 2
		}
		s := &podstate.State{Work: podstate.Work{MarkedPod: marked, Applied: !c.patched}, Serving: c.serving, Available: c.available}
		if got := s.Progress("", ""); string(got.Phase)+": "+got.Awaits != c.want {
			t.Errorf("%s: %s: %s, want %s", name, got.Phase, got.Awaits, c.want)
		}
	}
}

// TestPodProgressBefore: the update has not begun.
func TestPodProgressBefore(t *testing.T) {
	outdated := func(changes ...func(*deployments.Rollout)) *deployments.Rollout {
		r := fixture.New(1, fixture.App{Image: "v2"})
		fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), func(pod *corev1.Pod) { pod.Spec.NodeName = "n" })
		for _, change := range changes {
			change(r)
		}
		return r
	}
	prePullPod := func(reason, message string) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n",
				Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "v2"}}}}}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "wait",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
			r.Seen.Pull.PrePullPods = []*corev1.Pod{pod}
		}
	}
	for want, r := range map[string]*deployments.Rollout{
		"web-a waiting: its turn": outdated(),
		"web-a waiting: the rollout to be resumed": outdated(func(r *deployments.Rollout) {
			r.Deployment.Spec.Paused = true
		}),
		"web-a at partition: the partition to be lowered or removed": outdated(func(r *deployments.Rollout) {
			r.Seen.Settings.Partition.Value = "1"
		}),
		"web-a waiting: its node to pre-pull images":         outdated(prePullPod("ContainerCreating", "")),
		"web-a waiting: its node to pre-pull images: v2: no": outdated(prePullPod("ErrImagePull", "v2: no")),
		"web-a waiting: its replacement by the Deployment controller": outdated(func(r *deployments.Rollout) {
			r.Seen.Mode = inplace.ModeNone
		}),
	} {
		if got := progress(r.PodProgress(), "p"); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

func TestDaemonPodProgress(t *testing.T) {
	f := fixture.NewFleet(t, 2)
	f.Edit(fixture.App{Image: "v2"})
	f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "2"
	f.Seen.Nodes = nil
	all := f.PodProgress()
	for name, want := range map[string]string{"p1": "agent-1 waiting: its turn", "p2": "agent-2 updated: "} {
		if got := progress(all, name); got != want {
			t.Errorf("%s: %q instead of %q", name, got, want)
		}
	}
	f.Seen.Settings.Partition.Value = "50%"
	if got, want := progress(f.PodProgress(), "p1"), "agent-1 at partition: the partition to be lowered or removed"; got != want {
		t.Errorf("%q instead of %q", got, want)
	}
	f.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	if got, want := progress(f.PodProgress(), "p1"), "agent-1 waiting: its replacement by the DaemonSet controller"; got != want {
		t.Errorf("%q instead of %q", got, want)
	}
}
