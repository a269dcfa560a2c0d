package observe

import (
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
	// Indexed says that the underlying reader is a cache that Index was called for. Any other reader lists by the
	// workload's label selector, as the API server knows no such index.
	Indexed bool
	// Waiter is what pullers run.
	Waiter inplace.Waiter

	podless bool
}

// WithoutPods returns a Reader whose rollouts have no Pods: cheaper, and all that a Verdict needs.
func (r Reader) WithoutPods() Reader {
	r.podless = true
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
	if rollout.Nodes, err = r.nodesOf(ctx, rollout.Pods); err != nil {
		return nil, err
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

// RolloutOf reads what belongs to the given Deployment, which may be one that is not stored yet.
func (r Reader) RolloutOf(ctx context.Context, deployment *inplace.Deployment) (*inplace.Rollout, error) {
	mode, settings, err := r.policy(ctx, deployment.Namespace, deployment.Labels)
	if err != nil {
		return nil, err
	}
	rollout := &inplace.Rollout{Deployment: deployment, Mode: mode, Settings: settings, Rules: r.Rules}
	if rollout.ReplicaSets, err = r.replicaSets(ctx, deployment); err != nil {
		return nil, err
	}
	if !r.podless {
		if rollout.Pods, err = r.pods(ctx, deployment, rollout.ReplicaSets); err != nil {
			return nil, err
		}
	}
	rollout.Now = time.Now()
	return rollout, nil
}

func (r Reader) replicaSets(ctx context.Context, deployment *inplace.Deployment) ([]*inplace.ReplicaSet, error) {
	var list inplace.ReplicaSetList
	if err := r.listOf(ctx, &list, selected{deployment, deployment.Spec.Selector}, deployment.UID); err != nil {
		return nil, err
	}
	return controlled(list.Items, deployment.UID), nil
}

// pods reads one list per ReplicaSet from an index, and one list altogether from the API server.
func (r Reader) pods(ctx context.Context, deployment *inplace.Deployment, owners []*inplace.ReplicaSet) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if !r.Indexed {
		if err := r.listOf(ctx, &list, selected{deployment, deployment.Spec.Selector}, ""); err != nil {
			return nil, err
		}
	}
	var pods []*corev1.Pod
	for _, owner := range owners {
		if r.Indexed {
			if err := r.listOf(ctx, &list, selected{deployment, deployment.Spec.Selector}, owner.UID); err != nil {
				return nil, err
			}
		}
		pods = append(pods, controlled(list.Items, owner.UID)...)
	}
	return pods, nil
}

// selected is a workload with its selector.
type selected struct {
	client.Object
	selector *metav1.LabelSelector
}

// listOf reads what the controller with that UID controls, or without an index everything the workload selects, as far as the
// further options let it.
func (r Reader) listOf(ctx context.Context, list client.ObjectList, of selected, uid types.UID, options ...client.ListOption) error {
	selector, err := metav1.LabelSelectorAsSelector(of.selector)
	if err != nil {
		return fmt.Errorf("selector of %T %s: %w", of.Object, client.ObjectKeyFromObject(of.Object), err)
	}
	options = append(options, client.InNamespace(of.GetNamespace()))
	if r.Indexed {
		options = append(options, client.MatchingFields{indexController: string(uid)})
	} else {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	if err := r.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list %T of %T %s: %w", list, of.Object, client.ObjectKeyFromObject(of.Object), err)
	}
	return nil
}

// object is a T that is used through its pointer.
type object[T any] interface {
	*T
	client.Object
}

// controlled returns those of the items that the object with that UID controls.
func controlled[T any, P object[T]](items []T, uid types.UID) []P {
	var owned []P
	for i := range items {
		item := P(&items[i])
		if owner := metav1.GetControllerOfNoCopy(item); owner != nil && owner.UID == uid {
			owned = append(owned, item)
		}
	}
	return owned
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

// find reads one object; nil if there is none.
func find[T any, P object[T]](ctx context.Context, r Reader, key types.NamespacedName) (P, error) {
	found := P(new(T))
	err := r.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %T %s: %w", found, key, err)
	}
	return found, nil
}
