//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeLost checks that the pods on an unreachable node are replaced, as natively, because no kubelet would apply a patch of them: two,
// although only one may be unavailable. The other pods stay.
func nodeLost(t *testing.T) {
	long(t)
	s := newScenario(t, labelled)
	lost := s.spareNode()
	s.create(web(6, asManyOnEachNode, rolling("1", "0")))
	before := s.pods("web")
	s.stopKubelet(lost)
	s.counts("the node controller to say that the pods are not Ready", 6, 4)
	s.begin("two pods are lost", Rules{Created: exactly(2), Deleted: exactly(2), Outage: true})
	s.setImage("web", "app=v2")
	s.counts("the update to end without the node", 6, 6)
	startKubelet(t, lost)
	s.completes("web") // this also needs the deletion of the pods on the unreachable node
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

// asManyOnEachNode spreads pods over the nodes that take them.
func asManyOnEachNode(d *appsv1.Deployment) {
	honor := corev1.NodeInclusionPolicyHonor
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, NodeTaintsPolicy: &honor,
		LabelSelector: &metav1.LabelSelector{MatchLabels: d.Spec.Selector.MatchLabels},
	}}
}
