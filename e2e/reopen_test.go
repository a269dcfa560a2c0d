//go:build e2e

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gatesReopen: what a kubelet must report for a gate to open with its report. On a pod of a node that is not there nobody else
// reports, and dry runs leave it as it is.
func gatesReopen(t *testing.T) {
	reopens(t)
	s := &stage{T: t, namespace: createNamespace(t, labelled)} // without a Recorder: the pod is nobody's
	t.Cleanup(func() { deleteNamespace(t, s.namespace) })
	s.usable()
	s.kubectl(manifest(t, stray()), "create", "-f", "-")
	s.kubectl("", "set", "image", "pod/stray", "app="+appImage("v2"), "side="+appImage("v2")) // its generation is 2
	for name, change := range map[string]func(*report){
		"both containers are others": func(*report) {},
		"one was not to restart":     func(r *report) { r.mark(","+sideMoved, ""); r.side().ContainerID = "cri://old" },
	} {
		s.gateAfter(name, change, corev1.ConditionTrue)
	}
	for name, change := range map[string]func(*report){
		"one is the same":                 func(r *report) { r.side().ContainerID = "cri://old-side" },
		"one has no ID":                   func(r *report) { r.side().ContainerID = "" },
		"one does not run":                func(r *report) { r.side().State = corev1.ContainerState{} },
		"one is not reported":             func(r *report) { r.side().Name = "other" },
		"nobody knows what ran before":    func(r *report) { r.mark(`old-side"`, `old-side","unsure":true`) },
		"nothing was to restart":          func(r *report) { r.mark(appMoved+","+sideMoved, "") },
		"the mark is of another patch":    func(r *report) { r.mark(`"generation":2`, `"generation":1`) },
		"there is no mark":                func(r *report) { delete(r.annotations, moveAnnotation) },
		"the pod is borrowed":             func(r *report) { r.annotations["stayput.dev/borrowed"] = "true" },
		"the patch is not seen":           func(r *report) { r.status.ObservedGeneration = 1 },
		"the gate was closed since":       func(r *report) { r.status.Conditions[0].ObservedGeneration = 2 },
		"nobody knows when it was closed": func(r *report) { r.status.Conditions[0].ObservedGeneration = 0 },
		"no kubelet reports":              func(r *report) { r.by = "system:authenticated" },
	} {
		s.gateAfter(name, change, corev1.ConditionFalse)
	}
}

const (
	moveAnnotation = "stayput.dev/move"
	appMoved       = `"app":{"image":"v2","containerID":"cri://old-app"}`
	sideMoved      = `"side":{"image":"v2","containerID":"cri://old-side"}`
)

// stray is a pod that belongs to nobody and runs nowhere.
func stray() *corev1.Pod {
	spec := web(1, withSide).Spec.Template.Spec
	spec.NodeName, spec.TerminationGracePeriodSeconds = "nowhere", new(int64)
	spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: servingGate}}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "stray"},
		Spec:       spec,
	}
}

// report is what somebody of a group says of a pod, and what Stayput has noted on it.
type report struct {
	by          string
	annotations map[string]string
	status      corev1.PodStatus
}

// restarted: a pod patched behind its closed gate, both of whose containers are others now.
func restarted() *report {
	r := &report{
		by:          "system:nodes",
		annotations: map[string]string{moveAnnotation: `{"hash":"h","generation":2,"containers":{` + appMoved + "," + sideMoved + `}}`},
		status: corev1.PodStatus{
			ObservedGeneration: 2,
			Conditions:         []corev1.PodCondition{{Type: servingGate, Status: corev1.ConditionFalse, ObservedGeneration: 1}},
		},
	}
	for _, name := range []string{"app", "side"} {
		running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		r.status.ContainerStatuses = append(r.status.ContainerStatuses,
			corev1.ContainerStatus{Name: name, ContainerID: "cri://new-" + name, State: running})
	}
	return r
}

func (r *report) side() *corev1.ContainerStatus { return &r.status.ContainerStatuses[1] }

// mark replaces a part of Stayput's mark.
func (r *report) mark(old, by string) {
	r.annotations[moveAnnotation] = strings.Replace(r.annotations[moveAnnotation], old, by, 1)
}

// gateAfter demands a state of the stray pod's gate after a report.
func (s *stage) gateAfter(name string, change func(*report), want corev1.ConditionStatus) {
	s.Helper()
	r := restarted()
	change(r)
	patch := manifest(s.T, map[string]any{"metadata": map[string]any{"annotations": r.annotations}, "status": r.status})
	gate := s.kubectl("", "patch", "pod", "stray", "--subresource=status", "--type=merge", "-p", patch, "--dry-run=server",
		"--as=system:node:nowhere", "--as-group="+r.by, "--as-group=system:masters", // kubectl reads what no kubelet may
		"-o", `jsonpath={.status.conditions[?(@.type=="`+servingGate+`")].status}`)
	if gate != string(want) {
		s.Errorf("%s: the gate is %q instead of %q", name, gate, want)
	}
}
