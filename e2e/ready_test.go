//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readyIsWhatItIs checks which reports of a kubelet open a gate, and which Ready condition is stored. The pod is on a node that does not
// exist, so no kubelet reports about it. Dry runs do not change it.
func readyIsWhatItIs(t *testing.T) {
	saysReady(t)
	s := &stage{T: t, namespace: createNamespace(t, labelled)} // without a Recorder: no workload owns the pod
	t.Cleanup(func() { deleteNamespace(t, s.namespace) })
	s.usable()
	s.kubectl(manifest(t, leftover()), "create", "-f", "-")
	s.kubectl("", "set", "image", "pod/orphan", "app="+appImage("v2"), "side="+appImage("v2")) // its generation is 2
	for name, change := range map[string]func(*report){
		"both containers are others": func(*report) {},
		"one was not to restart":     func(r *report) { r.mark(","+sideMoved, ""); r.side().ContainerID = "cri://old-side" },
		"it is new": func(r *report) {
			r.status.Conditions = r.status.Conditions[1:]
			delete(r.annotations, moveAnnotation)
		},
		"one has the same image, by name": func(r *report) { r.side().ImageID, r.side().Image = "sha256:old", "v2" },
		"the gate is open, unreported":    func(r *report) { r.status.Conditions[0].Status = corev1.ConditionTrue },
	} {
		s.stores(name, change, "True True")
	}
	for name, change := range map[string]func(*report){
		"one has become unready": func(r *report) { r.side().ContainerID, r.side().Ready = "cri://old-side", false; r.unready() },
		"one does not run, and was unready": func(r *report) {
			r.wasUnready()
			r.side().State, r.side().Ready = corev1.ContainerState{}, false
			r.unready()
		},
		"the gate opens, one is not ready": func(r *report) { r.side().Ready = false; r.unready() },
		"it is new, and only now starts":   func(r *report) { r.status.Conditions = r.status.Conditions[1:]; r.unready() },
	} {
		s.stores(name, change, "True False")
	}
	for name, change := range map[string]func(*report){
		"one is the same":          func(r *report) { r.side().ContainerID = "cri://old-side" },
		"one has no ID":            func(r *report) { r.side().ContainerID = "" },
		"one came again as it was": func(r *report) { r.side().ImageID = "sha256:old" },
		"one is unready, as it was": func(r *report) {
			r.wasUnready()
			r.side().ContainerID, r.side().Ready = "cri://old-side", false
			r.unready()
		},
		"one is not reported":          func(r *report) { r.side().Name = "other" },
		"the old container is unknown": func(r *report) { r.mark(`old-side"`, `old-side","unsure":true`) },
		"nothing was to restart":       func(r *report) { r.mark(appMoved+","+sideMoved, "") },
		"the mark is of another patch": func(r *report) { r.mark(`"generation":2`, `"generation":1`) },
		"there is no mark":             func(r *report) { delete(r.annotations, moveAnnotation) },
		"it is a surge pod":            func(r *report) { r.annotations["stayput.dev/surge-pod"] = "true" },
		"the patch is not seen":        func(r *report) { r.status.ObservedGeneration = 1 },
		"the gate was closed since":    func(r *report) { r.status.Conditions[0].ObservedGeneration = 2 },
		"its closing time is unknown":  func(r *report) { r.status.Conditions[0].ObservedGeneration = 0 },
		"no kubelet reports":           func(r *report) { r.group = "system:authenticated" },
		"the kubelet does not know of the gate": func(r *report) {
			delete(r.annotations, moveAnnotation)
			r.status.Conditions[2].Status, r.status.Conditions[2].Reason = corev1.ConditionTrue, ""
		},
	} {
		s.stores(name, change, "False False")
	}
}

const (
	appMoved  = `"app":{"image":"v2","imageID":"sha256:old","containerID":"cri://old-app"}`
	sideMoved = `"side":{"image":"v2","imageID":"sha256:old","containerID":"cri://old-side"}`
)

// leftover returns a pod that no workload owns and no kubelet runs.
func leftover() *corev1.Pod {
	spec := web(1, withSide).Spec.Template.Spec
	spec.NodeName, spec.TerminationGracePeriodSeconds = "nowhere", new(int64)
	spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: servingGate}}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "orphan"},
		Spec:       spec,
	}
}

// report is a report about a pod by a client of a group, and Stayput's annotations on the pod.
type report struct {
	group       string
	annotations map[string]string
	status      corev1.PodStatus
}

