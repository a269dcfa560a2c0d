package disruption

import (
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MostBudgets is how many PodDisruptionBudgets of one namespace are looked at: a namespace has about as many as workloads.
const MostBudgets = 2000

// mostOfOne is how many PodDisruptionBudgets may select pods of one workload. The API server evicts no pod that two of them select.
const mostOfOne = 20

// These bound what is kept of a PodDisruptionBudget, since users decide how large it is.
const (
	longestSelector = 1 << 10
	longestMessage  = 256
	mostDisrupted   = 500
)

// Trim drops what is not needed of a PodDisruptionBudget, besides its metadata. One that is too large to be kept counts as one that selects
// every pod, and whose pods cannot be counted: it allows no disruption.
func Trim(of *policyv1.PodDisruptionBudget) {
	selector, status := of.Spec.Selector, of.Status
	of.Spec = policyv1.PodDisruptionBudgetSpec{Selector: selector}
	of.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: status.ObservedGeneration, DisruptedPods: status.DisruptedPods,
		DisruptionsAllowed: status.DisruptionsAllowed, CurrentHealthy: status.CurrentHealthy, DesiredHealthy: status.DesiredHealthy,
		ExpectedPods: status.ExpectedPods}
	if allowed := apimeta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition); allowed != nil {
		kept := *allowed
		kept.Message = kept.Message[:min(len(kept.Message), longestMessage)]
		of.Status.Conditions = []metav1.Condition{kept}
	}
	if selector.Size() > longestSelector || len(status.DisruptedPods) > mostDisrupted {
		of.Spec.Selector, of.Status.DisruptedPods = &metav1.LabelSelector{}, nil
		uncountable(of, "its selector or its list of evicted pods is too long for Stayput")
	}
}

// uncountable has the PodDisruptionBudget say that its pods cannot be counted.
func uncountable(of *policyv1.PodDisruptionBudget, why string) {
	of.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
		Reason: policyv1.SyncFailedReason, Message: why}}
}
