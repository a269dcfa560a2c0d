package apps

import (
	"sync"
)

// With every event, Stayput asks the same questions of the same few templates. So it caches the answers by the text of the template,
// which never changes. The cache is not state: without it, only time is lost.

const (
	// mostFound bounds the size of the texts in each of the two maps. The values take several times as much: templates have a few KiB.
	mostFound = 2 << 20
	// longestFound is the size of the longest text whose value is cached.
	longestFound = 64 << 10
	// elementSize is how long a text counts for each of its elements at least (Elements).
	elementSize = 16
)

// Findings caches values by the text from which they were computed, and keeps those that were asked for recently.
type Findings[K comparable, V any] struct {
	lock sync.Mutex
	// lately has the values that were asked for since before was complete; size is the sum of the sizes of their texts.
	lately, before map[K]V
	size           int
}

// Of returns the value of a text of that size, and calls find if it is not cached.
func (f *Findings[K, V]) Of(text K, size int, find func() V) V {
	if value, known := f.known(text, size); known {
		return value
	}
	value := find()
	if size > longestFound {
		return value
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.note(text, size, value)
	return value
}

func (f *Findings[K, V]) known(text K, size int) (V, bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	value, known := f.lately[text]
	if !known {
		if value, known = f.before[text]; known {
			f.note(text, size, value)
		}
	}
	return value, known
}

// note adds a value. When lately is full, it drops all values that were not asked for since the last time.
func (f *Findings[K, V]) note(text K, size int, value V) {
	if f.lately == nil || f.size+size > mostFound {
		f.lately, f.before, f.size = map[K]V{}, f.lately, 0
	}
	f.lately[text] = value
	f.size += size
}
