package observe

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// mostRead bounds the large objects that are read for one rollout.
	mostRead = 8 << 20
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
func (w *Whole) recall(stub client.Object) client.Object {
	w.lock.Lock()
	defer w.lock.Unlock()
	known := w.known[stub.GetUID()]
	if known == nil || known.GetResourceVersion() != stub.GetResourceVersion() {
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
	size, isStub := stubSize(found)
	if !r.indexed() || !isStub {
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

// load is how much the large objects of one rollout weigh together. What is too much stays a stub, or becomes one, and the rollout is left
// to the native controller.
type load struct{ total int }

// unread says that not all was read, as a clause; empty if all was.
func (l load) unread() string {
	if l.total <= mostRead {
		return ""
	}
	return fmt.Sprintf("what belongs to it is too large to be read: objects of more than %d KiB make more than %d MiB together", large>>10, mostRead>>20)
}

// take returns one object of a list of the API server as it is kept.
func take[T any, P object[T]](found P, all *load) P {
	trim(found)
	size := sizeOf(found)
	if size > large {
		all.total += size
	}
	if stub, ok := stubOf(found, size).(P); ok && size > large && all.unread() != "" {
		return stub
	}
	return found
}

// wholes puts in the place of the stubs what they stand for, if that is not too much.
func wholes[T any, P object[T]](ctx context.Context, r Reader, found []P) ([]P, load, error) {
	var all load
	for _, each := range found {
		size, _ := stubSize(each)
		all.total += size
	}
	if all.total == 0 || all.unread() != "" {
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
