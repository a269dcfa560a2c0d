package findings

import (
	"sync"
)

// What templates say is asked with every event, of the same few templates. So what was worked out of one is remembered by its text, which
// never changes: it is no state, and forgetting it costs time only.

const (
	// mostFound bounds the text of what is remembered, twice, and what is made of it takes several times that: templates have a few KiB.
	mostFound = 2 << 20
	// longestFound is the longest text by which anything is remembered.
	longestFound = 64 << 10
)

// Findings remembers values by the text they were worked out of, those asked for lately.
type Findings[K comparable, V any] struct {
	lock sync.Mutex
	// lately were asked for since before was complete; size is that of their text.
	lately, before map[K]V
	size           int
}

// Of returns the value of a text of that size, which is found if it is not known.
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

// note forgets what has not been asked for since it forgot the last time.
func (f *Findings[K, V]) note(text K, size int, value V) {
	if f.lately == nil || f.size+size > mostFound {
		f.lately, f.before, f.size = map[K]V{}, f.lately, 0
	}
	f.lately[text] = value
	f.size += size
}
