package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// Reader reads snapshots for package inplace. Every error is one of the underlying client.Reader, with what was read.
type Reader struct {
	client.Reader
	Rules inplace.Rules
	// ExcludedNamespaces are never managed, whatever their labels say: kube-system and Stayput's own.
	ExcludedNamespaces []string
	// Indexed says that the underlying reader is a cache that Index was called for, and whose objects went through Keep. Any other
	// reader lists by the workload's label selector, as the API server knows no such index.
	Indexed bool
	// Whole reads what the cache has only stubs of. Needed if Indexed. Get and List, which are the cache's own, return the stubs.
	Whole *Whole
	// Waiter is what pullers run.
	Waiter inplace.Waiter
	// Hold has the releases on record; without a Reader there are none.
	Hold Hold

	podless, nodeless bool
}

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
	if slices.Contains(r.ExcludedNamespaces, namespace) {
		return inplace.ModeNone, inplace.Settings{}, nil
	}
	var ns corev1.Namespace
	if err := r.Get(ctx, types.NamespacedName{Name: namespace}, &ns); err != nil {
		return inplace.ModeNone, inplace.Settings{}, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return inplace.ModeOf(ns.Labels, workloadLabels), inplace.SettingsOf(ns.Labels, workloadLabels), nil
}

// Rollout reads the Deployment and what belongs to it, its nodes and pullers too; nil if there is no such Deployment.
func (r Reader) Rollout(ctx context.Context, key types.NamespacedName) (*inplace.Rollout, error) {
	deployment, err := r.Deployment(ctx, key)
	if deployment == nil || err != nil {
		return nil, err
	}
	rollout, err := r.RolloutOf(ctx, deployment)
	if err != nil {
		return nil, err
	}
	if !r.nodeless {
		if rollout.Nodes, err = r.nodesOf(ctx, rollout.Pods); err != nil {
			return nil, err
		}
	}
	rollout.Pull, err = r.pulling(ctx, deployment, deployment.UID)
	return rollout, err
}

// RolloutOfReplicaSet is Rollout for the Deployment that controls the ReplicaSet; nil if there is none.
func (r Reader) RolloutOfReplicaSet(ctx context.Context, rs *inplace.ReplicaSet) (*inplace.Rollout, error) {
	deployment, err := r.DeploymentOf(ctx, rs)
	if deployment == nil || err != nil {
		return nil, err
	}
	return r.RolloutOf(ctx, deployment)
}

// Deployment reads one Deployment; nil if there is none.
func (r Reader) Deployment(ctx context.Context, key types.NamespacedName) (*inplace.Deployment, error) {
	return find[inplace.Deployment](ctx, r, key)
}

// ReplicaSet reads one ReplicaSet; nil if there is none.
func (r Reader) ReplicaSet(ctx context.Context, key types.NamespacedName) (*inplace.ReplicaSet, error) {
	return find[inplace.ReplicaSet](ctx, r, key)
}

// DeploymentOf reads the Deployment that controls the ReplicaSet; nil if there is none with the UID its reference names.
func (r Reader) DeploymentOf(ctx context.Context, rs *inplace.ReplicaSet) (*inplace.Deployment, error) {
	return findController[inplace.Deployment](ctx, r, rs, appsv1.SchemeGroupVersion.WithKind("Deployment"))
}

// ReplicaSetOf reads the ReplicaSet that controls the pod; nil if there is none with the UID its reference names.
func (r Reader) ReplicaSetOf(ctx context.Context, pod *corev1.Pod) (*inplace.ReplicaSet, error) {
	return findController[inplace.ReplicaSet](ctx, r, pod, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
}

// WorkloadOf reads the Deployment or DaemonSet whose pod it is, or whose puller; nil if there is none.
func (r Reader) WorkloadOf(ctx context.Context, pod *corev1.Pod) (client.Object, error) {
	controlled, err := r.underWorkload(ctx, pod)
	if err != nil {
		return nil, err
	}
	deployment, err := findController[inplace.Deployment](ctx, r, controlled, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err != nil {
		return nil, err
	}
	if deployment != nil {
		return deployment, nil
	}
	daemonSet, err := findController[inplace.DaemonSet](ctx, r, controlled, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	if daemonSet == nil || err != nil {
		return nil, err
	}
	return daemonSet, nil
}

// underWorkload is the revision that controls the pod, or else the pod: DaemonSets control their pods, and Deployments their pullers.
func (r Reader) underWorkload(ctx context.Context, pod *corev1.Pod) (client.Object, error) {
	rs, err := r.ReplicaSetOf(ctx, pod)
	if err != nil {
		return nil, err
	}
	if rs != nil {
		return rs, nil
	}
	revision, err := r.RevisionOf(ctx, pod)
	if err != nil {
		return nil, err
	}
	if revision != nil {
		return revision, nil
	}
	return pod, nil
}

// RolloutOf reads what belongs to the given Deployment, which may be one that is not stored yet.
func (r Reader) RolloutOf(ctx context.Context, deployment *inplace.Deployment) (*inplace.Rollout, error) {
	mode, settings, err := r.policy(ctx, deployment.Namespace, deployment.Labels)
	if err != nil {
		return nil, err
	}
	rollout := &inplace.Rollout{Deployment: deployment, Mode: mode, Settings: settings, Rules: r.Rules}
	record, err := r.Hold.Recorded(ctx, deployment.UID)
	if err != nil {
		return nil, err
	}
	rollout.Recorded = record.Hash
	of := selected{deployment, deployment.Spec.Selector}
	replicaSets, sets, err := owned[inplace.ReplicaSet](ctx, r, &inplace.ReplicaSetList{}, of, []types.UID{deployment.UID}, r.shared()...)
	if err != nil {
		return nil, err
	}
	rollout.ReplicaSets, rollout.Unread = replicaSets, sets.unread()
	if !r.podless {
		pods, load, err := owned[corev1.Pod](ctx, r, &corev1.PodList{}, of, uids(replicaSets), r.shared()...)
		if err != nil {
			return nil, err
		}
		rollout.Pods, rollout.Unread = pods, cmp.Or(rollout.Unread, load.unread())
	}
	rollout.Now = time.Now()
	return rollout, nil
}

// object is a T that is used through its pointer.
type object[T any] interface {
	*T
	client.Object
}

// findController reads the controller of an object if it is of that group and kind; nil if not, or if it is gone.
func findController[T any, P object[T]](ctx context.Context, r Reader, of client.Object, kind schema.GroupVersionKind) (P, error) {
	owner := metav1.GetControllerOfNoCopy(of)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind.GroupKind() {
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
