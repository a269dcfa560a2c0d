package simulation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/disruption"

	"github.com/stayput/stayput/inplace/apps"
)

func init() {
	startDisruption = func(w *world) { w.disruptionController = nativeDisruption(w) }
}

// restartDisruption starts the controller anew if there is one: all controllers are in one process.
func restartDisruption(w *world) {
	if w.disruptionController != nil {
		startDisruption(w)
	}
}

type nativeDisruptionController struct{ *process }

// nativeDisruption looks up no workload, because minAvailable is a number.
func nativeDisruption(w *world) nativeDisruptionController {
	p := newProcess(w, 0, w.serveBudget)
	controller := disruption.NewDisruptionController(p.ctx, watchPods(p),
		budgetInformer{newWatch[*policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudget](p, 0, w.budgets)},
		controllerInformer{newWatch[*corev1.Pod, corev1.Pod](p, 3, newStore[*corev1.Pod]())},
		replicaSetInformer{newWatch[*apps.ReplicaSet, corev1.Pod](p, 4, newStore[*apps.ReplicaSet]())},
		deploymentInformer{newWatch[*apps.Deployment, corev1.Pod](p, 5, newStore[*apps.Deployment]())},
		statefulSetInformer{newWatch[*apps.StatefulSet, corev1.Pod](p, 6, newStore[*apps.StatefulSet]())},
		p.client(), nil, nil, nil)
	run, hasWorkers := any(controller.Run).(func(context.Context, int)) // since 1.37
	if !hasWorkers {
		run = func(ctx context.Context, _ int) { any(controller.Run).(func(context.Context))(ctx) }
	}
	p.start(run)
	return nativeDisruptionController{p}
}

func (c nativeDisruptionController) resync() { c.again(0) }

// serveBudget is the API server for the controller of PodDisruptionBudgets.
func (w *world) serveBudget(c call) (any, error) {
	w.logf("asks: %s %s/%s %s", c.verb, c.resource, c.name, c.sub)
	if c.verb+" "+c.resource+"/"+c.sub == "PUT poddisruptionbudgets/status" {
		next := decode[policyv1.PodDisruptionBudget](c)
		return alter(w, w.budgets, c.name, next.ResourceVersion, func(b *policyv1.PodDisruptionBudget) { b.Status = next.Status })
	}
	w.violated("the native controller asks for %s", c.text())
	return nil, errNotFound
}

type (
	budgetInformer struct {
		*watch[*policyv1.PodDisruptionBudget]
	}
	// controllerInformer has no ReplicationController.
	controllerInformer struct{ *watch[*corev1.Pod] }
)

func (i budgetInformer) Informer() cache.SharedIndexInformer     { return i.watch }
func (i controllerInformer) Informer() cache.SharedIndexInformer { return i.watch }

func (i budgetInformer) Lister() policylisters.PodDisruptionBudgetLister {
	return policylisters.NewPodDisruptionBudgetLister(i.index)
}
func (i controllerInformer) Lister() corelisters.ReplicationControllerLister {
	return corelisters.NewReplicationControllerLister(i.index)
}
