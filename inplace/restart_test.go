package inplace

import (
	"strings"
	"testing"
)

func TestRulesRestarting(t *testing.T) {
	flags := Rules{Annotations: []string{"note"}, Restart: []string{"checksum/config"}}
	on := Settings{Restart: true}
	for name, test := range map[string]struct {
		settings  Settings
		list, key string
		asks, may bool
	}{
		"rollout restart":                  {on, "", AnnotationRestartedAt, true, true},
		"by the flag":                      {on, "", "checksum/config", true, true},
		"by the workload":                  {on, "a, checksum/secret ,b", "checksum/secret", true, true},
		"all of a prefix":                  {on, "reloader.example/*", "reloader.example/at", true, true},
		"of another prefix":                {on, "reloader.example/*", "reloader.example.com/at", false, false},
		"without the label":                {Settings{}, "x", "x", true, false},
		"allowed in place without restart": {Settings{}, "x", "note", false, true},
		"another":                          {on, "x", "y", false, false},
		"a list that does not parse":       {on, "x,y z", "x", false, false},
		"nor at all":                       {on, "*", "y", false, false},
		"one that is too long":             {on, "x," + strings.Repeat("y", longestKeys), "x", false, false},
	} {
		rules := flags.Restarting(test.settings, map[string]string{AnnotationRestartAnnotations: test.list})
		if asks, may := rules.Restarts(test.key), rules.Allows(test.key); asks != test.asks || may != test.may {
			t.Errorf("%s: asks for a restart %t, in place %t", name, asks, may)
		}
	}
	if len(flags.Restart) != 1 || flags.RestartInPlace {
		t.Error("the flags' own rules have changed")
	}
}

// TestRulesText: what was worked out by some rules is not taken for that by others.
func TestRulesText(t *testing.T) {
	seen := map[string]bool{}
	for _, rules := range []Rules{{}, {RestartInPlace: true}, {Restart: []string{"a"}}, {Annotations: []string{"a"}}, {Restart: []string{"a", "b"}},
		{Restart: []string{"a"}, Annotations: []string{"b"}}} {
		if seen[rules.Text()] {
			t.Errorf("%+v has the text of others", rules)
		}
		seen[rules.Text()] = true
	}
}
