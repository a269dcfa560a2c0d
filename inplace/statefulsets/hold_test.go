package statefulsets_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// TestHoldsDeletion: the StatefulSet controller deletes db-2 in an update of three pods. A code says why it may; empty: it is held.
func TestHoldsDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *fixture.Members, pod *corev1.Pod)
		code   string
	}{
		"untouched": {func(*fixture.Members, *corev1.Pod) {}, ""},
		"in between": {func(_ *fixture.Members, pod *corev1.Pod) {
			pod.Labels[inplace.LabelRevisionHash] = podstate.HashPartial
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "db-2"}.String()}
		}, ""},
		"updated a moment ago": {func(_ *fixture.Members, pod *corev1.Pod) { pod.Labels[inplace.LabelRevisionHash] = "db-2" }, ""},
		"not Ready":            {func(_ *fixture.Members, pod *corev1.Pod) { fixture.Unready(pod) }, ""},
		"below the partition":  {func(m *fixture.Members, _ *corev1.Pod) { fixture.Rolling(3, "")(m) }, ""},
		"failed":               {func(_ *fixture.Members, pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, inplace.CodeHousekeeping},
		"succeeded": {func(_ *fixture.Members, pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodSucceeded
		}, inplace.CodeHousekeeping},
		"not scheduled": {func(_ *fixture.Members, pod *corev1.Pod) { pod.Spec.NodeName = "" }, inplace.CodeHousekeeping},
		"scaled down":   {func(m *fixture.Members, _ *corev1.Pod) { *m.StatefulSet.Spec.Replicas = 2 }, inplace.CodeHousekeeping},
		"the first ordinal is another": {func(m *fixture.Members, _ *corev1.Pod) {
			m.StatefulSet.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 3}
		}, inplace.CodeHousekeeping},
		"OnDelete": {func(m *fixture.Members, _ *corev1.Pod) {
			m.StatefulSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}, inplace.CodeStrategy},
		"a strategy of tomorrow": {func(m *fixture.Members, _ *corev1.Pod) {
			m.StatefulSet.Spec.UpdateStrategy.Type = "Recreate"
		}, inplace.CodeStrategy},
		"its revision is gone": {func(_ *fixture.Members, pod *corev1.Pod) {
			pod.Labels[inplace.LabelRevisionHash] = "db-0"
		}, inplace.CodeRevisionGone},
		"not in place": {func(m *fixture.Members, _ *corev1.Pod) { m.Edit(fixture.App{Image: "v1", Env: "a"}) }, inplace.CodeTemplateField},
		"being deleted": {func(m *fixture.Members, _ *corev1.Pod) {
			m.StatefulSet.DeletionTimestamp = &metav1.Time{Time: fixture.Start}
		}, ""},
		"not asked for": {func(m *fixture.Members, _ *corev1.Pod) { m.Rollout.Seen.Mode = inplace.ModeNotOptedIn }, inplace.CodeMode},
		"fell back": {func(m *fixture.Members, _ *corev1.Pod) {
			m.Fleet.Seen.Fallback = revisions.Fallback{Hash: m.StatefulSet.Spec.Template.Hash(), Code: inplace.CodeRefused}
		}, inplace.CodeFellBack},
		"held for too long": {func(m *fixture.Members, _ *corev1.Pod) {
			m.HeldSince = m.Of().Seen.Now.Add(-2 * inplace.LeaderPatience)
		}, inplace.CodeHoldExpired},
		"edited in the middle of an update": {func(m *fixture.Members, _ *corev1.Pod) {
			m.Fleet.Revisions[1].Labels = map[string]string{inplace.LabelUpdating: inplace.FormatTime(fixture.Start)}
			m.StatefulSet.Spec.Template = fixture.App{Image: "v3"}.Template()
			m.HeldSince = m.Of().Seen.Now.Add(-2 * inplace.LeaderPatience)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3)
			m.Edit(fixture.App{Image: "v2"})
			pod := m.Member(2)
			test.change(m, pod)
			held, why := m.Of().HoldsDeletion(pod)
			if held != (test.code == "") || !held && why.Code != test.code {
				t.Errorf("held is %t, %+v; want %q", held, why, test.code)
			}
		})
	}
}

