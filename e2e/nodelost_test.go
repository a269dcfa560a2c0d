//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeLost checks that a pod on an unreachable node is replaced, as natively, because no kubelet would apply a patch of it. The other pods
// stay.
func nodeLost(t *testing.T) {
	long(t)
	s := newScenario(t, labelled)
	lost := s.spareNode()
	s.create(web(3, oneOnEachNode, rolling("1", "0")))
	before := s.pods("web")
	s.stopKubelet(lost)
	s.counts("the node controller to say that the pod is not Ready", 3, 2)
	s.begin("a pod is lost", Rules{Created: exactly(1), Deleted: exactly(1)})
	s.setImage("web", "app=v2")
	s.counts("the first pod to be updated", 1, 3)
	s.counts("the update to end without the node", 3, 3)
	startKubelet(t, lost)
	s.completes("web") // this also needs the deletion of the pod on the unreachable node
	s.runs("web", "v2")
	for uid, pod := range s.pods("web") {
		if was := before[uid]; was != nil {
			s.restarted(was, pod, once)
		}
	}
}

// counts waits until so many pods of web are updated and available.
func (s *scenario) counts(what string, updated, available int32) {
	s.Helper()
	s.wait(what, on("web", func(_ world, d *appsv1.Deployment) error {
		if is := d.Status; is.UpdatedReplicas != updated || is.AvailableReplicas != available || is.ObservedGeneration < d.Generation {
			return fmt.Errorf("%d pods are updated, and %d available", is.UpdatedReplicas, is.AvailableReplicas)
		}
		return nil
	}))
}

// oneOnEachNode spreads pods over the nodes that take them.
func oneOnEachNode(d *appsv1.Deployment) {
	honor := corev1.NodeInclusionPolicyHonor
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, NodeTaintsPolicy: &honor,
		LabelSelector: &metav1.LabelSelector{MatchLabels: d.Spec.Selector.MatchLabels},
	}}
}
