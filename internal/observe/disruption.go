package observe

import (
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/engine"
)

// Disruption returns the PodDisruptionBudgets of the namespace, and its pods.
func (r Reader) Disruption(ctx context.Context, namespace string) (disruption.Seen, error) {
	budgets, err := r.DisruptionBudgets(ctx, namespace)
	if err != nil {
		return disruption.Seen{}, err
	}
	pods, err := r.NamespacePods(ctx, namespace)
	return disruption.Seen{Budgets: budgets, Pods: pods}, err
}

// WithBudgets adds the PodDisruptionBudgets of the namespace to what was observed of a workload, if its settings ask for them.
func (r Reader) WithBudgets(ctx context.Context, namespace string, seen *engine.Snapshot) (err error) {
	if seen.Mode.Manages() && seen.Settings.DisruptionBudgets {
		seen.Disruption.Budgets, err = r.DisruptionBudgets(ctx, namespace)
	}
	return err
}

// DisruptionBudgets returns the PodDisruptionBudgets of the namespace, trimmed.
func (r Reader) DisruptionBudgets(ctx context.Context, namespace string) ([]*policyv1.PodDisruptionBudget, error) {
	most := disruption.MostBudgets
	if r.Stores.present() {
		most = math.MaxInt // the cache has all of them in memory already
	}
	var budgets []*policyv1.PodDisruptionBudget
	err := r.eachPage(ctx, &policyv1.PodDisruptionBudgetList{}, func(item runtime.Object) error {
		listed, ok := item.(*policyv1.PodDisruptionBudget)
		switch {
		case !ok:
			return fmt.Errorf("%T in a list of PodDisruptionBudgets", item)
		case len(budgets) == most:
			return fmt.Errorf("there are more than %d PodDisruptionBudgets", most)
		}
		one := *listed // a copy, so that the page itself can be freed
		if !r.Stores.present() {
			disruption.Trim(&one)
		}
		budgets = append(budgets, &one)
		return nil
	}, client.UnsafeDisableDeepCopy, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets of namespace %s: %w", namespace, err)
	}
	return budgets, nil
}

// NamespacePods returns all pods of the namespace. With Stores they are the cache's own objects. If they are too large together, some are
// outlines: an outline has few labels, so such a pod may count as one that no PodDisruptionBudget selects.
func (r Reader) NamespacePods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	if r.Stores.present() {
		pods, err := r.Stores.pods.by(toolscache.NamespaceIndex, namespace)
		if err != nil {
			return nil, err
		}
		whole, _, err := wholes(ctx, r, pods, func(live Reader) ([]*corev1.Pod, load, error) {
			all, err := live.NamespacePods(ctx, namespace)
			return all, load{}, err
		})
		return whole, err
	}
	pods, _, err := list(ctx, r, &corev1.PodList{}, func(*corev1.Pod) bool { return true }, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("list pods of namespace %s: %w", namespace, err)
	}
	return pods, nil
}
