package inplace

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Template is a pod template exactly as the API server sent it. Decoding it into the types of one k8s.io/api release would
// silently drop the fields of newer clusters. It never changes once decoded, so it may be shared.
type Template struct {
	raw json.RawMessage
	// flaw is why our types cannot tell what it says; nil if they can.
	flaw error
}

// ParseTemplate reads a pod template from JSON. The error says where it is not one that we can work with.
func ParseTemplate(raw []byte) (Template, error) {
	t := Template{raw: bytes.Clone(raw)}
	if path := unbounded(t.tree(), templateShape); path != nil {
		return t, fmt.Errorf("not a pod template to work with: the quantity at %s has more than %d characters or an exponent beyond ±%d",
			pointer(path...), longestQuantity, largestExponent)
	}
	if err := utiljson.Unmarshal(raw, &corev1.PodTemplateSpec{}); err != nil {
		return t, fmt.Errorf("not a pod template: %w", err)
	}
	return t, nil
}

// UnmarshalJSON keeps the raw bytes. It takes whatever the API server sends, since a list of all templates is not to fail for one of
// them: one with a flaw is updated natively.
func (t *Template) UnmarshalJSON(raw []byte) error {
	parsed, flaw := ParseTemplate(raw)
	parsed.flaw = flaw
	*t = parsed
	return nil
}

// MarshalJSON returns the bytes the template was read from.
func (t Template) MarshalJSON() ([]byte, error) {
	if t.raw == nil {
		return []byte("{}"), nil
	}
	return t.raw, nil
}

// DeepCopyInto copies the template, which is shared since it never changes.
func (t *Template) DeepCopyInto(out *Template) { *out = *t }

// Size is the length of the bytes the template was read from.
func (t Template) Size() int { return len(t.raw) }

// Typed returns what our k8s.io/api types know of the template, nothing if it has a flaw. It is for reading single fields: never compare
// it and never write it back, since fields of newer clusters are missing.
func (t Template) Typed() corev1.PodTemplateSpec { return *t.typed().DeepCopy() }

// typed is Typed for those who change nothing of it: it is shared.
func (t Template) typed() *corev1.PodTemplateSpec {
	if t.raw == nil || t.flaw != nil {
		return &corev1.PodTemplateSpec{}
	}
	return t.finding().typed()
}

// decode decodes a template without flaws.
func (t Template) decode() *corev1.PodTemplateSpec {
	var typed corev1.PodTemplateSpec
	if err := utiljson.Unmarshal(t.raw, &typed); err != nil {
		panic(err) // ParseTemplate has decoded the same bytes before
	}
	return &typed
}

// tree is the template as JSON, numbers as they are written. What is not an object becomes one that only equals itself.
func (t Template) tree() map[string]any {
	if t.raw == nil {
		return nil
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(t.raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return map[string]any{"": string(t.raw)}
	}
	return tree
}

// flawed says why the template cannot be updated in place; nil if it has no flaw.
func (t Template) flawed() *Reason {
	if t.flaw == nil {
		return nil
	}
	return &Reason{Code: CodeTemplateField, Message: t.flaw.Error()}
}

// Labels of the template, pod-template-hash included where it has one.
func (t Template) Labels() map[string]string { return t.Typed().Labels }

// Annotations of the template.
func (t Template) Annotations() map[string]string { return t.Typed().Annotations }
