package daemonsets

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/stayput/stayput/inplace/apps"
)

func placesOf(d *apps.DaemonSet) places {
	spec := d.Spec.Template.Decoded().Spec
	return places{
		nodeName:    spec.NodeName,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec}),
		tolerations: slices.Concat(spec.Tolerations, daemonTolerations(spec.HostNetwork)),
	}
}
