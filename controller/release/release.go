package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/observe"
)

// releaseEvery is the time between two passes of All, while others write to the same objects.
const releaseEvery = 200 * time.Millisecond

// All gives every update back to the native controller, opens every readiness gate and deletes every puller, so that nothing
// depends on Stayput any more. It is for uninstalling, after the webhook configurations are gone, so that no new pod is given a gate.
// Everything is read from the API server, and again for as long as others write in between; the context bounds that. What
// the API server refuses does not keep it from the rest, and is returned.
func All(ctx context.Context, c client.Client, live observe.Reader) error {
	r := releaser{writer: write.Writer{Client: c, Live: live, Memory: &write.Memory{}}, reader: live, patient: time.Now().Add(farewellPatience)}
	return wait.PollUntilContextCancel(ctx, releaseEvery, true, func(ctx context.Context) (bool, error) {
		updates, updatesErr := r.releaseUpdates(ctx)
		gates, gatesErr := r.openGates(ctx)
		pullers, pullersErr := r.deletePullers(ctx)
		return updates && gates && pullers, errors.Join(updatesErr, gatesErr, pullersErr)
	})
}

type releaser struct {
	writer write.Writer
	reader observe.Reader
	// patient: until then a pod that was just patched stays out of service, lest its old containers be taken for the new ones.
	patient time.Time
}

// releaseUpdates releases the updates under way; done unless some object changed under it.
func (r releaser) releaseUpdates(ctx context.Context) (done bool, err error) {
	done = true
	for _, kind := range kinds.All {
		released, releaseErr := r.releaseKind(ctx, kind)
		done, err = done && released, errors.Join(err, releaseErr)
	}
	return done, err
}

func (r releaser) releaseKind(ctx context.Context, kind kinds.Kind) (done bool, err error) {
	workloads, err := r.underWay(ctx, kind)
	if err != nil {
		return false, err
	}
	done = true
	var failed []error
	for workload := range workloads {
		outdated, err := r.release(ctx, workload, kind.Source(r.reader))
		if err != nil {
			failed = append(failed, fmt.Errorf("releasing %s %s: %w", kind.Workload.Name, workload, err))
		}
		done = done && !outdated
	}
	return done, errors.Join(failed...)
}

// underWay returns the workloads that may have to be released: those with a marked revision, and the unfinished ones of
// labelled namespaces, of which something may be held although nothing is marked yet.
func (r releaser) underWay(ctx context.Context, kind kinds.Kind) (map[types.NamespacedName]bool, error) {
	workloads, err := r.marked(ctx, kind)
	if err != nil {
		return nil, err
	}
	labelled, err := r.labelled(ctx)
	if err != nil {
		return nil, err
	}
	for _, namespace := range labelled {
		if err := r.each(ctx, kind.Workload.List(), func(workload client.Object) {
			if !kind.Finished(workload) {
				workloads[client.ObjectKeyFromObject(workload)] = true
			}
		}, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	return workloads, nil
}

// marked returns the workloads with a marked revision.
func (r releaser) marked(ctx context.Context, kind kinds.Kind) (map[types.NamespacedName]bool, error) {
	workloads := map[types.NamespacedName]bool{}
	err := r.each(ctx, kind.Revision.List(), func(revision client.Object) {
		if name := kind.NameOf(revision); name != "" {
			workloads[types.NamespacedName{Namespace: revision.GetNamespace(), Name: name}] = true
		}
	}, client.HasLabels{inplace.LabelSettling})
	return workloads, err
}

// labelled returns the namespaces with our label.
func (r releaser) labelled(ctx context.Context) ([]string, error) {
	var names []string
	err := r.each(ctx, &corev1.NamespaceList{}, func(namespace client.Object) {
		names = append(names, namespace.GetName())
	}, client.HasLabels{inplace.LabelUpdate})
	return names, err
}

// each reads a list and visits its items.
func (r releaser) each(ctx context.Context, list client.ObjectList, visit func(client.Object), options ...client.ListOption) error {
	if err := r.reader.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T has no metadata", item)
		}
		visit(object)
		return nil
	})
}

// release releases one workload, if Stayput holds it or has left a mark on it.
func (r releaser) release(ctx context.Context, workload types.NamespacedName, read kinds.Source) (outdated bool, err error) {
	rollout, err := read(ctx, workload)
	if err != nil || rollout == nil {
		return false, err
	}
	if !rollout.Verdict().Held && !rollout.Scene().Marked() {
		return false, nil
	}
	plan := rollout.Release(inplace.Reason{Code: inplace.CodeUninstalled, Message: "Stayput is being uninstalled"})
	done := r.writer.CarryOut(ctx, workload, plan.Steps)
	return done.Outdated, done.Err
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
		if pod.DeletionTimestamp != nil || !readiness.Gated(pod) || conditions.IsTrue(pod, inplace.ConditionServing) {
			continue
		}
		step, may := member.Reopen(pod, r.reader.IsSilent(ctx, pod), time.Now())
		if !may && time.Now().Before(r.patient) {
			done = false
			continue
		}
		_, err := r.writer.Carry(ctx, step)
		switch {
		case write.IsOutdated(err):
			done = false
		case err != nil:
			failed = append(failed, fmt.Errorf("opening the gate of pod %s: %w", client.ObjectKeyFromObject(pod), err))
		}
	}
	return done, errors.Join(failed...)
}

// deletePullers deletes those of every workload; done unless some changed under it.
func (r releaser) deletePullers(ctx context.Context) (done bool, err error) {
	list := &corev1.PodList{}
	if err := r.reader.List(ctx, list, client.HasLabels{inplace.LabelPuller}); err != nil {
		return false, err
	}
	var todo []steps.Step
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			todo = append(todo, steps.DeletePuller{Pod: &list.Items[i], Why: "Stayput is being uninstalled"})
		}
	}
	all := r.writer.CarryOut(ctx, types.NamespacedName{}, todo)
	return !all.Outdated, all.Err
}
