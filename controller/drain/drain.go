package drain

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// endpointsReader reads what EndpointSlices say about pods; see observe.Reader.
type endpointsReader interface {
	Endpoints(ctx context.Context, namespace string, pods []*corev1.Pod) (podstate.Endpoints, error)
}

// Drains knows since when pods that wait for their restart are out of service. The cache only says when it is
// worthwhile to ask the API server: the cache may not even show yet that a pod ever was an endpoint. Drains asks the
// API server twice, when the wait begins and when it ends. After a restart the wait begins anew, which is safe.
type Drains struct {
	Cached, Live endpointsReader
}

// Endpoints returns what a plan has to know of endpoints: whether a pod that serves is the last one of a Service, and since when pods that
// are out of service drain. It reads nothing, and returns nil, while no pod is updated.
func (d *Drains) Endpoints(ctx context.Context, remembered *engine.Memory, rollout engine.Rollout) (podstate.Endpoints, error) {
	seen := rollout.Snapshot()
	if !engine.Marked(rollout) && !slices.ContainsFunc(seen.Pods, isOutOrAsks) {
		remembered.Drains = nil
		return nil, nil
	}
	endpoints, err := d.Cached.Endpoints(ctx, rollout.Workload().GetNamespace(), seen.Pods)
	if err != nil {
		return nil, err
	}
	if seen.Settings.Drain == 0 {
		remembered.Drains = nil
		return endpoints, nil
	}
	left, known := remembered.Drains.Complete(endpoints)
	if remembered.Drains = left; !known {
		maps.Copy(endpoints, d.ask(ctx, remembered, rollout))
	}
	return endpoints, nil
}

// isOutOrAsks reports whether the pod is out of service, or asks for a restart.
func isOutOrAsks(pod *corev1.Pod) bool {
	_, asks := pod.Annotations[inplace.AnnotationRestartContainers]
	return asks || readiness.Out(pod)
}

// Confirm asks the API server once more, right before containers stop. It leaves out the steps for which it is too
// early. It returns false if there are such steps.
func (d *Drains) Confirm(
	ctx context.Context, remembered *engine.Memory, rollout engine.Rollout, todo []steps.Step,
) (kept []steps.Step, confirmed bool) {
	seen := rollout.Snapshot()
	if seen.Settings.Drain == 0 || !slices.ContainsFunc(todo, restartsDrained) {
		return todo, true
	}
	current := d.ask(ctx, remembered, rollout)
	now := time.Now()
	for _, step := range todo {
		if patch, ok := step.(steps.PatchPod); ok && patch.Drained {
			if drained, _ := current[patch.Pod.UID].Drained(patch.Pod, seen.Settings.Drain, patch.ServesOn, now); !drained {
				log.FromContext(ctx).V(1).Info("The pod is still an offered endpoint, it restarts later", "pod", patch.Pod.Name)
				continue
			}
		}
		kept = append(kept, step)
	}
	return kept, len(kept) == len(todo)
}

func restartsDrained(step steps.Step) bool {
	patch, ok := step.(steps.PatchPod)
	return ok && patch.Drained
}

// ask asks the API server about the pods that are out of service, and remembers which of them no slice offers. An error does not end the
// reconcile. Then nothing is known of the endpoints, and the plan waits for at most as long as a drain may take altogether.
func (d *Drains) ask(ctx context.Context, remembered *engine.Memory, rollout engine.Rollout) podstate.Endpoints {
	seen := rollout.Snapshot()
	current, err := d.Live.Endpoints(ctx, rollout.Workload().GetNamespace(), seen.Pods)
	if err != nil {
		log.FromContext(ctx).Error(err, "EndpointSlices cannot be read: containers restart only after the longest wait",
			"workload", client.ObjectKeyFromObject(rollout.Workload()))
		return nil
	}
	remembered.Drains, _ = remembered.Drains.Noted(current, time.Now()).Complete(current)
	return current
}