// restarted returns the report about a pod that was patched behind its closed gate. Both of its containers have been replaced, and are
// ready.
func restarted() *report {
	now := metav1.Now()
	r := &report{
		group:       "system:nodes",
		annotations: map[string]string{moveAnnotation: `{"hash":"h","generation":2,"containers":{` + appMoved + "," + sideMoved + `}}`},
		status: corev1.PodStatus{
			ObservedGeneration: 2,
			Conditions: []corev1.PodCondition{
				{Type: servingGate, Status: corev1.ConditionFalse, ObservedGeneration: 1, LastTransitionTime: now},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", LastTransitionTime: now},
			},
		},
	}
	for _, name := range []string{"app", "side"} {
		r.status.ContainerStatuses = append(r.status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, ContainerID: "cri://new-" + name, ImageID: "sha256:new", Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return r
}

func (r *report) side() *corev1.ContainerStatus { return &r.status.ContainerStatuses[1] }

// unready changes the report to one with a container that is not ready.
func (r *report) unready() {
	for i := range r.status.Conditions {
		if c := &r.status.Conditions[i]; c.Type != servingGate {
			c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
		}
	}
}

// wasUnready changes the mark: side was not ready when it was patched.
func (r *report) wasUnready() { r.mark(`old-side"`, `old-side","unready":true`) }

// mark replaces a part of Stayput's mark.
func (r *report) mark(old, by string) {
	r.annotations[moveAnnotation] = strings.Replace(r.annotations[moveAnnotation], old, by, 1)
}

// stores checks the pod's gate and its Ready condition after a report.
func (s *stage) stores(name string, change func(*report), want string) {
	s.Helper()
	r := restarted()
	change(r)
	patch := manifest(s.T, map[string]any{"metadata": map[string]any{"annotations": r.annotations}, "status": r.status})
	state := func(kind string) string { return `{.status.conditions[?(@.type=="` + kind + `")].status}` }
	got := s.kubectl("", "patch", "pod", "orphan", "--subresource=status", "--type=merge", "-p", patch, "--dry-run=server",
		"--as=system:node:nowhere", "--as-group="+r.group, "--as-group=system:masters", // kubectl reads objects that a kubelet may not read
		"-o", "jsonpath="+state(servingGate)+" "+state("Ready"))
	if got != want {
		s.Errorf("%s: gate and Ready are %q instead of %q", name, got, want)
	}
}

// readyAtOnce checks that every pod whose containers and gates are ready is Ready, and that no pod with a closed gate is Ready.
func readyAtOnce(t *testing.T) {
	saysReady(t)
	s := newStage(t, labelled)
	s.create(web(4))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.completes("web")
	for _, wrong := range s.recorder.unlikeItself() {
		s.Error(wrong)
	}
}

// readyAfterStartup tests a startup probe. Kubelets 1.35 and 1.36 report a container as started when it has just restarted, and take that
// back with the next run of the startup probe (kubernetes#141155). The judge checks that no other pod is taken out of service in between.
func readyAfterStartup(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3, rolling("1", "0"), starting))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.completes("web")
}

// starting gives the application a startup probe besides its readiness probe, with fewer runs.
func starting(d *appsv1.Deployment) {
	app := &d.Spec.Template.Spec.Containers[0]
	app.StartupProbe = app.ReadinessProbe.DeepCopy()
	app.StartupProbe.PeriodSeconds, app.StartupProbe.FailureThreshold = 3, 30
}

// unlikeItself returns the states of pods, of all that were ever stored, in which Ready differs from ContainersReady and all gates.
func (r *Recorder) unlikeItself() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var wrong []string
	for _, e := range r.events {
		pod, is := e.object.(*corev1.Pod)
		if !is {
			continue
		}
		containers := conditionOf(pod, corev1.ContainersReady)
		should := allGatesOpen(pod) && containers != nil && containers.Status == corev1.ConditionTrue
		if ready(pod) != should {
			wrong = append(wrong, fmt.Sprintf("pod %s at version %s: Ready is %t, and should be %t", pod.Name, pod.ResourceVersion,
				ready(pod), should))
		}
	}
	return wrong
}

// allGatesOpen also looks at the gates of other controllers: a pre-pull pod has one that never opens.
func allGatesOpen(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		c := conditionOf(pod, g.ConditionType)
		return c == nil || c.Status != corev1.ConditionTrue
	})
}
