package inplace

import (
	"strings"
	"testing"
)

func TestRulesFor(t *testing.T) {
	flag := Rules{Annotations: []string{"example.com/always"}}
	for name, test := range map[string]struct {
		list    string
		allowed string // of the keys below
		flaw    string
	}{
		"key":           {"note", "note example.com/always", ""},
		"prefix":        {"example.com/*", "example.com/a example.com/always", ""},
		"several":       {" note ,\nother.example.com/b ", "note other.example.com/b example.com/always", ""},
		"prefix of one": {"example.com/a*", "example.com/always", `"example.com/a*" is neither`},
		"wildcard":      {"note, *", "example.com/always", `"*" is neither`},
		"no key":        {"a b", "example.com/always", `"a b" is neither`},
		"empty":         {"", "example.com/always", "an empty entry"},
		"empty entry":   {"note,", "example.com/always", "an empty entry"},
		"Stayput's":     {"note,stayput.dev/decision", "example.com/always", "stayput.dev/* is Stayput's own"},
		"one restart":   {"restart.stayput.dev/app", "example.com/always", "restart of one container"},
		"restart":       {"kubectl.kubernetes.io/restartedAt", "example.com/always", "asks for a restart"},
		"all of it":     {"kubectl.kubernetes.io/*", "example.com/always", "kubectl.kubernetes.io/restartedAt asks"},
		"AppArmor":      {"container.apparmor.security.beta.kubernetes.io/app", "example.com/always", "running pod"},
		"mirror":        {"kubernetes.io/config.mirror", "example.com/always", "kubelets"},
		"long":          {strings.Repeat("a,", longestList/2) + "a", "example.com/always", "4096"},
	} {
		rules := flag.For(map[string]string{AnnotationInPlaceAnnotations: test.list})
		for _, key := range []string{
			"note", "notes", "example.com/a", "example.com/always", "other.example.com/b", "example.com", "kubernetes.io/config.mirror",
		} {
			if want := strings.Contains(" "+test.allowed+" ", " "+key+" "); rules.Allows(key) != want {
				t.Errorf("%s: %s is allowed: %t", name, key, !want)
			}
		}
		switch {
		case (rules.Flaw != nil) != (test.flaw != ""):
			t.Errorf("%s: flaw is %v", name, rules.Flaw)
		case rules.Flaw != nil && (!strings.Contains(rules.Flaw.Message, test.flaw) || rules.Text() == flag.Text()):
			t.Errorf("%s: flaw is %+v, text %q", name, rules.Flaw, rules.Text())
		}
	}
	if rules := flag.For(nil); rules.Flaw != nil || rules.Text() != flag.Text() {
		t.Errorf("a workload without a list has %+v", rules)
	}
}

func TestRulesRestarting(t *testing.T) {
	flags := Rules{Annotations: []string{"note"}, Restart: []string{"checksum/config"}}
	for name, test := range map[string]struct {
		list, key string
		asks, may bool
	}{
		"rollout restart":            {"x", AnnotationRestartedAt, true, false},
		"rollout restart in place":   {"x," + AnnotationRestartedAt, AnnotationRestartedAt, true, true},
		"among the wildcard's":       {"kubectl.kubernetes.io/*", AnnotationRestartedAt, true, true},
		"by the flag":                {"x", "checksum/config", true, true},
		"by the workload":            {"a, checksum/secret ,b", "checksum/secret", true, true},
		"all of a prefix":            {"reloader.example/*", "reloader.example/at", true, true},
		"of another prefix":          {"reloader.example/*", "reloader.example.com/at", false, false},
		"in place without restart":   {"x", "note", false, true},
		"one that is in both lists":  {"note", "note", true, true},
		"another":                    {"x", "y", false, false},
		"Stayput's own":              {"x,stayput.dev/move", "x", false, false},
		"of one container":           {"x,restart.stayput.dev/*", "x", false, false},
		"kubelets' own":              {"x,kubernetes.io/*", "x", false, false},
		"a list that does not parse": {"x,y z", "x", false, false},
		"no valid entry":             {"*", "y", false, false},
		"one that is too long":       {"x," + strings.Repeat("y", longestList), "x", false, false},
	} {
		rules := flags.For(map[string]string{AnnotationRestartAnnotations: test.list})
		if asks, may := rules.Restarts(test.key), rules.Allows(test.key); asks != test.asks || may != test.may {
			t.Errorf("%s: asks for a restart %t, in place %t", name, asks, may)
		}
	}
	flaw := flags.For(map[string]string{AnnotationRestartAnnotations: "*"}).Flaw
	if flaw == nil || !strings.Contains(flaw.Message, AnnotationRestartAnnotations) {
		t.Errorf("the flaw of a list that does not parse is %v", flaw)
	}
	if len(flags.Restart) != 1 {
		t.Error("the rules of the flags have changed")
	}
}

func TestRulesBesidesLists(t *testing.T) {
	rules := Rules{}.For(map[string]string{AnnotationInitContainers: "native", AnnotationResize: "native"})
	if !rules.InitContainers || rules.Resize != ResizeNone {
		t.Errorf("native is %+v", rules)
	}
	rules = Rules{}.For(map[string]string{AnnotationInitContainers: "in-place", AnnotationResize: "in-place"})
	if rules.InitContainers || rules.Resize != ResizeAll {
		t.Errorf("in place is %+v", rules)
	}
}

// TestRulesText: different rules have different texts, so that a value computed with some rules is not used for others.
func TestRulesText(t *testing.T) {
	seen := map[string]bool{}
	for _, rules := range []Rules{
		{}, {InitContainers: true}, {Restart: []string{"a"}}, {Annotations: []string{"a"}}, {Flaw: &Reason{Message: "a"}},
		{Restart: []string{"a", "b"}}, {Restart: []string{"a"}, Annotations: []string{"b"}},
	} {
		if seen[rules.Text()] {
			t.Errorf("%+v has the text of other rules", rules)
		}
		seen[rules.Text()] = true
	}
}
