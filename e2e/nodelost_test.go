//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeLost: nobody would act on a patch of the pod there, so another takes its place, as natively. The others stay.
func nodeLost(t *testing.T) {
	long(t)
	s := newStage(t, labelled)
	lost := s.spareNode()
	s.create(web(3, oneOnEachNode, rolling("1", "0")))
	before := s.pods("web")
	s.stopKubelet(lost)
	s.wait("the node controller to say that the pod is not Ready", on("web", func(_ world, d *appsv1.Deployment) error {
		if d.Status.AvailableReplicas != 2 {
			return fmt.Errorf("%d pods are available", d.Status.AvailableReplicas)
		}
		return nil
	}))
	s.begin("a pod is lost", Rules{Created: exactly(1), Deleted: exactly(1)})
	s.setImage("web", "app=v2")
	s.completes("web")
	s.runs("web", "v2")
	for uid, pod := range s.pods("web") {
		if was := before[uid]; was != nil {
			s.restarted(was, pod, once)
		}
	}
	startKubelet(t, lost)
}

// oneOnEachNode spreads pods over the nodes that take them.
func oneOnEachNode(d *appsv1.Deployment) {
	honor := corev1.NodeInclusionPolicyHonor
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, NodeTaintsPolicy: &honor,
		LabelSelector: &metav1.LabelSelector{MatchLabels: d.Spec.Selector.MatchLabels},
	}}
}
