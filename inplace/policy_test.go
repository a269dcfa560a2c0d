package inplace

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestModeOf(t *testing.T) {
	const none = "none" // no label
	tests := []struct {
		namespace, workload string
		want                Mode
	}{
		{none, none, ModeNone},
		{none, "in-place", ModeNone},
		{"", "in-place", ModeNone},
		{"native", "in-place", ModeNone},
		{"nonsense", none, ModeNone},
		{"in-place", none, ModeInPlace},
		{"in-place-only", none, ModeInPlaceOnly},
		{"in-place", "in-place-only", ModeInPlaceOnly},
		{"in-place-only", "in-place", ModeInPlace},
		{"in-place", "native", ModeNative},
		{"in-place", "nonsense", ModeNative},
		{"in-place", "", ModeNative},
	}
	labels := func(value string) map[string]string {
		if value == none {
			return nil
		}
		return map[string]string{LabelUpdate: value}
	}
	for _, test := range tests {
		if got := ModeOf("Deployment", &metav1.ObjectMeta{Labels: labels(test.namespace)}, labels(test.workload)); got != test.want {
			t.Errorf("namespace %q, workload %q: got %q, want %q", test.namespace, test.workload, got, test.want)
		}
	}
}

func TestModeOfKinds(t *testing.T) {
	const named, other = ModeInPlaceOnly, ModeNotOptedIn
	for kinds, want := range map[string][3]Mode{
		"absent":                              {named, named, other},
		"statefulsets":                        {other, other, named},
		"deployments.statefulsets":            {named, other, named},
		"statefulsets.deployments.daemonsets": {named, named, named},
		"":                                    {other, other, other},
		"all":                                 {other, other, other},
	} {
		namespace := &metav1.ObjectMeta{Labels: map[string]string{LabelUpdate: "in-place-only", LabelKinds: kinds}}
		if kinds == "absent" {
			delete(namespace.Labels, LabelKinds)
		}
		for i, kind := range []string{"Deployment", "DaemonSet", "StatefulSet"} {
			if got := ModeOf(kind, namespace, nil); got != want[i] {
				t.Errorf("kinds %q, a %s: got %q, want %q", kinds, kind, got, want[i])
			}
			if got := ModeOf(kind, namespace, map[string]string{LabelUpdate: "in-place"}); got != ModeInPlace {
				t.Errorf("kinds %q, a %s that asks itself: got %q", kinds, kind, got)
			}
		}
		if got := ModeOf("", namespace, nil); got != named {
			t.Errorf("kinds %q, a kind that is named: got %q", kinds, got)
		}
	}
}

// TestModeLocked: a workload's own label does not count, as if it were not there.
func TestModeLocked(t *testing.T) {
	namespace := &metav1.ObjectMeta{Labels: map[string]string{LabelUpdate: "in-place-only"},
		Annotations: map[string]string{AnnotationLocked: "drain, update"}}
	for kind, want := range map[string]Mode{"Deployment": ModeInPlaceOnly, "StatefulSet": ModeNotOptedIn} {
		for _, own := range []string{"native", "in-place", "nonsense"} {
			if got := ModeOf(kind, namespace, map[string]string{LabelUpdate: own}); got != want {
				t.Errorf("a %s labelled %s: got %q, want %q", kind, own, got, want)
			}
		}
	}
}

func TestModeManages(t *testing.T) {
	for mode, want := range map[Mode]bool{
		ModeNone: false, ModeNative: false, ModeNotOptedIn: false, ModeInPlace: true, ModeInPlaceOnly: true,
	} {
		if mode.Manages() != want {
			t.Errorf("%q manages: %t", mode, !want)
		}
	}
}

func TestModesAreListed(t *testing.T) {
	if got, want := NamespaceModes.String(), "in-place, in-place-only"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
