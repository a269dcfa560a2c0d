package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/prepull"
)

// Reader reads what package inplace decides on. Every error is an error of the underlying client.Reader, and says what
// was read.
type Reader struct {
	client.Reader
	// Rules are the administrator's rules. The rules of each workload are added to them.
	Rules              inplace.Rules
	ExcludedNamespaces Excluded
	// Stores are the stores of the underlying reader, if it reads a cache. Then Index must have been called for the cache,
	// and CacheForm's methods must be the cache's transforms. A Reader of anything else has no Stores. It lists by the
	// workload's label selector, because the API server has no index by controller.
	Stores *Stores
	// Form has read the objects of which the cache has only outlines, and knows how large pods are. It is required with
	// Stores. Get and List are the cache's own methods, and return the outlines.
	Form *CacheForm
	// Waiter is what pre-pull pods run.
	Waiter prepull.WaitImage
	// Hold has the persisted fallbacks. A Hold without a Reader has none.
	Hold Hold

	podless, nodeless bool
}

// Excluded has the names of the namespaces that are never managed, whatever their labels say: kube-system and Stayput's
// own namespace.
type Excluded []string

// modeOf returns the mode of a workload of that kind, with these labels, in the namespace.
func (e Excluded) modeOf(kind Kind, namespace metav1.Object, workloadLabels map[string]string) inplace.Mode {
	if e.Has(namespace.GetName()) {
		return inplace.ModeNone
	}
	return kind.ModeOf(namespace, workloadLabels)
}

// Manages reports whether Stayput may manage workloads in the namespace, as its label says.
func (e Excluded) Manages(namespace *corev1.Namespace) bool {
	return e.modeOf(Kind{}, namespace, nil).Manages()
}

// Has reports whether the namespace is never managed.
func (e Excluded) Has(namespace string) bool { return slices.Contains(e, namespace) }

// WithoutPods returns a Reader whose rollouts have no Pods. That is cheaper, and a Decision needs no pods.
func (r Reader) WithoutPods() Reader {
	r.podless = true
	return r
}

// WithoutNodes returns a Reader whose rollouts have no Nodes. Nodes take long to read where there are many.
func (r Reader) WithoutNodes() Reader {
	r.nodeless = true
	return r
}

// NamespaceMode returns the mode of workloads without labels in the namespace, of a kind that the namespace names.
func (r Reader) NamespaceMode(ctx context.Context, namespace string) (inplace.Mode, error) {
	return Kind{}.Mode(ctx, r, namespace, nil)
}

// Mode returns the mode of a workload of the kind, with these labels, in the namespace.
func (k Kind) Mode(ctx context.Context, r Reader, namespace string, workloadLabels map[string]string) (inplace.Mode, error) {
	mode, _, err := k.policy(ctx, r, namespace, &metav1.ObjectMeta{Labels: workloadLabels})
	return mode, err
}

// policy returns the mode and the settings that result from the labels and annotations of the namespace and of a workload in it.
func (k Kind) policy(
	ctx context.Context, r Reader, namespace string, workload metav1.Object,
) (inplace.Mode, inplace.Settings, error) {
	if r.ExcludedNamespaces.Has(namespace) { // no need to read it
		return inplace.ModeNone, inplace.Settings{}, nil
	}
	var ns corev1.Namespace
	if err := r.Get(ctx, types.NamespacedName{Name: namespace}, &ns); err != nil {
		return inplace.ModeNone, inplace.Settings{}, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	settings := inplace.SettingsOf(ns.Annotations, workload.GetAnnotations())
	return r.ExcludedNamespaces.modeOf(k, &ns, workload.GetLabels()),
		settings.During(inplace.WindowOf(settings.InForce(workload)), time.Now()), nil
}

// snapshotOf returns a snapshot with what the labels, the annotations and the persisted fallback of a workload say, and nothing else yet.
func (k Kind) snapshotOf(ctx context.Context, r Reader, workload client.Object) (engine.Snapshot, error) {
	mode, settings, err := k.policy(ctx, r, workload.GetNamespace(), workload)
	if err != nil {
		return engine.Snapshot{}, err
	}
	fallback, err := r.Hold.PersistedFallback(ctx, workload.GetUID())
	rules := r.Rules.For(settings.InForce(workload))
	return engine.Snapshot{Mode: mode, Settings: settings, Rules: rules, Fallback: fallback}, err
}

// WorkloadOf returns the workload of the pod or pre-pull pod; nil if there is none.
func (r Reader) WorkloadOf(ctx context.Context, pod *corev1.Pod) (client.Object, error) {
	for _, kind := range Kinds {
		holder, err := kind.Holder(ctx, r, pod)
		if err != nil {
			return nil, err
		}
		if workload, err := kind.Workload.controllerOf(ctx, r, holder); workload != nil || err != nil {
			return workload, err
		}
	}
	return nil, nil
}

// object is a pointer to a T that is a client.Object.
type object[T any] interface {
	*T
	client.Object
}

// as returns the object as its type, which it has; nil if there is none.
func as[P client.Object](found client.Object, err error) (P, error) {
	typed, _ := found.(P)
	return typed, err
}

// Find returns one object, whole; nil if there is none.
func Find[T any, P object[T]](ctx context.Context, r Reader, key types.NamespacedName) (P, error) {
	return as[P](r.find(ctx, key, P(new(T))))
}

// find reads one object into the empty one, and returns it whole; nil if there is none.
func (r Reader) find(ctx context.Context, key types.NamespacedName, found client.Object) (client.Object, error) {
	err := r.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kindOf(found), key, err)
	}
	whole, err := r.whole(ctx, found)
	if whole != nil && whole != found {
		whole = copyOf(whole)
	}
	return whole, err
}
