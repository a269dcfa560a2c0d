package apps

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// SameTemplate reports whether the Deployment controller takes the templates for the same revision: EqualIgnoreHash in
// pkg/controller/deployment/util/deployment_util.go, on what the API server sent, so that a field we do not know counts too.
func SameTemplate(a, b Template) bool { return a.Digest() == b.Digest() }

// MostContainers is how many containers a template or a pod has at most, init containers among them, that is updated in place: several times what is
// in use. Each is looked for among all, by its name, in every pod.
const MostContainers = 100

// ContainersOf is how many containers the spec has.
func ContainersOf(spec *corev1.PodSpec) int { return len(spec.Containers) + len(spec.InitContainers) }

// TemplateHash is ComputeHash in pkg/controller/controller_utils.go.
func TemplateHash(template corev1.PodTemplateSpec, collisions *int32) string {
	hasher := fnv.New32a()
	fmt.Fprintf(hasher, "%v", dump.ForHash(template))
	if collisions != nil {
		count := make([]byte, 8)
		binary.LittleEndian.PutUint32(count, uint32(*collisions))
		hasher.Write(count)
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

// Hash tells the template from others, whatever revision it may get.
func (t Template) Hash() string { return TemplateHash(t.Typed(), nil) }

// IsPersisted reports whether the hash on record, empty for none, is that of the template.
func (t Template) IsPersisted(hash string) bool { return hash != "" && hash == t.Hash() }

// Template is a pod template exactly as the API server sent it. Decoding it into the types of one k8s.io/api release would
// silently drop the fields of newer clusters. It never changes once decoded, so it may be shared.
type Template struct {
	raw json.RawMessage
	// text is the digest of raw, by which is remembered what was worked out of it.
	text []byte
	// flaw is why our types cannot tell what it says; nil if they can.
	flaw error
}

// ParseTemplate reads a pod template from JSON. The error says where it is not one that we can work with.
func ParseTemplate(raw []byte) (Template, error) {
	text := sha256.Sum256(raw)
	t := Template{raw: bytes.Clone(raw), text: text[:]}
	if path := unbounded(t.Tree(), templateShape); path != nil {
		return t, fmt.Errorf("not a pod template to work with: the quantity at %s has more than %d characters or an exponent beyond ±%d",
			patches.Pointer(path...), longestQuantity, largestExponent)
	}
	var typed corev1.PodTemplateSpec
	if err := utiljson.Unmarshal(raw, &typed); err != nil {
		return t, fmt.Errorf("not a pod template: %w", err)
	}
	if count := ContainersOf(&typed.Spec); count > MostContainers {
		return t, fmt.Errorf("not a pod template to work with: it has %d containers, more than %d", count, MostContainers)
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
func (t Template) Typed() corev1.PodTemplateSpec { return *t.Decoded().DeepCopy() }

// Decoded is Typed for those who change nothing of it: it is shared.
func (t Template) Decoded() *corev1.PodTemplateSpec {
	if t.raw == nil || t.flaw != nil {
		return &corev1.PodTemplateSpec{}
	}
	return ofTemplates.Of(Digest(t.text), len(t.raw), t.decode)
}

// decode decodes a template without flaws.
func (t Template) decode() *corev1.PodTemplateSpec {
	var typed corev1.PodTemplateSpec
	if err := utiljson.Unmarshal(t.raw, &typed); err != nil {
		panic(err) // ParseTemplate has decoded the same bytes before
	}
	return &typed
}

// Tree is the template as JSON, numbers as they are written. What is not an object becomes one that only equals itself.
func (t Template) Tree() map[string]any {
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

// Flawed says why the template cannot be updated in place; nil if it has no flaw.
func (t Template) Flawed() *inplace.Reason {
	if t.flaw == nil {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeTemplateField, Message: t.flaw.Error()}
}

// Labels of the template, pod-template-hash included where it has one.
func (t Template) Labels() map[string]string { return t.Typed().Labels }

// Annotations of the template.
func (t Template) Annotations() map[string]string { return t.Typed().Annotations }
