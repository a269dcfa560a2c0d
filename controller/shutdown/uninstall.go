package shutdown

import (
	"context"
	"errors"
	"fmt"

	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// Uninstall has every update fall back and deletes every pre-pull pod, so that nothing depends on Stayput any more. It is
// for uninstalling, after the webhook configurations are deleted: from then on kubelets put back what is out of service.
// It reads everything from the API server, and reads it again as long as other clients change it at the same time. The
// context bounds that. If the API server refuses a write, Uninstall goes on with the others and returns the error.
func Uninstall(ctx context.Context, c client.Client, live observe.Reader) error {
	r := runner{writer: write.Writer{Client: c, Live: live, Turns: &write.Turns{}}, reader: live}
	return wait.PollUntilContextCancel(ctx, inplace.LookAgain, true, func(ctx context.Context) (bool, error) {
		updates, updatesErr := r.fallBackUpdates(ctx)
		prePullPods, prePullErr := r.deletePrePullPods(ctx)
		return updates && prePullPods, errors.Join(updatesErr, prePullErr)
	})
}

type runner struct {
	writer write.Writer
	reader observe.Reader
}

// fallBackUpdates has the updates in progress fall back. It returns false if an object changed at the same time.
func (r runner) fallBackUpdates(ctx context.Context) (done bool, err error) {
	done = true
	for _, kind := range observe.Kinds {
		fellBack, fallBackErr := r.fallBackKind(ctx, kind)
		done, err = done && fellBack, errors.Join(err, fallBackErr)
	}
	return done, err
}

func (r runner) fallBackKind(ctx context.Context, kind observe.Kind) (done bool, err error) {
	workloads, err := r.updating(ctx, kind)
	if err != nil {
		return false, err
	}
	done = true
	var failed []error
	for _, workload := range workloads {
		outdated, err := r.fallBack(ctx, workload, kind.Source(r.reader))
		if err != nil {
			failed = append(failed, fmt.Errorf("fall back for %s %s: %w", kind.Workload.Name, workload, err))
		}
		done = done && !outdated
	}
	return done, errors.Join(failed...)
}

// updating returns the workloads that may have to fall back: those with a marked revision, and the unfinished ones in
// labelled namespaces, whose native writes may be held although no revision is marked yet.
func (r runner) updating(ctx context.Context, kind observe.Kind) ([]types.NamespacedName, error) {
	workloads, labelled := sets.New[types.NamespacedName](), sets.New[string]()
	err := errors.Join(
		observe.Each(ctx, r.reader, kind.Revision.List(), func(revision client.Object) {
			if name := kind.NameOf(revision); name != "" {
				workloads.Insert(types.NamespacedName{Namespace: revision.GetNamespace(), Name: name})
			}
		}, client.HasLabels{inplace.LabelUpdating}),
		observe.Each(ctx, r.reader, &corev1.NamespaceList{}, func(namespace client.Object) { labelled.Insert(namespace.GetName()) },
			client.HasLabels{inplace.LabelUpdate}))
	for namespace := range labelled {
		err = errors.Join(err, observe.Each(ctx, r.reader, kind.Workload.List(), func(workload client.Object) {
			if !kind.Finished(workload) {
				workloads.Insert(client.ObjectKeyFromObject(workload))
			}
		}, client.InNamespace(namespace)))
	}
	return workloads.UnsortedList(), err
}

// fallBack has the update of one workload fall back, if Stayput holds it or has left a mark on it.
func (r runner) fallBack(ctx context.Context, workload types.NamespacedName, read observe.Source) (outdated bool, err error) {
	rollout, err := read(ctx, workload)
	if err != nil || rollout == nil {
		return false, err
	}
	if !rollout.Decision().Held && !engine.Marked(rollout) {
		return false, nil
	}
	plan := rollout.FallBack(inplace.Reason{Code: inplace.CodeUninstalled, Message: "Stayput is being uninstalled"})
	done := r.writer.CarryOut(ctx, plan.Steps)
	return done.Outdated, done.Err
}

// deletePrePullPods deletes the pre-pull pods of all workloads. It returns false if a pod changed at the same time.
func (r runner) deletePrePullPods(ctx context.Context) (done bool, err error) {
	list := &corev1.PodList{}
	if err := r.reader.List(ctx, list, client.HasLabels{inplace.LabelPrePull}); err != nil {
		return false, err
	}
	var todo []steps.Step
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			todo = append(todo, steps.DeletePrePullPod{Pod: &list.Items[i], Why: "Stayput is being uninstalled"})
		}
	}
	all := r.writer.CarryOut(ctx, todo)
	return !all.Outdated, all.Err
}
