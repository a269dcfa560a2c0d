package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stayput/stayput/inplace"
)

func TestFlagsOfHelp(t *testing.T) {
	got, err := flagsIn("  -port number\n    \tthe port (default 80)\n  -folder path\n    \ta folder (default \"/a\")\n" +
		"  -namespace name\n    \ta name; by default $NAME\n  -dry\n    \tno writes\n  -zap-devel\n    \tthe logger's\n")
	want := []flagged{
		{"port", "number", "`80`", "The port"}, {"folder", "path", "`/a`", "A folder"}, {"namespace", "name", "`$NAME`", "A name"},
		{"dry", "", "none", "No writes"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := flagsIn("no flags"); err == nil {
		t.Error("a text without flags was accepted")
	}
}

// TestDefaultsAreValues checks that a default that is a value changes nothing when it is set: the page takes it from the code.
func TestDefaultsAreValues(t *testing.T) {
	for _, setting := range inplace.Annotations {
		value, isValue := strings.CutPrefix(setting.Default, "`")
		if !isValue {
			continue
		}
		set := map[string]string{setting.Key: strings.TrimSuffix(value, "`")}
		if len(inplace.InForce(set, nil)) == 0 {
			t.Errorf("%v is the default, and not valid", set)
		}
		if got, want := inplace.SettingsOf(nil, set), inplace.SettingsOf(nil, nil); !reflect.DeepEqual(got, want) {
			t.Errorf("%v is the default, and gives %+v instead of %+v", set, got, want)
		}
	}
}
