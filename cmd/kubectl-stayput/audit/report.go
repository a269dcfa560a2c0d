package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/stayput/stayput/inplace"
)

// Report is the result of an audit.
type Report struct {
	// Workloads is how many Deployments, DaemonSets and StatefulSets there are; Unchanged is how many of them have no rollout in their
	// history.
	Workloads int `json:"workloads"`
	Unchanged int `json:"unchanged"`
	Counts
	// Settings and Reasons begin with the most frequent.
	Settings []Setting `json:"settings"`
	Reasons  []Reason  `json:"reasons"`
	// Namespaces begin with the one that has most rollouts, and so do Labels.
	Namespaces []Group `json:"namespaces"`
	// Label is the key by whose values Labels are grouped; empty if no label was asked for.
	Label  string  `json:"label,omitempty"`
	Labels []Group `json:"labels,omitempty"`
}

// Counts are numbers of rollouts. All is the sum of the others.
type Counts struct {
	All         int `json:"rollouts"`
	InPlace     int `json:"inPlace"`
	WithSetting int `json:"withSetting"`
	Native      int `json:"native"`
}

// Group are the rollouts of a namespace, or of the workloads with one value of a label.
type Group struct {
	// Name is empty for workloads without the label.
	Name string `json:"name"`
	Counts
}

// Setting is a setting and the number of native rollouts that it alone would make in place. A rollout may be counted under several.
type Setting struct {
	Setting  string `json:"setting"`
	Rollouts int    `json:"rollouts"`
}

// Reason is a reason and the number of rollouts that are native for it and that no setting makes in place. A rollout may have several.
type Reason struct {
	Code string `json:"code"`
	// Path is the JSON pointer to a field. It has * in place of indexes, and is empty if the reason is no field.
	Path     string `json:"path,omitempty"`
	Rollouts int    `json:"rollouts"`
	// Example is one such rollout, and Message its reason.
	Example string `json:"example"`
	Message string `json:"message"`
}

// tally counts rollouts. The lists of its report are made at the end.
type tally struct {
	Report
	settings           map[string]int
	reasons            map[reasonKey]*Reason
	namespaces, labels map[string]*Counts
}

type reasonKey struct{ code, path string }

func newTally(label string) *tally {
	return &tally{Report: Report{Label: label, Settings: []Setting{}, Reasons: []Reason{}}, settings: map[string]int{},
		reasons: map[reasonKey]*Reason{}, namespaces: map[string]*Counts{}, labels: map[string]*Counts{}}
}

// add counts the rollouts in the history of a workload.
func (t *tally) add(w workload, known history) {
	rollouts := known.rollouts()
	if t.Workloads++; len(rollouts) == 0 {
		t.Unchanged++
	}
	for _, each := range rollouts {
		judged := w.judge(each)
		t.count(w, judged)
		if len(judged.settings) == 0 {
			t.blame(fmt.Sprintf("%s, revision %d", w, each.revision), judged.reasons)
		}
	}
}

func (t *tally) count(w workload, judged verdict) {
	t.Counts.add(judged)
	at(t.namespaces, w.object.GetNamespace()).add(judged)
	if t.Label != "" {
		at(t.labels, cmp.Or(w.object.GetLabels()[t.Label], w.within.Labels[t.Label])).add(judged)
	}
	for _, setting := range judged.settings {
		t.settings[setting]++
	}
}

func (c *Counts) add(judged verdict) {
	c.All++
	switch {
	case len(judged.reasons) == 0:
		c.InPlace++
	case len(judged.settings) > 0:
		c.WithSetting++
	default:
		c.Native++
	}
}

// blame counts each kind of reason once. The example is the first by name, whichever was counted first.
func (t *tally) blame(example string, reasons inplace.Reasons) {
	counted := map[reasonKey]bool{}
	for _, each := range reasons {
		key := reasonKey{each.Code, place(each)}
		if counted[key] {
			continue
		}
		counted[key] = true
		known := t.reasons[key]
		if known == nil {
			known = &Reason{Code: key.code, Path: key.path, Example: example}
			t.reasons[key] = known
		}
		if known.Rollouts++; example <= known.Example {
			known.Example, known.Message = example, each.Message
		}
	}
}

func at(counts map[string]*Counts, name string) *Counts {
	if counts[name] == nil {
		counts[name] = &Counts{}
	}
	return counts[name]
}

// report returns what was counted.
func (t *tally) report() Report {
	r := t.Report
	for name, rollouts := range t.settings {
		r.Settings = append(r.Settings, Setting{name, rollouts})
	}
	for _, each := range t.reasons {
		r.Reasons = append(r.Reasons, *each)
	}
	r.Namespaces, r.Labels = groups(t.namespaces), groups(t.labels)
	slices.SortFunc(r.Settings, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(b.Rollouts, a.Rollouts), cmp.Compare(a.Setting, b.Setting))
	})
	slices.SortFunc(r.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Rollouts, a.Rollouts), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Path, b.Path))
	})
	return r
}

// groups returns the groups, the largest first, and those of one size by name.
func groups(counts map[string]*Counts) []Group {
	all := []Group{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, Group{name, *counts[name]})
	}
	slices.SortStableFunc(all, func(a, b Group) int { return cmp.Compare(b.All, a.All) })
	return all
}
