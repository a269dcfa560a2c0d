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
		{"recreate", "in-place", ModeNone},
		{"nonsense", none, ModeNone},
		{"in-place", none, ModeInPlace},
		{"in-place-only", none, ModeInPlaceOnly},
		{"in-place", "in-place-only", ModeInPlaceOnly},
		{"in-place-only", "in-place", ModeInPlace},
		{"in-place", "recreate", ModeRecreate},
		{"in-place", "nonsense", ModeRecreate},
		{"in-place", "", ModeRecreate},
	}
	labels := func(value string) map[string]string {
		if value == none {
			return nil
		}
		return map[string]string{LabelUpdate: value}
	}
	for _, test := range tests {
		if got := ModeOf(labels(test.namespace), labels(test.workload)); got != test.want {
			t.Errorf("namespace %q, workload %q: got %q, want %q", test.namespace, test.workload, got, test.want)
		}
	}
}

func TestModeIfOptedIn(t *testing.T) {
	for _, test := range []struct {
		mode  Mode
		opted bool
		want  Mode
	}{
		{ModeInPlace, true, ModeInPlace},
		{ModeInPlaceOnly, true, ModeInPlaceOnly},
		{ModeInPlace, false, ModeNotOptedIn},
		{ModeInPlaceOnly, false, ModeNotOptedIn},
		{ModeRecreate, true, ModeRecreate},
		{ModeRecreate, false, ModeRecreate},
		{ModeNone, true, ModeNone},
	} {
		if got := test.mode.IfOptedIn(test.opted); got != test.want {
			t.Errorf("%q, opted in %t: got %q, want %q", test.mode, test.opted, got, test.want)
		}
	}
}

func TestModeManages(t *testing.T) {
	for mode, want := range map[Mode]bool{
		ModeNone: false, ModeRecreate: false, ModeNotOptedIn: false, ModeInPlace: true, ModeInPlaceOnly: true,
	} {
		if mode.Manages() != want {
			t.Errorf("%q manages: %t", mode, !want)
		}
	}
}

func TestModesAreListed(t *testing.T) {
	if got, want := WorkloadModes.String(), "in-place, in-place-only, recreate"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
