package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// pullModel is the nodes and pre-pull pods of a cluster. Nothing is pulled first if parallel is 0.
type pullModel struct {
	parallel    int
	nodes       []*corev1.Node
	prePullPods []*corev1.Pod
	made        int
}

var waiterForTests = prepull.WaitImage{Image: "stayput/stayput:v1", Args: []string{"wait"}}

// mountingNode returns a node that is ready and can mount images.
func mountingNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.4.2",
		OperatingSystem: "linux"}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

func (m *pullModel) observe(settings *inplace.Settings, nodes *[]*corev1.Node, pull *prepull.Pulling) {
	settings.PrePullParallelism = m.parallel
	*nodes = m.nodes
	*pull = prepull.Pulling{PrePullPods: slices.Clone(m.prePullPods), WaitImage: waiterForTests}
}

// place gives the pod one of that many nodes.
func (m *pullModel) place(pod *corev1.Pod, nodes int) {
	if m.parallel == 0 {
		return
	}
	for len(m.nodes) < nodes {
		m.nodes = append(m.nodes, mountingNode(fmt.Sprint("n", len(m.nodes)+1)))
	}
	for placed := false; !placed || m.isDown(pod.Spec.NodeName); placed = true {
		pod.Spec.NodeName = fmt.Sprint("n", 1+m.made%nodes)
		m.made++
	}
}

// isDown reports whether the kubelet of the node does nothing.
func (m *pullModel) isDown(name string) bool {
	node := nodes.ByName(m.nodes)[name]
	return node != nil && nodes.Unreachable(node)
}

func (m *pullModel) create(step steps.CreatePrePullPod) error {
	if slices.ContainsFunc(m.prePullPods, func(p *corev1.Pod) bool { return p.Name == step.Pod.Name }) {
		return errConflict
	}
	prePullPod := step.Pod.DeepCopy()
	prePullPod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: prepull.WaitContainer,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	m.prePullPods = append(m.prePullPods, prePullPod)
	return nil
}

func (m *pullModel) delete(step steps.DeletePrePullPod) {
	m.prePullPods = slices.DeleteFunc(m.prePullPods, func(p *corev1.Pod) bool { return p == step.Pod || p.Name == step.Pod.Name })
}

// run has the kubelets pull. An image with "bad" in its name does not exist.
func (m *pullModel) run() (changed bool) {
	for i, prePullPod := range m.prePullPods {
		if prePullPod.Status.ContainerStatuses[0].State.Waiting == nil ||
			prePullPod.Status.ContainerStatuses[0].State.Waiting.Reason == "ErrImagePull" {
			continue
		}
		changed = true
		state := fixture.RunningSince(time.Time{})
		if at := slices.IndexFunc(steps.References(prePullPod), func(image string) bool { return strings.Contains(image, "bad") }); at >= 0 {
			state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull",
				Message: steps.References(prePullPod)[at] + ": not found"}}
		}
		m.prePullPods[i] = prePullPod.DeepCopy()
		m.prePullPods[i].Status.ContainerStatuses[0].State = state
	}
	return changed
}

// runPrePullPods lets pre-pull pods pull. A change makes the leader plan again.
func (w *world) runPrePullPods() {
	if w.pull.run() {
		w.version++
		w.stayput.stale = true
	}
}

// stopsForNothing demands that no container stops for an image that does not exist.
func (w *world) stopsForNothing(plan steps.Plan) {
	newRS, _ := plan.Decision.UpdateRevision.(*apps.ReplicaSet)
	if w.pull.parallel == 0 || newRS == nil || !strings.Contains(templateImages(newRS.Spec.Template), "bad") {
		return
	}
	for _, step := range plan.Steps {
		if gate, ok := step.(steps.SetGate); ok && !gate.Open && !readiness.Removing(gate.Pod) && gate.Pod.Spec.NodeName != "" &&
			!strings.Contains(fixture.Images(gate.Pod), "bad") {
			w.violated("%s is drained for an image that does not exist", gate.Pod.Name)
		}
	}
}
