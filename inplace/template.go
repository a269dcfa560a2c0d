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
type Template struct{ raw json.RawMessage }

// ParseTemplate reads a pod template from JSON. The error says where it is not one.
func ParseTemplate(raw []byte) (Template, error) {
	if err := utiljson.Unmarshal(raw, &corev1.PodTemplateSpec{}); err != nil {
		return Template{}, fmt.Errorf("not a pod template: %w", err)
	}
	return Template{raw: bytes.Clone(raw)}, nil
}

// UnmarshalJSON keeps the raw bytes, after the check that they are a pod template.
func (t *Template) UnmarshalJSON(raw []byte) error {
	parsed, err := ParseTemplate(raw)
	if err != nil {
		return err
	}
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

// Typed returns what our k8s.io/api types know of the template. It is for reading single fields: never compare it and never
// write it back, since fields of newer clusters are missing.
func (t Template) Typed() corev1.PodTemplateSpec {
	var typed corev1.PodTemplateSpec
	t.decode(&typed)
	return typed
}

// Labels of the template, pod-template-hash included where it has one.
func (t Template) Labels() map[string]string { return t.Typed().Labels }

// Annotations of the template.
func (t Template) Annotations() map[string]string { return t.Typed().Annotations }

// Containers of the template, without init containers.
func (t Template) Containers() []corev1.Container { return t.Typed().Spec.Containers }

// tree is the template as JSON, undecoded otherwise. Callers may change it.
func (t Template) tree() map[string]any {
	tree := map[string]any{}
	t.decode(&tree)
	return tree
}

// decode cannot fail: ParseTemplate has decoded the same bytes before.
func (t Template) decode(into any) {
	if t.raw == nil {
		return
	}
	if err := utiljson.Unmarshal(t.raw, into); err != nil {
		panic(err)
	}
}
