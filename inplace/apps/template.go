package apps

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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

// SameTemplate reports whether the Deployment controller takes the templates for the same revision. It is EqualIgnoreHash in
// pkg/controller/deployment/util/deployment_util.go, but it compares what the API server sent. So fields that Stayput does not know
// count, too.
func SameTemplate(a, b Template) bool { return a.Digest() == b.Digest() }

// MostContainers is how many containers, init containers included, a template or a pod may have to be updated in place. It is
// several times what is in use. In every pod, Stayput searches all containers for each of them by name.
const MostContainers = 100

// These bound how large a template may be to be updated in place. Templates have a few KiB. One may be compared with as many others as
// there are revisions.
const (
	longestTemplate = 256 << 10
	mostElements    = 20_000
)

// ContainersOf returns the number of containers in the spec, init containers included.
func ContainersOf(spec *corev1.PodSpec) int { return len(spec.Containers) + len(spec.InitContainers) }

// Crowded returns how many elements a list of the pod has that is longer than Stayput searches in every pod; empty if none is. Readiness
// gates and conditions are searched for each other, and so are containers and their statuses.
func Crowded(pod *corev1.Pod) string {
	for _, list := range []struct {
		length int
		of     string
	}{
		{ContainersOf(&pod.Spec), "containers"},
		{len(pod.Status.ContainerStatuses) + len(pod.Status.InitContainerStatuses), "statuses of containers"},
		{len(pod.Spec.ReadinessGates), "readiness gates"},
		{len(pod.Status.Conditions), "conditions"},
	} {
		if list.length > MostContainers {
			return fmt.Sprintf("%d %s, more than %d", list.length, list.of, MostContainers)
		}
	}
	return ""
}

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

// Hash returns a hash that identifies the template, whatever revision it may get. It does not depend on the version of Stayput.
func (t Template) Hash() string {
	digest := t.Digest()
	return hex.EncodeToString(digest[:5])
}

// Template is a pod template exactly as the API server sent it. Decoding it into the types of one k8s.io/api release would silently
// drop the fields of newer clusters. A Template never changes after it is decoded, so it may be shared.
type Template struct {
	raw json.RawMessage
	// text is the digest of raw. What was computed from raw is remembered by this digest.
	text []byte
	// elements is what Elements counts in raw.
	elements int
	// flaw is why Stayput's types cannot represent the template. It is nil if they can.
	flaw error
}

// ParseTemplate reads a pod template from JSON. The error says why Stayput cannot work with it. Each status of a workload or of its
// revisions brings the same texts again, so each text is read once.
func ParseTemplate(raw []byte) (Template, error) {
	text := sha256.Sum256(raw)
	read := ofTexts.Of(text, len(raw), func() readTemplate {
		t, err := parseTemplate(Template{raw: bytes.Clone(raw), text: text[:]})
		return readTemplate{t, err}
	})
	return read.Template, read.err
}

func parseTemplate(t Template) (Template, error) {
	t.elements = Elements(t.raw)
	if len(t.raw) > longestTemplate || t.elements > mostElements {
		return t, fmt.Errorf("unsupported pod template: it has %d KiB and %d elements of lists and objects, more than %d KiB or %d elements",
			len(t.raw)>>10, t.elements, longestTemplate>>10, mostElements)
	}
	if path := unbounded(t.Tree(), templateShape); path != nil {
		return t, fmt.Errorf("unsupported pod template: the quantity at %s has more than %d characters or an exponent beyond ±%d",
			patches.Pointer(path...), longestQuantity, largestExponent)
	}
	var typed corev1.PodTemplateSpec
	if err := utiljson.Unmarshal(t.raw, &typed); err != nil {
		return t, fmt.Errorf("not a pod template: %w", err)
	}
	if count := ContainersOf(&typed.Spec); count > MostContainers {
		return t, fmt.Errorf("unsupported pod template: it has %d containers, more than %d", count, MostContainers)
	}
	return t, nil
}

// UnmarshalJSON keeps the raw bytes. It accepts whatever the API server sends, because one template must not make a whole list
// fail. A template with a flaw is updated natively.
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

// DeepCopyInto copies the template. The copy shares the bytes, because a template never changes.
func (t *Template) DeepCopyInto(out *Template) { *out = *t }

// Typed returns what Stayput's k8s.io/api types know of the template, or nothing if it has a flaw. It is for reading single fields:
// never compare the result and never write it back, because fields of newer clusters are missing.
func (t Template) Typed() corev1.PodTemplateSpec { return *t.Decoded().DeepCopy() }

// Decoded is Typed for callers that do not change the result: it is shared.
func (t Template) Decoded() *corev1.PodTemplateSpec {
	if t.raw == nil || t.flaw != nil {
		return &corev1.PodTemplateSpec{}
	}
	return ofTemplates.Of(Digest(t.text), max(len(t.raw), elementSize*t.elements), t.decode)
}

// decode decodes a template without flaws.
func (t Template) decode() *corev1.PodTemplateSpec {
	var typed corev1.PodTemplateSpec
	if err := utiljson.Unmarshal(t.raw, &typed); err != nil {
		panic(err) // ParseTemplate has decoded the same bytes before
	}
	return &typed
}

// Tree returns the template as JSON, with numbers as they are written. A template that is not an object becomes a tree that only
// equals itself.
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

// Unsupported returns why the template cannot be updated in place. It is nil if it has no flaw.
func (t Template) Unsupported() *inplace.Reason {
	if t.flaw == nil {
		return nil
	}
	return &inplace.Reason{Code: inplace.CodeTemplateField, Message: t.flaw.Error()}
}