// TestReplacementsHaveTheirTurn: the pods with env must be replaced, the others are updated in place. It lists which DELETEs pass.
func TestReplacementsHaveTheirTurn(t *testing.T) {
	for name, test := range map[string]struct {
		replaced []int
		change   func(m *fixture.Members)
		pass     map[int]bool
	}{
		"all of them, as natively":            {replaced: []int{2, 1, 0}, pass: map[int]bool{2: true, 1: true, 0: true}},
		"the highest":                         {replaced: []int{2}, pass: map[int]bool{2: true}},
		"one after another":                   {replaced: []int{1}},
		"the highest, and another is missing": {replaced: []int{2}, change: func(m *fixture.Members) { m.Lose(0) }},
		"the highest, and another is not Ready": {replaced: []int{2}, change: func(m *fixture.Members) {
			fixture.Unready(m.Member(0))
		}},
		"one that is not available yet, and that goes before higher ones": {replaced: []int{0}, change: func(m *fixture.Members) {
			fixture.Parallel(m)
			m.StatefulSet.Spec.MinReadySeconds = 10
			apps.Condition(m.Member(0), corev1.PodReady).LastTransitionTime = metav1.NewTime(m.Of().Seen.Now)
			m.StatefulSet.Annotations = map[string]string{inplace.AnnotationUpdateLast: "role=leader"}
			m.Member(1).Labels["role"], m.Member(2).Labels["role"] = "leader", "leader"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3)
			m.Edit(fixture.App{Image: "v1", Env: "a"})
			for _, ordinal := range test.replaced {
				m.Member(ordinal).Labels[inplace.LabelRevisionHash] = "db-2"
			}
			m.StatefulSet.Status.CurrentRevision = "db-1"
			m.Edit(fixture.App{Image: "v2"})
			if test.change != nil {
				test.change(m)
			}
			for _, pod := range m.Of().Seen.Pods {
				if held, why := m.Of().HoldsDeletion(pod); held == test.pass[m.StatefulSet.Ordinal(pod)] {
					t.Errorf("the deletion of %s is held %t: %s", pod.Name, held, why.Message)
				}
			}
		})
	}
}

// TestReplacementIsAskedFor: the StatefulSet controller tries late again what was refused, so it is nudged by a pod when it has its turn.
func TestReplacementIsAskedFor(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	m.Edit(fixture.App{Image: "v1", Env: "a"})
	m.Member(1).Labels[inplace.LabelRevisionHash] = "db-2"
	m.Edit(fixture.App{Image: "v2"})
	m.Once()
	m.Once()
	if m.Member(0).Annotations[inplace.AnnotationNudged]+m.Member(1).Annotations[inplace.AnnotationNudged] == "" {
		t.Errorf("no pod is annotated: %q", m.Steps)
	}
	if m.Member(0).Labels[inplace.LabelRevisionHash] != "db-1" {
		t.Error("db-0 has its turn before db-1 was replaced")
	}
}

func TestHoldsCleanup(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *fixture.Members)
		held   []bool
	}{
		"pods have the first two, the third is the update revision": {func(*fixture.Members) {}, []bool{true, true, true}},
		"no pod has the second": {func(m *fixture.Members) { m.Member(0).Labels[inplace.LabelRevisionHash] = "db-1" }, []bool{true, false, true}},
		"held for too long":     {func(m *fixture.Members) { m.HeldSince = m.Of().Seen.Now.Add(-time.Hour) }, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 2)
			m.Edit(fixture.App{Image: "v2"})
			m.Member(0).Labels[inplace.LabelRevisionHash] = "db-2"
			m.Edit(fixture.App{Image: "v3"})
			test.change(m)
			for i, revision := range m.Of().Revisions {
				if held, why := m.Of().HoldsCleanup(revision); held != test.held[i] {
					t.Errorf("the deletion of %s is held %t: %s", revision.Name, held, why.Message)
				}
			}
		})
	}
}
