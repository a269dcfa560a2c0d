package podstate_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// TestTemplatesAskForNoRestart: new pods have the annotations of their template. Each would restart as soon as it runs. A user can ask for
// other containers all the same.
func TestTemplatesAskForNoRestart(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		begins   bool
	}{
		"asked for by a user":             {"", true},
		"of its template":                 {"app", false},
		"by a user, and for its template": {"side", true},
	} {
		t.Run(name, func(t *testing.T) {
			asking := podstate.AskingOf(&podstate.State{Work: podstate.Work{MarkedPod: asks("app", c.template)}})
			if may := asking.MayBegin(podstate.Circumstances{}); may != c.begins {
				t.Errorf("the restart may begin: %t, want %t", may, c.begins)
			}
			if _, answers := asking.Answer(podstate.Circumstances{}); answers {
				t.Error("the pod gets an answer")
			}
		})
	}
}

// asks returns a pod on node n whose annotation asks for restarts, and the annotation of its template; empty for none.
func asks(containers, template string) podstate.MarkedPod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{inplace.AnnotationRestartContainers: containers}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "app", Image: "v1"}, {Name: "side", Image: "s1"}}}}
	revision := podstate.PodRevision{}
	if template != "" {
		revision.TemplateAnnotations = map[string]string{inplace.AnnotationRestartContainers: template}
	}
	return podstate.MarkedPod{Pod: pod, PodRevision: revision}
}

// TestTheLongestRequest: a request is refused only if it is longer than the message says.
func TestTheLongestRequest(t *testing.T) {
	const most = 16 << 10
	for length, refused := range map[int]string{most: "the pod has no container",
		most + 1: "annotation stayput.dev/restart-containers has more than 16384 characters"} {
		asking := podstate.AskingOf(&podstate.State{Work: podstate.Work{MarkedPod: asks(strings.Repeat("x", length), "")}})
		if step, _ := asking.Answer(podstate.Circumstances{}); !strings.HasPrefix(step.Refuses, refused) {
			t.Errorf("%d characters: refused because %.100s, want %s", length, step.Refuses, refused)
		}
	}
}

// TestAnswer: a pod says why its request is refused, or waits. One that is out of service for its request serves again before it says that.
func TestAnswer(t *testing.T) {
	const update = "an update of the Deployment"
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"type": "virtual-kubelet"}}}
	late := "1970-01-12T13:46:40Z has passed, and container app waited for "
	for name, c := range map[string]struct {
		asks               string
		update             string
		out, late          bool
		node               *corev1.Node
		serving, available bool
		image, runs        string // of app: its name, and its ID
		refuses, waits     string
	}{
		"it may restart": {asks: "app"},
		"its image has no other name": {asks: "app", image: "registry.example/web:1", runs: "sha256:1",
			refuses: `container app of pod  runs image "sha256:1", which has no other name by which it could be restarted`},
		"during an update":          {asks: "app", update: update, waits: "app waits: an update of the Deployment is in progress"},
		"no such container":         {asks: "db", refuses: "the pod has no container or sidecar db"},
		"the same during an update": {asks: "db", update: update, refuses: "the pod has no container or sidecar db"},
		"out, and no such container, which an update may have removed": {asks: "db", update: update, out: true,
			refuses: "the pod has no container or sidecar db"},
		"out, and no such container": {asks: "db", out: true},
		"on a virtual node": {asks: "app", node: virtual,
			refuses: "node n is a virtual one, which does not restart containers of running pods"},
		"the same, and the update may replace it": {asks: "app", node: virtual, update: update,
			waits: "app waits: an update of the Deployment is in progress"},
		"late by an update":     {asks: "app", late: true, update: update, refuses: late + update},
		"late for its turn":     {asks: "app", late: true, serving: true, available: true, refuses: late + "its turn"},
		"late by its own fault": {asks: "app", late: true, refuses: late + "readiness of container app"},
	} {
		marked := asks(c.asks, "")
		if c.out {
			fixture.Out(marked.Pod)
		}
		if c.late {
			marked.Pod.Annotations[inplace.AnnotationRestartDeadline] = fixture.Start.UTC().Format(time.RFC3339)
		}
		marked.Pod.Spec.Containers[0].Image = cmp.Or(c.image, "v1")
		marked.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ImageID: c.runs}}
		s := &podstate.State{Work: podstate.Work{MarkedPod: marked, Applied: true}, Serving: c.serving, Available: c.available}
		step, has := podstate.AskingOf(s).Answer(podstate.Circumstances{Now: fixture.Start, Update: c.update,
			Nodes: map[string]*corev1.Node{"n": c.node}})
		if !has {
			step = steps.PatchPod{}
		}
		if step.Refuses != c.refuses || step.Waits != c.waits {
			t.Errorf("%s: refused because %q, and waits because %q", name, step.Refuses, step.Waits)
		}
	}
}
