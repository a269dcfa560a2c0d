package daemonsets

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/stayput/stayput/inplace/apps"
)

// places is what a DaemonSet's template says about nodes, as NodeShouldRunDaemonPod in pkg/controller/daemon/daemon_controller.go
// understands it.
type places struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

func placesOf(d *apps.DaemonSet) places {
	spec := d.Spec.Template.Decoded().Spec
	return places{
		nodeName:    spec.NodeName,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec}),
		tolerations: slices.Concat(spec.Tolerations, daemonTolerations(spec.HostNetwork)),
	}
}

// daemonTolerations returns the tolerations that AddOrUpdateDaemonPodTolerations of pkg/controller/daemon/util/daemonset_util.go adds.
func daemonTolerations(hostNetwork bool) []corev1.Toleration {
	effects := map[string]corev1.TaintEffect{
		corev1.TaintNodeNotReady: corev1.TaintEffectNoExecute, corev1.TaintNodeUnreachable: corev1.TaintEffectNoExecute,
		corev1.TaintNodeDiskPressure: corev1.TaintEffectNoSchedule, corev1.TaintNodeMemoryPressure: corev1.TaintEffectNoSchedule,
		corev1.TaintNodePIDPressure: corev1.TaintEffectNoSchedule, corev1.TaintNodeUnschedulable: corev1.TaintEffectNoSchedule,
	}
	if hostNetwork {
		effects[corev1.TaintNodeNetworkUnavailable] = corev1.TaintEffectNoSchedule
	}
	var tolerations []corev1.Toleration
	for key, effect := range effects {
		tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	return tolerations
}

// replacedBy returns a function that reports whether one of the native controller's own tolerations replaces a toleration:
// AddOrUpdateTolerationInPodSpec in pkg/apis/core/v1/helper.
func replacedBy(own []corev1.Toleration) func(corev1.Toleration) bool {
	return func(toleration corev1.Toleration) bool {
		return slices.ContainsFunc(own, func(one corev1.Toleration) bool { return one.MatchToleration(&toleration) })
	}
}

// shouldRun reports whether the native controller creates a pod on the node if there is none.
func (p places) shouldRun(node *corev1.Node) bool {
	return p.fits(node) && p.tolerates(node, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule)
}

// shouldContinue reports whether the native controller leaves a pod that is on the node there.
func (p places) shouldContinue(node *corev1.Node) bool {
	return p.fits(node) && p.tolerates(node, corev1.TaintEffectNoExecute)
}

func (p places) fits(node *corev1.Node) bool {
	if p.nodeName != "" && p.nodeName != node.Name {
		return false
	}
	matches, err := p.affinity.Match(node)
	return err == nil && matches // as natively: an affinity that does not parse matches no node
}

func (p places) tolerates(node *corev1.Node, effects ...corev1.TaintEffect) bool {
	for _, effect := range effects {
		if _, refused := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, p.tolerations,
			func(taint *corev1.Taint) bool { return taint.Effect == effect }, true); refused {
			return false
		}
	}
	return true
}
