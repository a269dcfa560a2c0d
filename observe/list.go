package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How many objects are listed at a time: together they are as large as whoever created them likes, up to 1.5 MiB each.
const (
	podsAtATime      = 100
	revisionsAtATime = 8
)

// list returns those of the items the reader lists that are wanted. From the API server they come in pages, of which nothing is kept but
// what was wanted, trimmed as the cache's are.
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
		case r.Indexed:
			kept = append(kept, found)
		default:
			alone := *found // not a part of its page
			kept = append(kept, take[T](r, P(&alone), &all))
		}
		return nil
	}, options...)
	return kept, all, err
}

// eachPage visits what the reader lists. A cache has no pages.
func (r Reader) eachPage(ctx context.Context, empty client.ObjectList, visit func(runtime.Object) error, options ...client.ListOption) error {
	if !r.Indexed {
		options = slices.Concat(options, []client.ListOption{client.Limit(pageOf(empty))})
	}
	for next := ""; ; {
		page, ok := empty.DeepCopyObject().(client.ObjectList) // decoding into a list that is filled would change the items it has
		if !ok {
			return fmt.Errorf("%T is no list", empty)
		}
		if err := r.List(ctx, page, slices.Concat(options, []client.ListOption{client.Continue(next)})...); err != nil {
			return err
		}
		if err := apimeta.EachListItem(page, visit); err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" || r.Indexed {
			return nil
		}
	}
}

func pageOf(empty client.ObjectList) int64 {
	if _, pods := empty.(*corev1.PodList); pods {
		return podsAtATime
	}
	return revisionsAtATime
}
