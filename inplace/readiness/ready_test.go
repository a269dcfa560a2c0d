package readiness_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

func justCreated(pod *corev1.Pod) {
	pod.Annotations, pod.Generation, pod.Status.Conditions = nil, 1, nil
	fixture.ConditionIs(corev1.ContainersReady, corev1.ConditionFalse)(pod)
	fixture.ConditionIs(corev1.PodReady, corev1.ConditionFalse)(pod)
}

func TestStoredConditions(t *testing.T) {
	unopened := func(pod *corev1.Pod) { apps.Condition(pod, corev1.PodReady).Status = corev1.ConditionTrue }
	old := func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].ContainerID = "old" }
	unchanged := func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[0].Image, pod.Status.ContainerStatuses[0].ImageID = "v1", "sha256:v1"
	}
	stopping := func(pod *corev1.Pod) {
		apps.Condition(pod, inplace.ConditionServing).Reason = readiness.ReasonRestarting
	}
	patched := func(pod *corev1.Pod) { pod.Generation++ }
	unmarked := func(pod *corev1.Pod) { pod.Annotations = nil }
	every10s := &corev1.Probe{PeriodSeconds: 10}
	isTrue, isFalse := corev1.ConditionTrue, corev1.ConditionFalse
	cases := map[string]struct {
		writer      readiness.Writer
		change      []func(*corev1.Pod)
		gate, ready corev1.ConditionStatus
	}{
		"a restart is reported":            {readiness.KubeletWriter, nil, isTrue, isTrue},
		"by another client":                {readiness.OtherWriter, nil, isFalse, isFalse},
		"by Stayput, which decides itself": {readiness.OwnWriter, nil, isFalse, isFalse},
		"the old container still runs":     {readiness.KubeletWriter, []func(*corev1.Pod){old}, isFalse, isFalse},
		"the patch is not seen": {readiness.KubeletWriter,
			[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.ObservedGeneration = 1 }}, isFalse, isFalse},
		"a kubelet that does not know of the gate": {readiness.KubeletWriter, []func(*corev1.Pod){old, unopened}, isFalse, isFalse},
		"Stayput closes": {readiness.OwnWriter, []func(*corev1.Pod){unopened}, isFalse, isFalse},
		"Stayput opens": {readiness.OwnWriter,
			[]func(*corev1.Pod){fixture.ConditionIs(inplace.ConditionServing, isTrue)}, isTrue, isTrue},
		"Stayput opens, and the containers are not ready": {readiness.OwnWriter,
			[]func(*corev1.Pod){fixture.ConditionIs(inplace.ConditionServing, isTrue), fixture.Unready}, isTrue, isFalse},
		"the next update has closed it": {readiness.KubeletWriter,
			[]func(*corev1.Pod){func(p *corev1.Pod) { apps.Condition(p, inplace.ConditionServing).ObservedGeneration = 2 }}, isFalse, isFalse},
		"it is a surge pod to remove": {readiness.KubeletWriter,
			[]func(*corev1.Pod){func(p *corev1.Pod) { p.Annotations[inplace.AnnotationSurgePod] = "true" }}, isFalse, isFalse},
		"a container that restarted unchanged": {readiness.KubeletWriter, []func(*corev1.Pod){unchanged}, isFalse, isFalse},
		"after its patch, and the old container still runs": {readiness.KubeletWriter,
			[]func(*corev1.Pod){stopping, old}, isFalse, isFalse},
		"after its patch, and a restart is reported": {readiness.KubeletWriter, []func(*corev1.Pod){stopping}, isTrue, isTrue},
		"after its patch, and restarted unchanged":   {readiness.KubeletWriter, []func(*corev1.Pod){stopping, unchanged}, isTrue, isTrue},
		"after its patch, and patched by a user":     {readiness.KubeletWriter, []func(*corev1.Pod){stopping, old, patched}, isTrue, isTrue},
		"after its patch, and its mark is gone":      {readiness.KubeletWriter, []func(*corev1.Pod){stopping, unmarked}, isTrue, isTrue},
		"the first report of a new pod":              {readiness.KubeletWriter, []func(*corev1.Pod){justCreated}, isTrue, isFalse},
		"a pod without the gate":                     {readiness.KubeletWriter, []func(*corev1.Pod){fixture.Ungated}, "", isFalse},
		"no probes":                                  {readiness.KubeletWriter, []func(*corev1.Pod){fixture.Probed(nil, nil, 0)}, isTrue, isTrue},
		"a readiness probe": {readiness.KubeletWriter, []func(*corev1.Pod){fixture.Probed(nil, every10s, 0)}, isTrue,
			isTrue},
		"a startup probe that may not have run": {readiness.KubeletWriter, []func(*corev1.Pod){fixture.Probed(every10s, nil, 14*time.Second)},
			isTrue, isFalse},
		"both, and only the other has run": {readiness.KubeletWriter, []func(*corev1.Pod){fixture.Probed(every10s, every10s, time.Second)},
			isTrue, isFalse},
		"both, and both have run": {readiness.KubeletWriter,
			[]func(*corev1.Pod){fixture.Probed(every10s, every10s, 15*time.Second)}, isTrue, isTrue},
		"a restart that ContainersReady does not show": {readiness.KubeletWriter,
			[]func(*corev1.Pod){fixture.Probed(every10s, nil, -time.Minute)},
			isTrue, isFalse},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			sent := fixture.BehindGate(c.change...)
			stored := sent.DeepCopy()
			stored.Status.Conditions = readiness.StoredConditions(sent, sent, c.writer)
			if got := fixture.ConditionStatus(stored, inplace.ConditionServing); got != c.gate {
				t.Errorf("the gate is %q, want %q", got, c.gate)
			}
			if got := fixture.ConditionStatus(stored, corev1.PodReady); got != c.ready {
				t.Errorf("Ready is %q, want %q", got, c.ready)
			}
		})
	}
}

