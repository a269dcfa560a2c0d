package inplace

import (
	"testing"
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
		if got := ModeOf("Deployment", labels(test.namespace), labels(test.workload)); got != test.want {
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
		namespace := map[string]string{LabelUpdate: "in-place-only", LabelKinds: kinds}
		if kinds == "absent" {
			delete(namespace, LabelKinds)
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
	if got, want := WorkloadModes.String(), "in-place, in-place-only, native"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
