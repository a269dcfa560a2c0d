package observe

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// mostRead bounds the size of the revisions of one rollout. It also bounds the size of those of its pods that are read
	// because the cache has only outlines of them.
	mostRead = 8 << 20
	// mostRevisions bounds how many revisions a rollout may have, because pods are read revision by revision.
	mostRevisions = 250
	// mostRemembered bounds the size of the objects that Whole remembers.
	mostRemembered = 32 << 20
)

// Whole reads from the API server the objects of which a cache has only outlines. It remembers them, so that not every
// plan reads them again.
type Whole struct {
	live client.Reader

	lock  sync.Mutex
	known map[types.UID]client.Object
	size  int
}

// NewWhole returns a Whole for a reader of the API server itself.
func NewWhole(live client.Reader) *Whole {
	return &Whole{live: live, known: map[types.UID]client.Object{}}
}

// recall returns the remembered object. It returns nil if there is none, or if its version is not that of the outline.
func (w *Whole) recall(form client.Object) client.Object {
	w.lock.Lock()
	defer w.lock.Unlock()
	known := w.known[form.GetUID()]
	if known == nil || known.GetResourceVersion() != form.GetResourceVersion() {
		return nil
	}
	return known
}

// remember remembers the object. If that is too much, it forgets all other objects.
func (w *Whole) remember(object client.Object, size int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.size += size; w.size > mostRemembered {
		clear(w.known)
		w.size = size
	}
	w.known[object.GetUID()] = object
}

// whole returns the whole object for an outline, and any other object itself. It returns nil if the whole object is
// gone.
func (r Reader) whole(ctx context.Context, found client.Object) (client.Object, error) {
	size, isOutline := outlineSize(found)
	if !r.Stores.present() || !isOutline {
		return found, nil
	}
	if known := r.Whole.recall(found); known != nil {
		return copyOf(known), nil
	}
	live, empty := Reader{Reader: r.Whole.live}, reflect.New(reflect.TypeOf(found).Elem()).Interface().(client.Object)
	current, err := live.find(ctx, client.ObjectKeyFromObject(found), empty)
	if current == nil || err != nil {
		return nil, err
	}
	trim(current)
	r.Whole.remember(current, size)
	return copyOf(current), nil
}

func copyOf(original client.Object) client.Object { return original.DeepCopyObject().(client.Object) }

// load is how many revisions and pods there are of one rollout, and how large they are. If it is too much, large
// objects are kept as outlines, and the rollout is left to the native controller.
type load struct {
	// text is the size of all revisions, and of those pods that are large or outlines.
	text      int
	revisions int
	// crowded is a clause about a pod that is apps.Crowded; "" if there is no such pod.
	crowded string
}

// add counts an object of that size.
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

// unread returns a clause that says why not everything was read; "" if everything was read.
func (l load) unread() string {
	switch {
	case l.crowded != "":
		return l.crowded
	case l.revisions > mostRevisions:
		return fmt.Sprintf("it has more than %d revisions, as many as revisionHistoryLimit lets it", mostRevisions)
	case l.text > mostRead:
		return fmt.Sprintf(
			"what belongs to it is too large to be read: its revisions, or its pods that the cache has not, make more than %d MiB together",
			mostRead>>20)
	}
	return ""
}

// take counts an object that the API server returned, and returns it trimmed, or its outline.
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

// wholes returns the objects, with whole objects in place of outlines if that is not too much, and how much it is.
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
		current, err := as[P](r.whole(ctx, each))
		if err != nil {
			return nil, all, err
		}
		if current != nil && controllerOf(current) == controllerOf(each) {
			read = append(read, current)
		}
	}
	return read, all, nil
}

// controllerOf returns the UID of the object's controller; "" if it has none.
func controllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}
