package disruption

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// Never returns one line about the first PodDisruptionBudget that can never allow a pod with these labels to be taken out of service, even
// if there are so many surge pods; empty if there is none. Such an update waits until the PodDisruptionBudget, or how many pods there are,
// is changed.
func Never(budgets []*policyv1.PodDisruptionBudget, labels map[string]string, surge int) string {
	pod := &corev1.Pod{}
	pod.Labels = labels
	for _, of := range budgets {
		one := &budget{PodDisruptionBudget: of, selector: selectorOf(of)}
		if !one.selects(pod) {
			continue
		}
		if why := one.never(surge); why != "" {
			return fmt.Sprintf("PodDisruptionBudget %s: %s, so the update waits until that changes", of.Name, why)
		}
	}
	return ""
}

// never returns why the budget allows no disruption, however healthy its pods are; empty if it may. As long as the disruption controller
// has not seen its last change, that is not known.
func (b *budget) never(surge int) string {
	switch desired, expected := b.Status.DesiredHealthy, b.Status.ExpectedPods; {
	case b.Status.ObservedGeneration < b.Generation:
		return ""
	case b.failed() != "":
		return "the disruption controller cannot count its pods (" + b.failed() + ")"
	case expected > 0 && int(desired) >= int(expected)+surge:
		return fmt.Sprintf("it requires %d healthy pods of %d", desired, expected)
	}
	return ""
}
