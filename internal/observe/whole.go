package observe

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
)

const (
	// mostRead bounds the size of the revisions of one rollout. It also bounds the size of those of its pods that are read
	// because the cache has only outlines of them, and which it has no room to remember.
	mostRead = 8 << 20
	// mostRevisions bounds how many revisions a rollout may have, because pods are read revision by revision.
	mostRevisions = 250
	// mostOneByOne is how many objects are read one by one. More are listed, in pages.
	mostOneByOne = 8
)

// whole returns the whole object for an outline, and any other object itself. It returns nil if the whole object is gone. Callers must not
// change the result.
func (r Reader) whole(ctx context.Context, found client.Object) (client.Object, error) {
	if _, isOutline := outlineSize(found); !isOutline || !r.Stores.present() {
		return found, nil
	}
	if known := r.Form.recall(found); known != nil {
		return known, nil
	}
	live, empty := Reader{Reader: r.Form.live}, reflect.New(reflect.TypeOf(found).Elem()).Interface().(client.Object)
	current, err := live.find(ctx, client.ObjectKeyFromObject(found), empty)
	if current == nil || err != nil {
		return nil, err
	}
	trim(current)
	r.Form.remember(current)
	return current, nil
}

func copyOf(original client.Object) client.Object { return original.DeepCopyObject().(client.Object) }

// load is how many revisions and pods there are of one rollout, and how large they are. If it is too much, large
// objects are kept as outlines, and the rollout is left to the native controller.
type load struct {
	// text is the size of all revisions, and of those pods that are large or cannot be remembered.
	text      int
	revisions int
}

// add counts an object of that size.
func (l *load) add(object client.Object, size int) {
	_, isPod := object.(*corev1.Pod)
	if !isPod {
		l.revisions++
	}
	if !isPod || size > large {
		l.text += size
	}
}

// unread returns a clause that says why not everything was read; "" if everything was read.
func (l load) unread() string {
	switch {
	case l.revisions > mostRevisions:
		return fmt.Sprintf("it has more than %d revisions, as many as revisionHistoryLimit lets it", mostRevisions)
	case l.text > mostRead:
		return fmt.Sprintf("what belongs to it is too large to be read: its revisions, or its pods that the cache has not, make more than %d "+
			"MiB together, or a pod has more than %d containers, readiness gates or conditions", mostRead>>20, apps.MostContainers)
	}
	return ""
}

// take counts an object that the API server returned, and returns it trimmed, or its outline.
func take[T any, P object[T]](found P, all *load) P {
	if pod, is := client.Object(found).(*corev1.Pod); is && isCrowded(pod) {
		all.add(pod, mostRead+1)
		outline, _ := client.Object(outlineOfPod(pod, 0)).(P) // it is of the same type
		return outline
	}
	trim(found)
	size := sizeOf(found)
	all.add(found, size)
	if form, ok := outlineOf(found, size).(P); ok && size > large && all.unread() != "" {
		return form
	}
	return found
}

// wholes returns the objects, with whole objects in place of outlines if that is not too much, and how much it is. Every lists the same
// objects at the API server, in pages: where a namespace has just got its label, the cache has outlines of all.
func wholes[T any, P object[T]](ctx context.Context, r Reader, found []P, every func(Reader) ([]P, load, error)) ([]P, load, error) {
	all, unknown, outlines := measure(r, found)
	if outlines == 0 || all.unread() != "" {
		return found, all, nil
	}
	listed := map[types.UID]P{}
	if unknown > mostOneByOne {
		current, much, err := every(Reader{Reader: r.Form.live, Form: r.Form})
		if err != nil || much.unread() != "" {
			return found, much, err
		}
		for _, each := range current {
			listed[each.GetUID()] = each
		}
	}
	var read []P
	for _, each := range found {
		current, err := wholeOf(ctx, r, each, listed)
		if err != nil {
			return nil, all, err
		}
		if current != nil && controllerOf(current) == controllerOf(each) {
			read = append(read, current)
		}
	}
	return read, all, nil
}

// wholeOf returns the whole object, which may have been listed.
func wholeOf[T any, P object[T]](ctx context.Context, r Reader, found P, listed map[types.UID]P) (P, error) {
	current := listed[found.GetUID()]
	if current == nil {
		return as[P](r.whole(ctx, found))
	}
	if _, isOutline := outlineSize(found); isOutline {
		r.Form.remember(current)
	}
	return current, nil
}

// measure returns how much these objects are. Of small ones only those count that have to be read, and that cannot be remembered. It also
// returns how many outlines there are, and how many of these have to be read.
func measure[T any, P object[T]](r Reader, found []P) (all load, unknown, outlines int) {
	small := 0
	for _, each := range found {
		size, isOutline := outlineSize(each)
		if _, isPod := client.Object(each).(*corev1.Pod); !isOutline && !isPod {
			size = sizeOf(each)
		}
		all.add(each, size)
		if !isOutline {
			continue
		}
		if outlines++; r.Form.recall(each) == nil {
			unknown++
			small += min(size, large)
		}
	}
	if unknown > 0 && !r.Form.fits(found[0].GetNamespace(), small) {
		all.text += small
	}
	return all, unknown, outlines
}

// controllerOf returns the UID of the object's controller; "" if it has none.
func controllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}
