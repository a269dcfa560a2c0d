package apps

import (
	"crypto/sha256"
	"encoding/json"
	"testing"
)

// TestDigests: values that differ in any way have different digests, even if their texts could be confused when joined.
func TestDigests(t *testing.T) {
	type object = map[string]any
	type list = []any
	seen := map[string]any{}
	values := list{nil, true, false, "", "true", "1", int64(1), 1.0, json.Number("1"), json.Number("1e400"), list{}, object{},
		list{"a", "b"}, list{"ab"}, list{list{"a"}, "b"},
		list{list{"a", "b"}}, object{"a": "b"}, object{"a": nil}, object{"ab": ""}, object{"a": "", "b": ""},
		object{"a": object{"b": ""}}, object{"a": object{}, "b": ""}, list{int64(0)}, list{0.0}}
	for _, value := range values {
		sum := sha256.New()
		writeTo(sum, value)
		key := string(sum.Sum(nil))
		if other, known := seen[key]; known {
			t.Errorf("%#v has the digest of %#v", value, other)
		}
		seen[key] = value
	}
}
