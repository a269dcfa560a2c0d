package podstate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace/edit"
)

func TestTooSmall(t *testing.T) {
	cpu := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: cpu("1")},
		{Name: "side", Resources: cpu("1")}}}}
	to := func(amount string) edit.ContainerChanges {
		resources := edit.ResourceChange{From: edit.AmountsOf(cpu("1")), To: edit.AmountsOf(cpu(amount))}
		return edit.ContainerChanges{{Container: "app", Resources: resources}}
	}
	of := func(amount string) *corev1.Node {
		node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: cpu(amount).Requests}}
		node.Name = "n"
		return node
	}
	for name, c := range map[string]struct {
		node    *corev1.Node
		changes edit.ContainerChanges
		want    string
	}{
		"unknown node":         {nil, to("9"), ""},
		"node without status":  {&corev1.Node{}, to("9"), ""},
		"all of it":            {of("4"), to("3"), ""},
		"more":                 {of("4"), to("3001m"), "cpu of 4001m is more than all of node n, which has 4"},
		"nothing changes":      {of("1"), nil, ""},
		"less, but still more": {of("1"), to("500m"), "cpu of 1500m is more than all of node n, which has 1"},
	} {
		if got := TooSmall(c.node, pod, c.changes); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOnVirtualNode(t *testing.T) {
	node := func(labels map[string]string, taint string) *corev1.Node {
		node := &corev1.Node{}
		node.Name, node.Labels, node.Spec.Taints = "n", labels, []corev1.Taint{{Key: taint}}
		return node
	}
	for name, c := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"unknown":                 {nil, false},
		"a kubelet":               {node(map[string]string{"type": "large"}, "dedicated"), false},
		"virtual by its label":    {node(map[string]string{"type": "virtual-kubelet"}, ""), true},
		"virtual by its taint":    {node(nil, "virtual-kubelet.io/provider"), true},
		"another key, same value": {node(map[string]string{"pool": "virtual-kubelet"}, ""), false},
	} {
		if got := OnVirtualNode(c.node) != nil; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
