package daemonsets_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// TestRequestOfOnePod: the container restarts in a turn of the pod. The revision stays, and so does every other pod.
func TestRequestOfOnePod(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	metav1.SetMetaDataAnnotation(&f.Seen.Pods[1].ObjectMeta, inplace.AnnotationRestartContainers, "app")
	f.Rest()
	f.Expect("renew p2", "out p2", "p2 is 1 app="+fixture.Another)
	if !apps.IsTrue(f.Seen.Pods[1], corev1.PodReady) {
		t.Error("the pod does not serve again")
	}
	if result := f.Seen.Pods[1].Annotations[inplace.AnnotationRestarted]; !strings.HasPrefix(result, "restarted app=") {
		t.Errorf("the pod says %q", result)
	}
}

// TestRequestWaitsForAnUpdate: the update goes first, and the pod says so once. Then the pod restarts once more.
func TestRequestWaitsForAnUpdate(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	metav1.SetMetaDataAnnotation(&f.Seen.Pods[0].ObjectMeta, inplace.AnnotationRestartContainers, "app")
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "p1 waits", "out p1", "p1 is 2 app=v2", "mark 2 false false",
		"p1 waits no longer", "renew p1", "out p1", "p1 is 2 app=docker.io/library/v2:latest")
}

// TestRequestsOfPodsThatDoNotServe: they cost no budget, and go first.
func TestRequestsOfPodsThatDoNotServe(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	fixture.Unready(f.Seen.Pods[2])
	f.Sick = "p3"
	for _, pod := range f.Seen.Pods[1:] {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
	}
	f.Rest()
	f.Expect("renew p3", "out p3", "p3 is 1 app="+fixture.Another)
	if request := f.Seen.Pods[1].Annotations[inplace.AnnotationRestartContainers]; request != "app" {
		t.Errorf("p2 has request %q although p3 is unavailable", request)
	}
}

// TestRequestWaitsForItsTurnOfAll: a pod that a limit keeps in service is one of those that wait, so that it gets its turn.
func TestRequestWaitsForItsTurnOfAll(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	f.Seen.Batches = nil
	for _, pod := range f.Seen.Pods[1:] {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
	}
	f.Seen.Share = concurrency.Limits{{Flag: concurrency.FlagTotal, Most: 1}}.Share(concurrency.Pod{UID: "other"})
	plan := f.Plan()
	if got := fixture.Brief(plan.Steps); got != "" || len(plan.WaitsFor(steps.FilterLimit)) != 1 {
		t.Errorf("steps %q, %d pods wait for the limit, want 1", got, len(plan.WaitsFor(steps.FilterLimit)))
	}
}

// TestWaitingRequest: while the update waits for an image, the pod says that its request does, too. What ends the wait ends that answer.
func TestWaitingRequest(t *testing.T) {
	const waits = "waiting app: an update of the DaemonSet is in progress"
	for name, test := range map[string]struct {
		change func(f *fixture.Fleet, pod *corev1.Pod)
		want   string
		left   bool // the request
	}{
		"nothing changes": {func(*fixture.Fleet, *corev1.Pod) {}, waits, true},
		"its deadline has passed": {func(f *fixture.Fleet, pod *corev1.Pod) {
			pod.Annotations[inplace.AnnotationRestartDeadline] = f.Seen.Now.UTC().Format(time.RFC3339)
		}, "refused app: 1970-01-12T13:", false},
		"it is withdrawn": {func(_ *fixture.Fleet, pod *corev1.Pod) {
			delete(pod.Annotations, inplace.AnnotationRestartContainers)
		}, "", false},
		"it asks for more": {func(_ *fixture.Fleet, pod *corev1.Pod) {
			pod.Annotations[inplace.AnnotationRestartContainers] = "app,ghost"
		}, "refused app,ghost: the pod has no container or sidecar ghost", false},
		"the namespace loses its label": {func(f *fixture.Fleet, _ *corev1.Pod) { f.Seen.Mode = inplace.ModeNone },
			"refused app: not updated in place: the namespace has no label stayput.dev/update, or its value is not known", false},
		"the DaemonSet is no longer to be updated in place": {func(f *fixture.Fleet, _ *corev1.Pod) { f.Seen.Mode = inplace.ModeNative },
			`refused app: not updated in place: label stayput.dev/update is "native"`, false},
		"the update falls back": {func(f *fixture.Fleet, _ *corev1.Pod) {
			f.Seen.Fallback = revisions.Fallback{Hash: f.DaemonSet.Spec.Template.Hash(), Code: inplace.CodeRefused}
		}, waits, true},
		"the update is undone": {func(f *fixture.Fleet, _ *corev1.Pod) {
			f.Edit(fixture.App{Image: "v1"})
			f.Sick = ""
		}, "restarted app=", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.NewFleet(t, 2)
			f.Ail("p1") // so the update does not come to p2
			pod := f.Seen.Pods[1]
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
			f.Edit(fixture.App{Image: "v2"})
			f.Rest()
			if says := pod.Annotations[inplace.AnnotationRestarted]; says != waits {
				t.Fatalf("before, the pod says %q", says)
			}
			test.change(f, pod)
			f.Rest()
			_, left := pod.Annotations[inplace.AnnotationRestartContainers]
			if says := pod.Annotations[inplace.AnnotationRestarted]; !strings.HasPrefix(says, test.want) || left != test.left {
				t.Errorf("the pod says %q, want %q, and has its request: %t", says, test.want, left)
			}
		})
	}
}

