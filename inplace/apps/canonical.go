package apps

import (
	"encoding/json"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
)

// The canonical form of a template is its JSON tree in which everything that native semantic equality
// (k8s.io/apimachinery/pkg/api/equality) takes for equal is the same: absent and empty fields if the Go type cannot tell them
// apart, and all spellings of a quantity. Fields that Stayput's types do not know stay as they are. In them, only null and [] count
// as absent.

// Canonical returns the template's canonical form without the pod-template-hash label. Callers may change it.
func (t Template) Canonical() map[string]any {
	tree := t.Tree()
	delete(Object(tree, "metadata", "labels"), inplace.LabelTemplateHash)
	return templateShape.canonicalObject(tree)
}

// shape is what the canonical form needs to know of a Go type. The nil shape is that of unknown fields.
type shape struct {
	// zero is the JSON value of a field that is absent.
	zero any
	// optional says that the field is a pointer: absent differs from zero.
	optional bool
	// fields are the fields of a struct, by JSON name.
	fields map[string]*shape
	// element is the shape of the elements of a list or map.
	element *shape
	// quantity says that the value is a quantity, which has many spellings.
	quantity bool
}

var templateShape = shapeOf(reflect.TypeFor[corev1.PodTemplateSpec]())

// shapeOf returns the shape of a Go type. Pod templates have no recursive types.
func shapeOf(t reflect.Type) *shape {
	switch {
	case t.Kind() == reflect.Pointer:
		pointer := *shapeOf(t.Elem())
		pointer.optional = true
		return &pointer
	case t == reflect.TypeFor[resource.Quantity]():
		return &shape{zero: "0", quantity: true}
	case t == reflect.TypeFor[intstr.IntOrString]():
		return &shape{zero: int64(0)}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return &shape{} // times: null when zero
	}
	return shapeOfKind(t)
}

func shapeOfKind(t reflect.Type) *shape {
	switch t.Kind() {
	case reflect.Struct:
		fields := map[string]*shape{}
		addFields(fields, t)
		return &shape{zero: map[string]any{}, fields: fields}
	case reflect.Map:
		return &shape{zero: map[string]any{}, element: shapeOf(t.Elem())}
	case reflect.Slice:
		return &shape{zero: []any{}, element: shapeOf(t.Elem())}
	case reflect.String:
		return &shape{zero: ""}
	case reflect.Bool:
		return &shape{zero: false}
	default:
		return &shape{zero: int64(0)}
	}
}

// addFields adds the fields of a struct as encoding/json sees them: fields of embedded structs are its own.
func addFields(fields map[string]*shape, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			addFields(fields, field.Type)
			continue
		}
		fields[name] = shapeOf(field.Type)
	}
}

// canonical returns the canonical form of a value of this shape, as a new tree.
func (s *shape) canonical(value any) any {
	if value == nil && s != nil && !s.optional {
		value = s.zero
	}
	switch value := value.(type) {
	case map[string]any:
		return s.canonicalObject(value)
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = s.of("").canonical(value[i])
		}
		return list
	default:
		return s.canonicalScalar(value)
	}
}

// canonicalObject drops the fields that mean the same as their absence. A key of a map is never dropped.
func (s *shape) canonicalObject(value map[string]any) map[string]any {
	isMap := s != nil && s.element != nil
	object := make(map[string]any, len(value))
	for key := range value {
		shape := s.of(key)
		if field := shape.canonical(value[key]); isMap || !shape.absent(field) {
			object[key] = field
		}
	}
	return object
}

func (s *shape) canonicalScalar(value any) any {
	switch value := value.(type) {
	case string:
		if s.isQuantity() {
			return canonicalQuantity(value)
		}
	case json.Number:
		if s.isQuantity() {
			return canonicalQuantity(value.String())
		}
		return canonicalNumber(value)
	}
	return value
}

func (s *shape) isQuantity() bool { return s != nil && s.quantity }

// canonicalNumber returns what k8s.io/apimachinery/pkg/util/json makes of a number. If that fails, it returns the number as it is
// written.
func canonicalNumber(number json.Number) any {
	if whole, err := number.Int64(); err == nil {
		return whole
	}
	if float, err := number.Float64(); err == nil {
		return float
	}
	return number
}

// of returns the shape of a field or element.
func (s *shape) of(key string) *shape {
	switch {
	case s == nil:
		return nil
	case s.element != nil:
		return s.element
	default:
		return s.fields[key]
	}
}

// absent reports whether a field with this canonical value equals an absent field.
func (s *shape) absent(value any) bool {
	if s != nil && s.optional {
		return value == nil
	}
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return s != nil && len(value) == 0
	default:
		return s != nil && value == s.zero
	}
}

// Object returns the object at a path of object keys, or nil if there is none.
func Object(tree map[string]any, path ...string) map[string]any {
	for _, key := range path {
		tree, _ = tree[key].(map[string]any)
	}
	return tree
}

// ObjectOrNew returns the object at a path of object keys. It creates the object if there is none.
func ObjectOrNew(tree map[string]any, path ...string) map[string]any {
	for _, key := range path {
		child, ok := tree[key].(map[string]any)
		if !ok {
			child = map[string]any{}
			tree[key] = child
		}
		tree = child
	}
	return tree
}
