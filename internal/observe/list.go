package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
)

// These constants are how many objects are listed at a time. Users decide how large objects are: up to 1.5 MiB each as they
// are sent, and up to ten times as much in memory. Workloads have pods by the thousand. So a page of pods is short only where the
// cache has seen a large pod in the namespace: it has at most pageSize as it is sent.
const (
	podsAtATime      = 100
	pageSize         = podsAtATime * large
	revisionsAtATime = 8
	othersAtATime    = 20
)

func uids[P client.Object](objects []P) []types.UID {
	var all []types.UID
	for _, object := range objects {
		all = append(all, object.GetUID())
	}
	return all
}

// selected is a workload with its selector.
type selected struct {
	client.Object
	selector *metav1.LabelSelector
}

// selections returns options for lists that together have everything that the controllers with those UIDs control. With
// an index there is one list for each controller. Without an index there is one list of everything that the workload
// selects.
func (r Reader) selections(of selected, controllers []types.UID) ([]client.ListOption, error) {
	if r.Stores.present() {
		var each []client.ListOption
		for _, uid := range controllers {
			each = append(each, client.MatchingFields{indexController: string(uid)})
		}
		return each, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(of.selector)
	if err != nil {
		return nil, fmt.Errorf("selector of %s %s: %w", kindOf(of.Object), client.ObjectKeyFromObject(of.Object), err)
	}
	return []client.ListOption{client.MatchingLabelsSelector{Selector: selector}}, nil
}

// owned returns the objects that the controllers with those UIDs control and that the further options select. It also
// returns how much that is.
func owned[T any, P object[T]](
	ctx context.Context, r Reader, empty client.ObjectList, of selected, controllers []types.UID, options ...client.ListOption,
) ([]P, load, error) {
	selections, err := r.selections(of, controllers)
	if err != nil || len(controllers) == 0 {
		return nil, load{}, err
	}
	every := func(r Reader) ([]P, load, error) { return owned[T, P](ctx, r, empty, of, controllers, options...) }
	var found []P
	var all load
	for _, selection := range selections {
		options := slices.Concat(options, []client.ListOption{client.InNamespace(of.GetNamespace()), selection})
		items, listed, err := list(ctx, r, empty, func(item P) bool { return slices.Contains(controllers, controllerOf(item)) }, options...)
		if err != nil {
			return nil, all, fmt.Errorf("list %ss of %s %s: %w", kindOf(empty), kindOf(of.Object), client.ObjectKeyFromObject(of.Object), err)
		}
		found, all = append(found, items...), listed
	}
	if r.Stores.present() {
		return wholes(ctx, r, found, every)
	}
	return found, all, nil
}

// podsOf returns the pods that the controllers with those UIDs control, and how much that is. A Reader without Stores
// returns only those that the further options select.
func (r Reader) podsOf(
	ctx context.Context, of selected, controllers []types.UID, options ...client.ListOption,
) ([]*corev1.Pod, load, error) {
	pods, all, err := r.outlines(ctx, of, controllers, options...)
	if err != nil || !r.Stores.present() {
		return pods, all, err
	}
	return wholes(ctx, r, pods, func(live Reader) ([]*corev1.Pod, load, error) { return live.outlines(ctx, of, controllers) })
}

// LivePodsOf returns how many live pods the ReplicaSet controls.
func (r Reader) LivePodsOf(ctx context.Context, rs *apps.ReplicaSet) (int, error) {
	pods, _, err := r.outlines(ctx, selected{rs, rs.Spec.Selector}, []types.UID{rs.UID})
	live := 0
	for _, pod := range pods {
		if readiness.Live(pod) {
			live++
		}
	}
	return live, err
}

// outlines returns the same pods as podsOf, but outlines as the cache has them. A Reader without Stores returns the
// pods as the API server has them.
func (r Reader) outlines(
	ctx context.Context, of selected, controllers []types.UID, options ...client.ListOption,
) ([]*corev1.Pod, load, error) {
	if !r.Stores.present() {
		return owned[corev1.Pod](ctx, r, &corev1.PodList{}, of, controllers, options...)
	}
	pods, err := r.Stores.controlledBy(of.GetNamespace(), controllers)
	if err != nil {
		return nil, load{}, fmt.Errorf("pods of %s %s: %w", kindOf(of.Object), client.ObjectKeyFromObject(of.Object), err)
	}
	return pods, load{}, nil
}

// errEnough ends a list early.
var errEnough = errors.New("there is too much to read")

// list returns the wanted items of what the reader lists. From the API server items come in pages. list keeps only the
// wanted ones of each page, trimmed as in the cache. If revisions are too many or too large, list reads no more of
// them: a webhook waits for the answer, and a workload that is left to the native controller for that reason needs no
// revisions. Pods are always read to the end, and counted.
func list[T any, P object[T]](
	ctx context.Context, r Reader, empty client.ObjectList, wanted func(P) bool, options ...client.ListOption,
) ([]P, load, error) {
	var kept []P
	var all load
	err := r.eachPage(ctx, empty, func(item runtime.Object) error {
		found, ok := item.(P)
		switch {
		case !ok:
			return fmt.Errorf("%T in a %T", item, empty)
		case !wanted(found):
		case r.Stores.present():
			kept = append(kept, found)
		default:
			copied := *found // a copy, so that the page itself can be freed
			kept = append(kept, take[T](P(&copied), &all))
			if all.revisions > 0 && all.unread() != "" {
				return errEnough
			}
		}
		return nil
	}, options...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return kept, all, err
}

// eachPage visits each item of what the reader lists, page by page. A cache has no pages.
func (r Reader) eachPage(
	ctx context.Context, empty client.ObjectList, visit func(runtime.Object) error, options ...client.ListOption,
) error {
	if !r.Stores.present() {
		asked := (&client.ListOptions{}).ApplyOptions(options)
		options = slices.Concat(options, []client.ListOption{client.Limit(r.pageOf(empty, asked.Namespace))})
	}
	for next := ""; ; {
		page, ok := empty.DeepCopyObject().(client.ObjectList) // decoding into a filled list would change its items
		if !ok {
			return fmt.Errorf("%T is no list", empty)
		}
		if err := r.List(ctx, page, slices.Concat(options, []client.ListOption{client.Continue(next)})...); err != nil {
			return err
		}
		if err := apimeta.EachListItem(page, visit); err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" || r.Stores.present() {
			return nil
		}
	}
}

// Each lists objects, and visits each of them.
func Each(
	ctx context.Context, reader client.Reader, list client.ObjectList, visit func(client.Object), options ...client.ListOption,
) error {
	if err := reader.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list %ss: %w", kindOf(list), err)
	}
	return apimeta.EachListItem(list, func(item runtime.Object) error {
		object, is := item.(client.Object)
		if !is {
			return fmt.Errorf("%T has no metadata", item)
		}
		visit(object)
		return nil
	})
}

// pageOf returns how many objects of that list are listed at a time in the namespace.
func (r Reader) pageOf(empty client.ObjectList, namespace string) int64 {
	switch empty.(type) {
	case *corev1.PodList:
		return int64(max(1, pageSize/max(large, r.Form.largestPod(namespace))))
	case *discoveryv1.EndpointSliceList, *corev1.ServiceList, *autoscalingv2.HorizontalPodAutoscalerList, *policyv1.PodDisruptionBudgetList:
		return othersAtATime
	}
	return revisionsAtATime
}
