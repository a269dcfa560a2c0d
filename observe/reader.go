package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/prepull"
)

// Reader reads snapshots for package inplace. Every error is one of the underlying client.Reader, with what was read.
type Reader struct {
	client.Reader
	// Rules are the administrator's: what workloads say of themselves comes to them.
	Rules              inplace.Rules
	ExcludedNamespaces Excluded
	// Stores are those of the underlying reader, if that is a cache that Index was called for, and whose objects went through Keep. Any other
	// reader has none, and lists by the workload's label selector, as the API server knows no such index.
	Stores *Stores
	// Whole reads what the cache has only stubs of. Needed with Stores. Get and List, which are the cache's own, return the stubs.
	Whole *Whole
	// Waiter is what pullers run.
	Waiter prepull.Waiter
	// Hold has the releases on record; without a Reader there are none.
	Hold Hold

	podless, nodeless bool
}

// indexed reports whether it reads a cache.
func (r Reader) indexed() bool { return r.Stores != nil }

// Excluded names the namespaces that are never managed, whatever their labels say: kube-system and Stayput's own.
type Excluded []string

// modeOf returns the mode of a workload with these labels in the namespace.
func (e Excluded) modeOf(namespace metav1.Object, workloadLabels map[string]string) inplace.Mode {
	if e.has(namespace.GetName()) {
		return inplace.ModeNone
	}
	return inplace.ModeOf(namespace.GetLabels(), workloadLabels)
}

func (e Excluded) has(namespace string) bool { return slices.Contains(e, namespace) }

// WithoutPods returns a Reader whose rollouts have no Pods: cheaper, and all that a Verdict needs.
func (r Reader) WithoutPods() Reader {
	r.podless = true
	return r
}

// WithoutNodes returns a Reader whose rollouts have no Nodes, which take long to read where there are many.
func (r Reader) WithoutNodes() Reader {
	r.nodeless = true
	return r
}

// Mode returns how template edits of a workload with these labels are carried out in the namespace.
func (r Reader) Mode(ctx context.Context, namespace string, workloadLabels map[string]string) (inplace.Mode, error) {
	mode, _, err := r.policy(ctx, namespace, workloadLabels)
	return mode, err
}

// policy returns what the labels of the namespace and of a workload in it say.
func (r Reader) policy(ctx context.Context, namespace string, workloadLabels map[string]string) (inplace.Mode, inplace.Settings, error) {
	if r.ExcludedNamespaces.has(namespace) { // not even read
		return inplace.ModeNone, inplace.Settings{}, nil
	}
	var ns corev1.Namespace
	if err := r.Get(ctx, types.NamespacedName{Name: namespace}, &ns); err != nil {
		return inplace.ModeNone, inplace.Settings{}, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return r.ExcludedNamespaces.modeOf(&ns, workloadLabels), inplace.SettingsOf(ns.Labels, workloadLabels), nil
}

// orders are how the update of a workload is to be made: by labels, by annotations, and by the record of one that was given back.
type orders struct {
	mode              inplace.Mode
	settings          inplace.Settings
	rules             inplace.Rules
	persistedFallback string
}

func (r Reader) ordersFor(ctx context.Context, workload client.Object) (orders, error) {
	mode, settings, err := r.policy(ctx, workload.GetNamespace(), workload.GetLabels())
	if err != nil {
		return orders{}, err
	}
	fallback, err := r.Hold.PersistedFallback(ctx, workload.GetUID())
	annotations := workload.GetAnnotations()
	return orders{mode, settings, r.Rules.For(annotations).Restarting(settings, annotations).Resizing(settings), fallback.Hash}, err
}

// WorkloadOf reads the workload whose pod it is, or whose puller; nil if there is none.
func (r Reader) WorkloadOf(ctx context.Context, pod *corev1.Pod) (client.Object, error) {
	controlled, err := r.underWorkload(ctx, pod)
	if err != nil {
		return nil, err
	}
	for _, kind := range Kinds {
		if workload, err := kind.Workload.controllerOf(ctx, r, controlled); workload != nil || err != nil {
			return workload, err
		}
	}
	return nil, nil
}

// underWorkload is the revision that controls the pod, or else the pod: DaemonSets control their pods, and Deployments their pullers.
func (r Reader) underWorkload(ctx context.Context, pod *corev1.Pod) (client.Object, error) {
	for _, of := range revisionTypes() {
		if revision, err := of.controllerOf(ctx, r, pod); revision != nil || err != nil {
			return revision, err
		}
	}
	return pod, nil
}

// object is a T that is used through its pointer.
type object[T any] interface {
	*T
	client.Object
}

// controllerOfKind returns the reference to the controller of an object if it is of that kind of ours; nil if not.
func controllerOfKind(object metav1.Object, kind string) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != GroupVersion.WithKind(kind).GroupKind() {
		return nil
	}
	return owner
}

// findController reads the controller of an object if it is of that kind of ours; nil if not, or if it is gone.
func findController[T any, P object[T]](ctx context.Context, r Reader, of client.Object, kind string) (P, error) {
	owner := controllerOfKind(of, kind)
	if owner == nil {
		return nil, nil
	}
	found, err := find[T, P](ctx, r, types.NamespacedName{Namespace: of.GetNamespace(), Name: owner.Name})
	if err != nil || found == nil || found.GetUID() != owner.UID {
		return nil, err
	}
	return found, nil
}

// find reads one object, whole; nil if there is none.
func find[T any, P object[T]](ctx context.Context, r Reader, key types.NamespacedName) (P, error) {
	found := P(new(T))
	err := r.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %T %s: %w", found, key, err)
	}
	return whole[T](ctx, r, found)
}
