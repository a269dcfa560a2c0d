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

// The canonical form of a template is its JSON tree in which everything that native semantic equality takes for equal
// (k8s.io/apimachinery/pkg/api/equality) is the same: absent and empty where the Go type cannot tell them apart, amounts of
// a quantity however written. Fields our types do not know stay as they are; only null and [] count as absent there.

// Canonical returns the template's canonical form without the pod-template-hash label. Callers may change it.
func (t Template) Canonical() map[string]any {
	tree := t.Tree()
	delete(Object(tree, "metadata", "labels"), inplace.LabelTemplateHash)
	return templateShape.canonicalObject(tree)
}

// shape is what the canonical form needs to know of a Go type. The nil shape is that of unknown fields.
type shape struct {
	// zero is the value, in JSON, that a field has when it is absent.
	zero any
	// optional fields are pointers: absent differs from zero.
	optional bool
	// fields of a struct, by JSON name.
	fields map[string]*shape
	// element of a list or map.
	element *shape
	// quantity values have many spellings.
	quantity bool
}

var templateShape = shapeOf(reflect.TypeFor[corev1.PodTemplateSpec]())

// shapeOf reads the shape from a Go type. Pod templates have no recursive types.
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

// addFields adds the fields of a struct as encoding/json sees them: those of embedded structs are its own.
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

// canonical returns the canonical form of a value of this shape, a new tree.
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

// canonicalObject drops the fields that mean no more than their absence. Keys of a map always mean something.
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

// canonicalNumber is what k8s.io/apimachinery/pkg/util/json makes of a number, and the number as it is written where that fails.
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

// absent reports whether a field with this canonical value equals a field that is not there.
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

// Object returns the object at a path of object keys, nil if there is none.
func Object(tree map[string]any, path ...string) map[string]any {
	for _, key := range path {
		tree, _ = tree[key].(map[string]any)
	}
	return tree
}

// Made returns the object at a path of object keys, which it creates if there is none.
func Made(tree map[string]any, path ...string) map[string]any {
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
