package inplace

import (
	"slices"
	"strings"
	"testing"
)

func TestRestartOnChange(t *testing.T) {
	for list, want := range map[string]struct {
		entries []string
		err     string
	}{
		"*":                    {entries: []string{"*"}},
		" * ":                  {entries: []string{"*"}},
		"configmap/web-config": {entries: []string{"configmap/web-config"}},
		"configmap/web.config, certificate/web-tls": {entries: []string{"configmap/web.config", "certificate/web-tls"}},
		"":                                     {err: "it has an empty entry"},
		"configmap/a,":                         {err: "it has an empty entry"},
		"web-config":                           {err: `"web-config" is none of *, configmap/NAME and certificate/NAME`},
		"*,configmap/a":                        {err: `"*" is none of *, configmap/NAME and certificate/NAME`},
		"secret/web":                           {err: `"secret/web" is none of *, configmap/NAME and certificate/NAME`},
		"configmap/Web":                        {err: `"Web" is no name of an object`},
		"configmap/*":                          {err: `"*" is no name of an object`},
		"certificate/":                         {err: `"" is no name of an object`},
		strings.Repeat("configmap/abcd,", 300): {err: "it has more than 4096 characters"},
	} {
		entries, err := RestartOnChangeOf(map[string]string{AnnotationRestartOnChange: list})
		if !slices.Equal(entries, want.entries) {
			t.Errorf("%q has entries %q, want %q", list, entries, want.entries)
		}
		problem := "annotation stayput.dev/restart-on-change is ignored: " + want.err
		if want.err != "" && (err == nil || err.Error() != problem) {
			t.Errorf("%q: %v, want %s", list, err, problem)
		}
	}
	if entries, err := RestartOnChangeOf(nil); entries != nil || err != nil {
		t.Errorf("without the annotation: %q, %v", entries, err)
	}
}
