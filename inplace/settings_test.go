package inplace

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSettingsOf(t *testing.T) {
	defaults := Settings{Drain: 2 * time.Second, PrePullParallelism: 10, Surge: SurgeNeeded, PreRestartTimeout: 10 * time.Minute}
	with := func(change func(*Settings)) Settings {
		settings := defaults
		change(&settings)
		return settings
	}
	for name, test := range map[string]struct {
		namespace, workload map[string]string
		want                Settings
	}{
		"no settings": {want: defaults},
		"on a namespace": {namespace: map[string]string{AnnotationDrain: "500ms"},
			want: with(func(s *Settings) { s.Drain = 500 * time.Millisecond })},
		"on a workload": {
			namespace: map[string]string{AnnotationDrain: "5s", AnnotationSurge: "needed", AnnotationPrePullParallelism: "3"},
			workload:  map[string]string{AnnotationDrain: "0", AnnotationSurge: "never", AnnotationPrePullParallelism: "0"},
			want:      Settings{Surge: SurgeNever, PreRestartTimeout: 10 * time.Minute},
		},
		"what does not parse counts as absent": {
			namespace: map[string]string{AnnotationDrain: "1m"},
			workload:  map[string]string{AnnotationDrain: "soon", AnnotationSurge: "yes", AnnotationPrePullParallelism: "-1"},
			want:      with(func(s *Settings) { s.Drain = time.Minute }),
		},
		"the largest values": {
			namespace: map[string]string{AnnotationDrain: LongestDrain.String(), AnnotationPrePullParallelism: "1000"},
			want:      with(func(s *Settings) { s.Drain, s.PrePullParallelism = LongestDrain, 1000 }),
		},
		"out of bounds": {
			namespace: map[string]string{AnnotationDrain: "1h", AnnotationPrePullParallelism: "1001"},
			want:      defaults,
		},
		"surge pods of a namespace": {namespace: map[string]string{AnnotationSurge: "replace"},
			workload: map[string]string{AnnotationSurge: "Replace"}, want: with(func(s *Settings) { s.Surge = SurgeReplace })},
		"PodDisruptionBudgets of a namespace": {namespace: map[string]string{AnnotationDisruptionBudgets: "respect"},
			want: with(func(s *Settings) { s.DisruptionBudgets = true })},
		"PodDisruptionBudgets of a workload": {namespace: map[string]string{AnnotationDisruptionBudgets: "respect"},
			workload: map[string]string{AnnotationDisruptionBudgets: "native"}, want: defaults},
		"PodDisruptionBudgets with another value": {namespace: map[string]string{AnnotationDisruptionBudgets: "respect"},
			workload: map[string]string{AnnotationDisruptionBudgets: "true"}, want: with(func(s *Settings) { s.DisruptionBudgets = true })},
		"hooks of a namespace, of a workload": {namespace: map[string]string{AnnotationPreRestartTimeout: "1h30m"},
			workload: map[string]string{AnnotationPreRestartTimeout: "0"}, want: with(func(s *Settings) { s.PreRestartTimeout = 0 })},
		"hooks for too long": {namespace: map[string]string{AnnotationPreRestartTimeout: "1h30m"},
			workload: map[string]string{AnnotationPreRestartTimeout: "3h"},
			want:     with(func(s *Settings) { s.PreRestartTimeout = 90 * time.Minute })},
		"unreachable nodes": {namespace: map[string]string{AnnotationUnreachableNodes: "skip"},
			want: with(func(s *Settings) { s.SkipsUnreachable = true })},
		"unreachable nodes of a workload": {namespace: map[string]string{AnnotationUnreachableNodes: "skip"},
			workload: map[string]string{AnnotationUnreachableNodes: "native"}, want: defaults},
		"negative": {namespace: map[string]string{AnnotationDrain: "-1s"}, want: defaults},
		"partition of a namespace": {namespace: map[string]string{AnnotationPartition: "50%"},
			want: with(func(s *Settings) { s.Partition.Value = "50%" })},
		"partition that does not parse": {namespace: map[string]string{AnnotationPartition: "0"},
			workload: map[string]string{AnnotationPartition: ""}, want: with(func(s *Settings) { s.Partition.Value = `""` })},
	} {
		got := SettingsOf(test.namespace, test.workload)
		got.namespace = nil
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestLongestValues: a value of the greatest length counts, and none that is longer.
func TestLongestValues(t *testing.T) {
	list := func(of string) func(int) string { // as "a,a,aa"
		return func(length int) string { return strings.Repeat(of+",", length/2-1) + strings.Repeat(of, 2+length%2) }
	}
	for name, test := range map[string]struct {
		longest int
		value   func(length int) string
		counts  func(value string) bool
	}{
		"hooks":    {longestSelector, list("a"), areHooks},
		"selector": {longestSelector, list("a"), isSelector},
		"key":      {longestSelector, func(length int) string { return strings.Repeat("a", length-2) + "/b" }, isLabelKey},
		"list": {longestList, list("a"), func(value string) bool {
			_, err := parseList(value, CheckAnnotation)
			return err == nil
		}},
		"window": {longestWindow, func(length int) string { return fmt.Sprintf("%-*s", length, "02:00-04:00") }, func(value string) bool {
			_, err := Window(value).intervals()
			return err == nil
		}},
	} {
		if value := test.value(test.longest); len(value) != test.longest || !test.counts(value) {
			t.Errorf("%s: %q does not count", name, value)
		}
		if value := test.value(test.longest + 1); len(value) != test.longest+1 || test.counts(value) {
			t.Errorf("%s: %q counts", name, value)
		}
	}
}

// TestInForce: a workload's value overrides its namespace's, unless it is not valid. Where that has consequences of its own, it counts.
func TestInForce(t *testing.T) {
	for name, test := range map[string]struct{ key, namespace, workload, want string }{
		"a list of a namespace":         {AnnotationAuxiliary, "log", "", "log"},
		"a list of both":                {AnnotationRestartAnnotations, "a", "b", "b"},
		"a list that is not valid":      {AnnotationAuxiliary, "log", "Log", "log"},
		"a selector":                    {AnnotationUpdateLast, "role=leader", "role=", "role=leader"},
		"a key":                         {AnnotationUpdateByTopology, "zone", "a b", "zone"},
		"hooks":                         {AnnotationPreRestartHooks, "lb", "-", "lb"},
		"a list whose flaw is told":     {AnnotationInPlaceAnnotations, "a", "*", "*"},
		"a window that is not valid":    {AnnotationMaintenanceWindow, "always", "never", "never"},
		"a partition that is not valid": {AnnotationPartition, "0", "half", "half"},
	} {
		workload := map[string]string{}
		if test.workload != "" {
			workload[test.key] = test.workload
		}
		if got := InForce(map[string]string{test.key: test.namespace}, workload)[test.key]; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