// TestRequestsThatHaveBegun: the namespace loses its label when a container of two has restarted, or none. What has begun is refused, once
// the pod serves again.
func TestRequestsThatHaveBegun(t *testing.T) {
	for asked, want := range map[string]string{
		"app=2030-01-01T00:00:00Z,side": "refused app=2030-01-01T00:00:00Z,side: not updated in place: the namespace has no label " +
			"stayput.dev/update, or its value is not known",
		"app,side":                      "",
		"app=2030-01-01T00:00:00Z":      "", // nothing that Stayput has written
		"app=yesterday,side":            "",
		"app,side=2030-01-01T00:00:00Z": "",
	} {
		f := fixture.NewFleet(t, 1)
		pod := f.Seen.Pods[0]
		fixture.Out(pod)
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, asked)
		f.Seen.Mode = inplace.ModeNone
		f.Rest()
		_, left := pod.Annotations[inplace.AnnotationRestartContainers]
		if says := pod.Annotations[inplace.AnnotationRestarted]; says != want || left != (want == "") || !apps.IsTrue(pod, corev1.PodReady) {
			t.Errorf("%s: the pod says %q, want %q, and has its request: %t", asked, says, want, left)
		}
	}
}

// TestVirtualNodes: nothing there restarts a container, so an update falls back, and a request is refused.
func TestVirtualNodes(t *testing.T) {
	virtual := func(f *fixture.Fleet) { f.Node("n2").Labels = map[string]string{"type": "virtual-kubelet"} }
	f := fixture.NewFleet(t, 2, virtual)
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	if code := f.Decision().Reasons[0].Code; code != inplace.CodeFellBack || f.Seen.Fallback.Code != inplace.CodeVirtualNode {
		t.Errorf("it is native for %s, after %s", code, f.Seen.Fallback.Code)
	}
	f = fixture.NewFleet(t, 2, virtual)
	for _, pod := range f.Seen.Pods {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
	}
	f.Rest()
	f.Expect("renew p1", "p2 is 1 app=v1", "out p1", "p1 is 1 app="+fixture.Another)
	if says := f.Seen.Pods[1].Annotations[inplace.AnnotationRestarted]; !strings.HasPrefix(says, "refused app: node n2 is a virtual one") {
		t.Errorf("p2 says %q", says)
	}
}

// TestRequestsThatAreNotManaged: in a labelled namespace the pod says why nothing restarts. Elsewhere Stayput writes nothing to it.
func TestRequestsThatAreNotManaged(t *testing.T) {
	for mode, want := range map[inplace.Mode]string{
		inplace.ModeNative: `refused app: not updated in place: label stayput.dev/update is "native"`,
		inplace.ModeNotOptedIn: "refused app: not updated in place: it has no label stayput.dev/update itself, " +
			"and label stayput.dev/kinds of the namespace does not name its kind",
		inplace.ModeNone: "",
	} {
		f := fixture.NewFleet(t, 2)
		f.Seen.Mode = mode
		metav1.SetMetaDataAnnotation(&f.Seen.Pods[0].ObjectMeta, inplace.AnnotationRestartContainers, "app")
		f.Rest()
		_, left := f.Seen.Pods[0].Annotations[inplace.AnnotationRestartContainers]
		if says := f.Seen.Pods[0].Annotations[inplace.AnnotationRestarted]; says != want || left != (want == "") {
			t.Errorf("%s: the pod says %q, want %q, and has its request: %t", mode, says, want, left)
		}
	}
}

// TestRequestKeepsItsTurn: the pod was taken out of service for its request, and clients are still sent to it.
func TestRequestKeepsItsTurn(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	fixture.Out(f.Seen.Pods[0])
	f.Seen.Settings.Drain, f.Seen.Endpoints = 5*time.Second, podstate.Endpoints{"p1": {Listed: true}}
	metav1.SetMetaDataAnnotation(&f.Seen.Pods[0].ObjectMeta, inplace.AnnotationRestartContainers, "app")
	if planned := fixture.Brief(f.Plan().Steps); planned != "" {
		t.Errorf("steps are %q", planned)
	}
}

// TestRequestOfTheLastEndpoint: the container restarts while the pod serves.
func TestRequestOfTheLastEndpoint(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	f.Last("p1")
	metav1.SetMetaDataAnnotation(&f.Seen.Pods[0].ObjectMeta, inplace.AnnotationRestartContainers, "app")
	f.Rest()
	f.Expect("renew p1", "p1 is 1 app="+fixture.Another)
}
