package inplace

import (
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
		"no labels":      {want: defaults},
		"on a namespace": {namespace: map[string]string{LabelDrain: "500ms"}, want: with(func(s *Settings) { s.Drain = 500 * time.Millisecond })},
		"on a workload": {
			namespace: map[string]string{LabelDrain: "5s", LabelSurge: "true", LabelPrePullParallelism: "3"},
			workload:  map[string]string{LabelDrain: "0", LabelSurge: "false", LabelPrePullParallelism: "0", LabelRestart: "in-place"},
			want:      Settings{Surge: SurgeNever, Restart: true, PreRestartTimeout: 10 * time.Minute},
		},
		"what does not parse counts as absent": {
			namespace: map[string]string{LabelDrain: "1m"},
			workload:  map[string]string{LabelDrain: "soon", LabelSurge: "yes", LabelPrePullParallelism: "-1", LabelRestart: "true"},
			want:      with(func(s *Settings) { s.Drain = time.Minute }),
		},
		"out of bounds": {
			namespace: map[string]string{LabelDrain: "1h", LabelPrePullParallelism: "1001"},
			want:      defaults,
		},
		"resize": {namespace: map[string]string{LabelResize: "true"}, workload: map[string]string{LabelResize: "false"},
			want: with(func(s *Settings) { s.Resize = ResizeNone })},
		"resize of a namespace": {namespace: map[string]string{LabelResize: "true"}, workload: map[string]string{LabelResize: "yes"},
			want: with(func(s *Settings) { s.Resize = ResizeAll })},
		"surge pods of a namespace": {namespace: map[string]string{LabelSurge: "always"}, workload: map[string]string{LabelSurge: "Always"},
			want: with(func(s *Settings) { s.Surge = SurgeAlways })},
		"init containers": {namespace: map[string]string{LabelInitContainers: "native"},
			want: with(func(s *Settings) { s.InitContainers = true })},
		"init containers of a workload": {namespace: map[string]string{LabelInitContainers: "native"},
			workload: map[string]string{LabelInitContainers: "in-place"}, want: defaults},
		"PodDisruptionBudgets of a namespace": {namespace: map[string]string{LabelDisruptionBudgets: "respect"},
			want: with(func(s *Settings) { s.DisruptionBudgets = true })},
		"PodDisruptionBudgets of a workload": {namespace: map[string]string{LabelDisruptionBudgets: "respect"},
			workload: map[string]string{LabelDisruptionBudgets: "ignore"}, want: defaults},
		"PodDisruptionBudgets with another value": {namespace: map[string]string{LabelDisruptionBudgets: "respect"},
			workload: map[string]string{LabelDisruptionBudgets: "true"}, want: with(func(s *Settings) { s.DisruptionBudgets = true })},
		"StatefulSets of a namespace": {namespace: map[string]string{LabelStatefulSets: "in-place"},
			want: with(func(s *Settings) { s.StatefulSets = true })},
		"StatefulSets with another value": {workload: map[string]string{LabelStatefulSets: "true"}, want: defaults},
		"hooks of a namespace, of a workload": {namespace: map[string]string{LabelPreRestartTimeout: "1h30m"},
			workload: map[string]string{LabelPreRestartTimeout: "0"}, want: with(func(s *Settings) { s.PreRestartTimeout = 0 })},
		"hooks for too long": {namespace: map[string]string{LabelPreRestartTimeout: "1h30m"},
			workload: map[string]string{LabelPreRestartTimeout: "3h"}, want: with(func(s *Settings) { s.PreRestartTimeout = 90 * time.Minute })},
		"unreachable nodes": {namespace: map[string]string{LabelUnreachableNodes: "skip"},
			want: with(func(s *Settings) { s.SkipsUnreachable = true })},
		"unreachable nodes of a workload": {namespace: map[string]string{LabelUnreachableNodes: "skip"},
			workload: map[string]string{LabelUnreachableNodes: "wait"}, want: defaults},
		"negative": {namespace: map[string]string{LabelDrain: "-1s"}, want: defaults},
	} {
		if got := SettingsOf(test.namespace, test.workload); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
