package apps

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"

	"github.com/stayput/stayput/internal/sample"
)

func templateFiller(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.6).NumElements(0, 2).MaxDepth(14).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			formats := []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}
			*q = *resource.NewMilliQuantity(int64(c.Intn(5))*512, formats[c.Intn(3)])
		},
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawBytes([]byte(`{"f:spec":{}}`)) },
	)
}

// TestSameTemplateAgreesWithNative changes random JSON trees of templates in random places, and compares SameTemplate with native
// equality.
func TestSameTemplateAgreesWithNative(t *testing.T) {
	equal, different := 0, 0
	for seed := range int64(100) {
		var typed corev1.PodTemplateSpec
		templateFiller(seed).Fill(&typed)
		raw, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewSource(seed))
		for range 60 {
			var tree any
			if err := utiljson.Unmarshal(raw, &tree); err != nil {
				t.Fatal(err)
			}
			mutate(tree, random)
			mutated, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			a, errA := ParseTemplate(raw)
			b, errB := ParseTemplate(mutated)
			if errA != nil {
				t.Fatal(errA)
			}
			if errB != nil {
				continue // of a type that no API server would send
			}
			typedA, typedB := a.Typed(), b.Typed()
			want := sample.NativeEqual(&typedA, &typedB)
			if got := SameTemplate(a, b); got != want {
				t.Fatalf("seed %d: SameTemplate is %t, native %t: %v and %v", seed, got, want, a.Canonical(), b.Canonical())
			}
			if want {
				equal++
			} else {
				different++
			}
		}
	}
	if equal < 500 || different < 500 {
		t.Errorf("%d equal and %d different templates prove little", equal, different)
	}
}

// TestSameTemplateAgreesOnSerialisedTemplates compares templates as the API server would serialise them.
func TestSameTemplateAgreesOnSerialisedTemplates(t *testing.T) {
	for seed := range int64(100) {
		var original corev1.PodTemplateSpec
		templateFiller(seed).Fill(&original)
		raw, err := json.Marshal(original)
		if err != nil {
			t.Fatal(err)
		}
		template, err := ParseTemplate(raw)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(template.Typed())
		if err != nil {
			t.Fatal(err)
		}
		reread, err := ParseTemplate(again)
		if err != nil {
			t.Fatal(err)
		}
		if !SameTemplate(template, reread) {
			t.Fatalf("a template differs from itself: %v and %v", template.Canonical(), reread.Canonical())
		}
	}
}

// mutate makes one random change, which may or may not have a meaning, to a field that is there or could be.
func mutate(tree any, random *rand.Rand) {
	var places []place
	collect(tree, templateShape, &places)
	place := places[random.Intn(len(places))]
	if len(place.keys) == 0 {
		return
	}
	key := place.keys[random.Intn(len(place.keys))]
	empties := []any{nil, []any{}, map[string]any{}, "", 0, false, "1", "1000m", "2", "0"}
	if choice := random.Intn(len(empties) + 1); choice < len(empties) {
		place.object[key] = empties[choice]
	} else {
		delete(place.object, key)
	}
}

// place is an object of a tree and the keys it has or could have.
type place struct {
	object map[string]any
	keys   []string
}

func collect(tree any, shape *shape, into *[]place) {
	switch node := tree.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(node))
		for _, key := range keys {
			collect(node[key], shape.of(key), into)
		}
		if shape != nil && shape.fields != nil {
			keys = slices.Sorted(maps.Keys(shape.fields))
		}
		*into = append(*into, place{node, keys})
	case []any:
		for _, item := range node {
			collect(item, shape.of(""), into)
		}
	}
}

func TestCanonicalNumber(t *testing.T) {
	for number, want := range map[json.Number]any{"1": int64(1), "9007199254740993": int64(9007199254740993), "1.5": 1.5, "1e3": 1e3,
		"1e400": json.Number("1e400")} {
		if got := canonicalNumber(number); got != want {
			t.Errorf("%s becomes %v", number, got)
		}
	}
}
