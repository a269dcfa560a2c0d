package inplace

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEffects(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, workload string // of the drain
		want                string
	}{
		"none":                           {"", "", "drain: 2s (default)"},
		"of the namespace":               {"5s", "", "drain: 5s (namespace)"},
		"of the workload":                {"", "30s", "drain: 30s (workload)"},
		"of both":                        {"5s", "30s", "drain: 30s (workload, instead of 5s of the namespace)"},
		"not valid":                      {"", "soon", "drain: 2s (default, instead of soon of the workload, which is not valid)"},
		"not valid, and the namespace's": {"5s", "soon", "drain: 5s (namespace, instead of soon of the workload, which is not valid)"},
		"not valid on the namespace":     {"soon", "", "drain: 2s (default, instead of soon of the namespace, which is not valid)"},
	} {
		of := func(value string) map[string]string {
			if value == "" {
				return nil
			}
			return map[string]string{AnnotationDrain: value}
		}
		effects := SettingsOf(of(test.namespace), of(test.workload)).Effects("Deployment", of(test.workload))
		at := slices.IndexFunc(effects, func(e Effect) bool { return e.Name == "drain" })
		if got := line(effects[at]); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestLocks: what a namespace locks counts as if the workload had none.
func TestLocks(t *testing.T) {
	workload := map[string]string{AnnotationDrain: "30s", AnnotationSurge: "replace"}
	for list, want := range map[string]string{
		"drain":         "drain: 5s (namespace, instead of 30s of the workload, which the namespace locks)",
		"surge , drain": "drain: 5s (namespace, instead of 30s of the workload, which the namespace locks)",
		"surge":         "drain: 30s (workload, instead of 5s of the namespace)",
		"":              "drain: 30s (workload, instead of 5s of the namespace)",
	} {
		settings := SettingsOf(map[string]string{AnnotationDrain: "5s", AnnotationLocked: list}, workload)
		effects := settings.Effects("Deployment", workload)
		at := slices.IndexFunc(effects, func(e Effect) bool { return e.Name == "drain" })
		if got := line(effects[at]); got != want {
			t.Errorf("%q locked: %s, want %s", list, got, want)
		}
		if locked := strings.Contains(list, "drain"); locked != (settings.Drain == 5*time.Second) {
			t.Errorf("%q locked: the drain is %s", list, settings.Drain)
		}
	}
	if settings := SettingsOf(map[string]string{AnnotationLocked: "surge"}, workload); settings.Surge != SurgeNeeded {
		t.Errorf("locked without a value of the namespace, surge is %s instead of the default", settings.Surge)
	}
}

// TestEffectsOfKinds: a setting is shown where it counts.
func TestEffectsOfKinds(t *testing.T) {
	for kind, without := range map[string]int{"Deployment": 1, "DaemonSet": 1, "StatefulSet": 3} {
		if got := len(Annotations) - len(SettingsOf(nil, nil).Effects(kind, nil)); got != without {
			t.Errorf("a %s is without %d settings, want %d", kind, got, without)
		}
	}
}

func TestLabelEffects(t *testing.T) {
	labels := func(text string) map[string]string {
		all := map[string]string{}
		for _, pair := range strings.Fields(text) {
			key, value, _ := strings.Cut(pair, "=")
			all["stayput.dev/"+key] = value
		}
		return all
	}
	const locking = "update=in-place-only"
	const byDefault = "kinds: deployments.daemonsets (default)"
	for _, test := range []struct{ kind, namespace, workload, update, kinds string }{
		{"Deployment", "", "", "update: native (default)", byDefault},
		{"Deployment", "", "update=in-place",
			"update: native (default, instead of in-place of the workload, which counts only where the namespace has the label, too)", byDefault},
		{"Deployment", "update=in-place", "", "update: in-place (namespace)", byDefault},
		{"Deployment", "update=in-place", "update=native", "update: native (workload, instead of in-place of the namespace)", byDefault},
		{"Deployment", "update=native", "", "update: native (default)", byDefault},
		{"StatefulSet", "update=in-place", "", "update: native: its kind is not among kinds (default, instead of in-place of the namespace)",
			byDefault},
		{"Deployment", locking, "update=native", "update: in-place-only (namespace, instead of native of the workload, which the namespace locks)",
			byDefault},
		{"StatefulSet", "update=in-place kinds=statefulsets", "", "update: in-place (namespace)", "kinds: statefulsets (namespace)"},
		{"StatefulSet", "update=in-place", "update=in-place-only", "update: in-place-only (workload, instead of in-place of the namespace)",
			byDefault},
	} {
		locks := map[string]string{}
		if test.namespace == locking {
			locks[AnnotationLocked] = "update"
		}
		effects := LabelEffects(test.kind, &metav1.ObjectMeta{Labels: labels(test.namespace), Annotations: locks},
			&metav1.ObjectMeta{Labels: labels(test.workload)})
		if line(effects[0]) != test.update || line(effects[1]) != test.kinds {
			t.Errorf("%+v: %v", test, effects)
		}
	}
}

// line returns the effect as one line, as in "drain: 30s (workload, instead of 5s of the namespace)".
func line(e Effect) string {
	line := e.Name + ": " + e.Value + " (" + e.From
	if e.InsteadOf != "" {
		line += ", instead of " + e.InsteadOf
	}
	return line + ")"
}
