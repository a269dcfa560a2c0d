package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// releaseEvery is the time between two passes of ReleaseAll, while others write to the same objects.
const releaseEvery = 200 * time.Millisecond

// ReleaseAll gives every update back to the native controller and opens every readiness gate, so that nothing depends on
// Stayput any more. It is for uninstalling, after the webhook configurations are gone, so that no new pod is given a gate.
// Everything is read from the API server, and again for as long as others write in between; the context bounds that. What
// the API server refuses does not keep it from the rest, and is returned.
func ReleaseAll(ctx context.Context, c client.Client, live observe.Reader) error {
	r := releaser{writer: writer{client: c, live: live, memory: &memory{}}, reader: live}
	return wait.PollUntilContextCancel(ctx, releaseEvery, true, func(ctx context.Context) (bool, error) {
		updates, updatesErr := r.releaseUpdates(ctx)
		gates, gatesErr := r.openGates(ctx)
		return updates && gates, errors.Join(updatesErr, gatesErr)
	})
}

type releaser struct {
	writer writer
	reader observe.Reader
}

// releaseUpdates releases the updates under way; done unless some object changed under it.
func (r releaser) releaseUpdates(ctx context.Context) (done bool, err error) {
	deployments, err := r.underWay(ctx)
	if err != nil {
		return false, err
	}
	done = true
	var failed []error
	for deployment := range deployments {
		outdated, err := r.release(ctx, deployment)
		if err != nil {
			failed = append(failed, fmt.Errorf("releasing Deployment %s: %w", deployment, err))
		}
		done = done && !outdated
	}
	return done, errors.Join(failed...)
}

// underWay returns the Deployments that may have to be released: those with a marked ReplicaSet, and the incomplete ones of
// labelled namespaces, whose scaling may be held although nothing is marked yet.
func (r releaser) underWay(ctx context.Context) (map[types.NamespacedName]bool, error) {
	deployments := map[types.NamespacedName]bool{}
	marked := &inplace.ReplicaSetList{}
	if err := r.reader.List(ctx, marked, client.HasLabels{inplace.LabelSettling}); err != nil {
		return nil, err
	}
	for i := range marked.Items {
		if name := controllerName(&marked.Items[i], "Deployment"); name != "" {
			deployments[types.NamespacedName{Namespace: marked.Items[i].Namespace, Name: name}] = true
		}
	}
	labelled := &corev1.NamespaceList{}
	if err := r.reader.List(ctx, labelled, client.HasLabels{inplace.LabelUpdate}); err != nil {
		return nil, err
	}
	for _, namespace := range labelled.Items {
		if err := r.incomplete(ctx, namespace.Name, deployments); err != nil {
			return nil, err
		}
	}
	return deployments, nil
}

// incomplete adds the Deployments of a namespace whose rollout has not finished.
func (r releaser) incomplete(ctx context.Context, namespace string, into map[types.NamespacedName]bool) error {
	list := &inplace.DeploymentList{}
	if err := r.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if deployment := &list.Items[i]; !isComplete(deployment) {
			into[client.ObjectKeyFromObject(deployment)] = true
		}
	}
	return nil
}

// release releases one Deployment, if Stayput holds it or has left a mark on it.
func (r releaser) release(ctx context.Context, deployment types.NamespacedName) (outdated bool, err error) {
	rollout, err := r.reader.Rollout(ctx, deployment)
	if err != nil || rollout == nil {
		return false, err
	}
	if !rollout.Verdict().Held && !anySettling(rollout) {
		return false, nil
	}
	plan := rollout.Release(inplace.Reason{Code: inplace.CodeUninstalled, Message: "Stayput is being uninstalled"})
	done := r.writer.carryOutAll(ctx, deployment, plan.Steps)
	return done.outdated, done.err
}

// openGates opens every gate that is not open, in whatever namespace; done unless some pod changed under it.
func (r releaser) openGates(ctx context.Context) (done bool, err error) {
	list := &corev1.PodList{}
	if err := r.reader.List(ctx, list); err != nil {
		return false, err
	}
	done = true
	var failed []error
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.DeletionTimestamp != nil || !isGated(pod) || isTrue(pod, inplace.ConditionServing) {
			continue
		}
		_, err := r.writer.carry(ctx, inplace.OpenGate(pod, time.Now()))
		switch {
		case isOutdated(err):
			done = false
		case err != nil:
			failed = append(failed, fmt.Errorf("opening the gate of pod %s: %w", client.ObjectKeyFromObject(pod), err))
		}
	}
	return done, errors.Join(failed...)
}

func anySettling(rollout *inplace.Rollout) bool {
	for _, replicaSet := range rollout.ReplicaSets {
		if inplace.Settling(replicaSet) {
			return true
		}
	}
	return false
}
