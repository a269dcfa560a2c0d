package apps

import (
	"crypto/sha256"
	"encoding/json"

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
	raw, err := json.Marshal(t.Canonical()) // the keys of objects are sorted
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return sha256.Sum256(raw)
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
