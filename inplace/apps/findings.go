package apps

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Digest stands for a text, or for a canonical form. Equal texts or forms have equal digests.
type Digest [sha256.Size]byte

// What was computed from a text is remembered by the text's digest, so that the text itself need not be remembered. Of canonical
// forms only the digests are remembered: the digest of a text's canonical form is computed once, however large the text is.
var (
	ofTexts     Findings[Digest, readTemplate]
	ofTemplates Findings[Digest, *corev1.PodTemplateSpec]
	ofForms     Findings[Digest, Digest]
	ofRevisions Findings[Digest, readTemplate]
	ofData      Findings[Digest, revisionForm]
)

// Digest returns the digest of the template's canonical form.
func (t Template) Digest() Digest {
	if t.raw == nil {
		return t.sum()
	}
	return ofForms.Of(Digest(t.text), 2*sha256.Size, t.sum)
}

func (t Template) sum() Digest {
	sum := sha256.New()
	writeTo(sum, t.Canonical())
	return Digest(sum.Sum(nil))
}

// writeTo writes a canonical value with its type and length, so that different values give different texts.
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

// readTemplate is the template that a text contains, or the error why there is none that Stayput can work with.
type readTemplate struct {
	Template
	err error
}

// revisionForm is the digest of the canonical form of a revision's template.
type revisionForm struct {
	Digest
	known bool
}
