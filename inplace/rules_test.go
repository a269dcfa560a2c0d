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
		"ours":          {"note,stayput.dev/decision", "example.com/always", "stayput.dev/* is Stayput's own"},
		"restart":       {"kubectl.kubernetes.io/restartedAt", "example.com/always", "new pods"},
		"all of it":     {"kubectl.kubernetes.io/*", "example.com/always", "kubectl.kubernetes.io/restartedAt is there"},
		"AppArmor":      {"container.apparmor.security.beta.kubernetes.io/app", "example.com/always", "running pod"},
		"mirror":        {"kubernetes.io/config.mirror", "example.com/always", "kubelets"},
		"long":          {strings.Repeat("a,", longestList/2) + "a", "example.com/always", "4096"},
	} {
		rules := flag.For(map[string]string{AnnotationInPlaceAnnotations: test.list})
		for _, key := range []string{"note", "notes", "example.com/a", "example.com/always", "other.example.com/b", "example.com", "kubernetes.io/config.mirror"} {
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
