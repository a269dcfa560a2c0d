package statefulsets_test

import (
	"encoding/json"
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestForgedMarkOfAMember: another client may write a mark and the label of a partially patched pod, in any mode. Stayput writes nothing
// into the pod that no revision of the StatefulSet says.
func TestForgedMarkOfAMember(t *testing.T) {
	for name, mark := range map[string]string{
		"of its own revision": readiness.Move{Hash: "db-1", Containers: map[string]readiness.MovedContainer{"app": {Image: "v1"}},
			Back: map[string]string{"app": "v9"}}.String(),
		"of no revision":  readiness.Move{Hash: "db-9", Back: map[string]string{"app": "v9"}}.String(),
		"without content": "{}",
		"no JSON":         "{",
	} {
		for _, mode := range []inplace.Mode{inplace.ModeInPlace, inplace.ModeNotOptedIn} {
			for _, label := range []string{"db-1", podstate.HashPartial, "db-9", ""} {
				m := fixture.NewMembers(t, 2)
				m.Rollout.Seen.Mode = mode
				pod := m.Member(1)
				pod.Annotations = map[string]string{inplace.AnnotationMove: mark}
				pod.Labels[inplace.LabelRevisionHash] = label
				m.Rest()
				if image := pod.Spec.Containers[0].Image; image != "v1" {
					t.Errorf("%s, mode %q, label %q: the pod has image %s", name, mode, label, image)
				}
			}
		}
	}
}

// TestForgedMarksOfRevisions: marks that another client writes on ControllerRevisions, or data that is no template, neither move a pod nor
// hold anything for ever.
func TestForgedMarksOfRevisions(t *testing.T) {
	marks := map[string]string{}
	for _, mark := range inplace.Marks {
		marks[mark] = "99999999999"
	}
	for name, test := range map[string]struct {
		labels map[string]string
		data   string
	}{
		"every mark, in the future": {marks, ""},
		"no times":                  {map[string]string{inplace.LabelUpdating: "x", inplace.LabelRenewed: "-1"}, ""},
		"no template":               {nil, `{"spec":{"template":7}}`},
		"no JSON":                   {nil, `{`},
	} {
		m := fixture.NewMembers(t, 2)
		m.Edit(fixture.App{Image: "v2"})
		m.Edit(fixture.App{Image: "v1"}) // which all pods have
		other := m.Of().Revisions[1]
		for key, value := range test.labels {
			other.Labels[key] = value
		}
		if test.data != "" {
			other.Data = json.RawMessage(test.data)
		}
		m.Rest()
		for ordinal := range 2 {
			if pod := m.Member(ordinal); pod.Spec.Containers[0].Image != "v1" || pod.Labels[inplace.LabelRevisionHash] != "db-1" {
				t.Errorf("%s: %s is %s %s", name, pod.Name, pod.Labels[inplace.LabelRevisionHash], pod.Spec.Containers[0].Image)
			}
		}
		if held, why := m.Of().HoldsCleanup(other); held {
			t.Errorf("%s: in the end the deletion of %s is held: %s", name, other.Name, why.Message)
		}
	}
}
