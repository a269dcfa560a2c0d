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

	"github.com/stayput/stayput/inplace/findings"
)

// Digest stands for a text, or for a canonical form: what is the same has the same.
type Digest [sha256.Size]byte

// What is remembered of a text is found by the text's digest, so that the texts themselves need not be remembered. Of canonical forms only digests
// are: those of a text are worked out once, however large it is.
var (
	ofTemplates findings.Findings[Digest, *corev1.PodTemplateSpec]
	ofForms     findings.Findings[Digest, Digest]
	ofRevisions findings.Findings[Digest, revisionTemplate]
	ofData      findings.Findings[Digest, revisionForm]
)

// Digest of the template's canonical form.
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

// revisionForm is the digest of its template's canonical form.
type revisionForm struct {
	Digest
	known bool
}
