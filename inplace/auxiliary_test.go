package inplace

import (
	"slices"
	"strings"
	"testing"
)

func TestAuxiliaryOf(t *testing.T) {
	for list, want := range map[string]Auxiliary{
		"shipper":                        {"shipper"},
		"shipper,metrics":                {"shipper", "metrics"},
		" shipper, metrics ":             {"shipper", "metrics"},
		"a-1":                            {"a-1"},
		strings.Repeat("a", 63):          {strings.Repeat("a", 63)},
		strings.Repeat("a", 64):          nil,
		"":                               nil,
		"*":                              nil,
		"shipper,":                       nil,
		",shipper":                       nil,
		"shipper,,metrics":               nil,
		"shipper metrics":                nil,
		"shipper;metrics":                nil,
		"Shipper":                        nil,
		"-a":                             nil,
		"a.b":                            nil,
		"shipper,*":                      nil,
		strings.Repeat("a,", 2048):       nil,
		strings.Repeat("a,", 2048) + "a": nil,
	} {
		if got := AuxiliaryOf(map[string]string{AnnotationAuxiliary: list}); !slices.Equal(got, want) {
			t.Errorf("%.80q: %q, want %q", list, got, want)
		}
	}
	if got := AuxiliaryOf(nil); got != nil || got.Has("") || got.Has("app") {
		t.Errorf("without the annotation: %q", got)
	}
	if got := AuxiliaryOf(map[string]string{AnnotationAuxiliary: "shipper, metrics"}); !got.Has("metrics") || got.Has("app") {
		t.Errorf("%q", got)
	}
}
