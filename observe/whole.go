package observe

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// mostRead bounds the revisions of one rollout, and its pods as far as they are read because the cache has stubs of them.
	mostRead = 8 << 20
	// mostRevisions bounds how many there may be: pods are looked for by revision.
	mostRevisions = 250
	// mostRemembered bounds what Whole remembers.
	mostRemembered = 32 << 20
)

// Whole reads from the API server what a cache has only stubs of. It remembers it, so that not every plan reads it anew.
type Whole struct {
	live client.Reader

	lock  sync.Mutex
	known map[types.UID]client.Object
	size  int
}

// NewWhole is for a reader of the API server itself.
func NewWhole(live client.Reader) *Whole {
	return &Whole{live: live, known: map[types.UID]client.Object{}}
}

// recall returns the object as it is remembered; nil if not, or not in the version of the stub.
func (w *Whole) recall(form client.Object) client.Object {
	w.lock.Lock()
	defer w.lock.Unlock()
	known := w.known[form.GetUID()]
	if known == nil || known.GetResourceVersion() != form.GetResourceVersion() {
		return nil
	}
	return known
}

// remember forgets everything else when that has become too much.
func (w *Whole) remember(object client.Object, size int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.size += size; w.size > mostRemembered {
		clear(w.known)
		w.size = size
	}
	w.known[object.GetUID()] = object
}

// whole returns what a found object stands for, which is mostly itself; nil if that is gone.
func whole[T any, P object[T]](ctx context.Context, r Reader, found P) (P, error) {
	size, isOutline := outlineSize(found)
	if !r.indexed() || !isOutline {
		return found, nil
	}
	if known, ok := r.Whole.recall(found).(P); ok {
		return copyOf[T](known), nil
	}
	live := Reader{Reader: r.Whole.live}
	current, err := find[T, P](ctx, live, client.ObjectKeyFromObject(found))
	if current == nil || err != nil {
		return nil, err
	}
	trim(current)
	r.Whole.remember(current, size)
	return copyOf[T](current), nil
}

func copyOf[T any, P object[T]](original P) P {
	copied, _ := original.DeepCopyObject().(P) // a copy is of the same type
	return copied
}

// load is how much there is of one rollout: its revisions, or its pods. What is too much stays a stub, or becomes one, and the rollout is left to
// the native controller.
type load struct {
	// text is that of all revisions, and of the pods that are large or have to be read.
	text      int
	revisions int
	// crowded says of a pod that it has too many containers; empty if none has.
	crowded string
}

// add counts an object of that size, which has to be read if it is a stub.
func (l *load) add(object client.Object, size int, isOutline bool) {
	l.crowded = cmp.Or(l.crowded, crowded(object))
	_, isPod := object.(*corev1.Pod)
	if !isPod {
		l.revisions++
	}
	if !isPod || isOutline || size > large {
		l.text += size
	}
}

// unread says that not all was read, as a clause; empty if all was.
func (l load) unread() string {
	switch {
	case l.crowded != "":
		return l.crowded
	case l.revisions > mostRevisions:
		return fmt.Sprintf("it has more than %d revisions, as many as revisionHistoryLimit lets it", mostRevisions)
	case l.text > mostRead:
		return fmt.Sprintf("what belongs to it is too large to be read: its revisions, or its pods that the cache has not, make more than %d MiB together", mostRead>>20)
	}
	return ""
}

// take returns one object of a list of the API server as it is kept.
func take[T any, P object[T]](found P, all *load) P {
	if pod, is := client.Object(found).(*corev1.Pod); is && isCrowded(pod) {
		form := client.Object(outlineOfPod(pod, sizeOf(pod)))
		all.add(form, sizeOf(pod), true)
		outline, _ := form.(P) // it is of the same type
		return outline
	}
	trim(found)
	size := sizeOf(found)
	all.add(found, size, false)
	if form, ok := outlineOf(found, size).(P); ok && size > large && all.unread() != "" {
		return form
	}
	return found
}

// wholes puts in the place of the stubs what they stand for, if that is not too much.
func wholes[T any, P object[T]](ctx context.Context, r Reader, found []P) ([]P, load, error) {
	var all load
	outlines := false
	for _, each := range found {
		size, isOutline := outlineSize(each)
		if _, isPod := client.Object(each).(*corev1.Pod); !isOutline && !isPod {
			size = sizeOf(each)
		}
		all.add(each, size, isOutline)
		outlines = outlines || isOutline
	}
	if !outlines || all.unread() != "" {
		return found, all, nil
	}
	var read []P
	for _, each := range found {
		current, err := whole(ctx, r, each)
		if err != nil {
			return nil, all, err
		}
		if current != nil && controllerOf(current) == controllerOf(each) {
			read = append(read, current)
		}
	}
	return read, all, nil
}

// controllerOf is the UID of the object's controller; empty if it has none.
func controllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}
