package observe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/steps"
)

// Nudger is the rollout of a workload whose native controller may need a nudge.
type Nudger interface{ Nudge() []steps.Step }

// namespaced is what all rollouts of one kind in a namespace have in common.
type namespaced struct {
	kind     Kind
	name     string
	labels   map[string]string
	excluded Excluded
	pods     map[types.UID][]*corev1.Pod // by the UID of their controller
	// revisions are the ControllerRevisions by the UID of their controller. Several kinds have them, so they are listed once.
	revisions map[types.UID][]*apps.ControllerRevision
	now       time.Time
}

func (of namespaced) modeOf(workload client.Object) inplace.Mode {
	return of.excluded.modeOf(of.kind, &metav1.ObjectMeta{Name: of.name, Labels: of.labels}, workload.GetLabels())
}

// list fills the lists with the objects of the namespace.
func (of namespaced) list(ctx context.Context, r Reader, lists ...client.ObjectList) error {
	for _, list := range lists {
		if err := r.List(ctx, list, client.InNamespace(of.name)); err != nil {
			return fmt.Errorf("list %ss of namespace %s: %w", kindOf(list), of.name, err)
		}
	}
	return nil
}

// Nudgers returns the rollouts of the workloads of a namespace. They have revisions and pods, and nothing else: Nudge
// needs nothing else. It makes one list of each type, no matter how many workloads there are.
func (r Reader) Nudgers(ctx context.Context, name string) ([]Nudger, error) {
	var namespace corev1.Namespace
	if err := r.Get(ctx, types.NamespacedName{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	of := namespaced{name: name, labels: namespace.Labels, excluded: r.ExcludedNamespaces}
	var (
		pods      corev1.PodList
		revisions apps.ControllerRevisionList
	)
	if err := of.list(ctx, r, &pods, &revisions); err != nil {
		return nil, err
	}
	of.pods, of.revisions, of.now = byController(pods.Items), byController(revisions.Items), time.Now()
	var all []Nudger
	for _, kind := range Kinds {
		of.kind = kind
		rollouts, err := kind.nudgers(ctx, r, of)
		if err != nil {
			return nil, err
		}
		all = append(all, rollouts...)
	}
	return all, nil
}

// byController returns the items by the UID of their controller.
func byController[T any, P object[T]](items []T) map[types.UID][]P {
	sorted := map[types.UID][]P{}
	for i := range items {
		item := P(&items[i])
		if uid := controllerOf(item); uid != "" {
			sorted[uid] = append(sorted[uid], item)
		}
	}
	return sorted
}