// TestReadySaysWhatTheKubeletExpects: another message at closing, or none at opening, costs a second or more.
func TestReadySaysWhatTheKubeletExpects(t *testing.T) {
	closing := fixture.BehindGate(func(pod *corev1.Pod) { pod.Annotations = nil })
	*apps.Condition(closing, corev1.PodReady) = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	closed := fixture.BehindGate()
	closed.Status.Conditions = readiness.StoredConditions(closing, closing, readiness.OwnWriter)
	if c := apps.Condition(closed, corev1.PodReady); c.Reason != readiness.ReasonGatesNotReady || c.Message != fixture.ShutMessage {
		t.Errorf("closed: %+v", c)
	}
	closing.Spec.ReadinessGates = append(closing.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: "example.com/lb"})
	closed.Status.Conditions = readiness.StoredConditions(closing, closing, readiness.OwnWriter)
	if c := apps.Condition(closed,
		corev1.PodReady); c.Message != fixture.ShutMessage+`, corresponding condition of pod readiness gate "example.com/lb" does not exist.` {
		t.Errorf("closed, and another gate, too: %+v", c)
	}
	opened := fixture.BehindGate()
	opened.Status.Conditions = readiness.StoredConditions(opened, opened, readiness.KubeletWriter)
	if c := apps.Condition(opened, corev1.PodReady); c.Reason != "" || c.Message == "" {
		t.Errorf("opened: %+v", c)
	}
}

// TestReadyIsAsOldAsItIs: minReadySeconds count from when all containers ran, and go on when the kubelet reports Ready later.
func TestReadyIsAsOldAsItIs(t *testing.T) {
	before := fixture.BehindGate()
	opened := before.DeepCopy()
	opened.Status.Conditions = readiness.StoredConditions(before, before, readiness.KubeletWriter)
	at := apps.Condition(opened, corev1.PodReady).LastTransitionTime
	if want := metav1.NewTime(fixture.Start.Add(-time.Second)); !at.Equal(&want) {
		t.Errorf("Ready since %s, although the container runs since %s", at, want)
	}
	told := opened.DeepCopy()
	*apps.Condition(told, corev1.PodReady) = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(fixture.Start)}
	told.Status.Conditions = readiness.StoredConditions(opened, told, readiness.KubeletWriter)
	if c := apps.Condition(told, corev1.PodReady); !c.LastTransitionTime.Equal(&at) || c.Message != "" {
		t.Errorf("the kubelet reports the same: %+v", c)
	}
}

func TestWriterOf(t *testing.T) {
	nodes := []string{"system:nodes", "system:authenticated"}
	for _, c := range []struct {
		user   string
		groups []string
		node   string
		want   readiness.Writer
	}{
		{"system:node:a", nodes, "a", readiness.KubeletWriter},
		{"system:node:a", nodes, "b", readiness.OtherWriter},
		{"system:node:a", nil, "a", readiness.OtherWriter},
		{"system:node:", nodes, "", readiness.OtherWriter},
		{"system:serviceaccount:stayput-system:stayput", nil, "a", readiness.OwnWriter},
		{"system:serviceaccount:shop:stayput", nil, "a", readiness.OtherWriter},
	} {
		if got := readiness.WriterOf(readiness.UserOf("stayput-system", readiness.ServiceAccount), c.user, c.groups, c.node); got != c.want {
			t.Errorf("%s %v on %q: %d, want %d", c.user, c.groups, c.node, got, c.want)
		}
	}
}
