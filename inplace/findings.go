package inplace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// What templates say is asked with every event, of the same few templates. So what was worked out of one is remembered by its text, which
// never changes: it is no state, and forgetting it costs time only.

const (
	// mostFound bounds the text of what is remembered, twice, and what is made of it takes several times that: templates have a few KiB.
	mostFound = 2 << 20
	// longestFound is the longest text by which anything is remembered.
	longestFound = 64 << 10
)

// findings remembers values by the text they were worked out of, those asked for lately.
type findings[K comparable, V any] struct {
	lock sync.Mutex
	// lately were asked for since before was complete; size is that of their text.
	lately, before map[K]V
	size           int
}

// of returns the value of a text of that size, which is found if it is not known.
func (f *findings[K, V]) of(text K, size int, find func() V) V {
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

func (f *findings[K, V]) known(text K, size int) (V, bool) {
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
func (f *findings[K, V]) note(text K, size int, value V) {
	if f.lately == nil || f.size+size > mostFound {
		f.lately, f.before, f.size = map[K]V{}, f.lately, 0
	}
	f.lately[text] = value
	f.size += size
}

// finding is what is known of one template.
type finding struct {
	typed  func() *corev1.PodTemplateSpec
	digest func() digest
}

// digest stands for a canonical form: what is the same has the same.
type digest [sha256.Size]byte

// comparison is of two templates without flaws, by certain rules.
type comparison struct {
	from, to digest
	rules    string
}

// sizeOfComparison is about what one takes: reasons are limited.
const sizeOfComparison = 2 << 10

var (
	ofTemplates   findings[string, finding]
	ofComparisons findings[comparison, Change]
	ofRevisions   findings[string, revisionTemplate]
)

// finding of the template.
func (t Template) finding() finding {
	return ofTemplates.of(string(t.raw), len(t.raw), func() finding {
		return finding{typed: sync.OnceValue(t.decode), digest: sync.OnceValue(t.sum)}
	})
}

// digest of the template's canonical form.
func (t Template) digest() digest { return t.finding().digest() }

func (t Template) sum() digest {
	sum := sha256.New()
	writeTo(sum, t.canonical())
	return digest(sum.Sum(nil))
}

// writeTo writes a canonical value so that different values give different texts: each with its type and length.
func writeTo(sum hash.Hash, value any) {
	switch value := value.(type) {
	case map[string]any:
		writeSized(sum, 'o', len(value), "")
		for _, key := range slices.Sorted(maps.Keys(value)) {
			writeSized(sum, 'k', len(key), key)
			writeTo(sum, value[key])
		}
	case []any:
		writeSized(sum, 'l', len(value), "")
		for _, element := range value {
			writeTo(sum, element)
		}
	case string:
		writeSized(sum, 's', len(value), value)
	case json.Number:
		writeSized(sum, 'n', len(value), value.String())
	case int64:
		writeSized(sum, 'i', int(value), "")
	case float64:
		writeSized(sum, 'f', int(math.Float64bits(value)), "")
	default: // nil and booleans
		text := fmt.Sprintf("%T %v", value, value)
		writeSized(sum, 'x', len(text), text)
	}
}

func writeSized(sum hash.Hash, kind byte, size int, text string) {
	sum.Write(append(binary.BigEndian.AppendUint64([]byte{kind}, uint64(size)), text...))
}

// revisionTemplate is what a ControllerRevision's data say.
type revisionTemplate struct {
	Template
	err error
}

// text stands for the rules.
func (r Rules) text() string { return strings.Join(r.Annotations, "\n") }
