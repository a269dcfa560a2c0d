package simulation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/readiness"
)

const shutMessage = `the status of pod readiness gate "stayput.dev/serving" is not "True", but False`

// behindGate returns a pod that was patched behind its closed gate, and is reported with its new container.
func behindGate(changes ...func(*corev1.Pod)) *corev1.Pod {
	r := fixture(1, app{image: "v2"})
	pod := podOf(r, "p", replicaSetOf(r, "b", app{image: "v2"}, 1), drained)
	conditions.Condition(pod, inplace.ConditionServing).ObservedGeneration = 1
	conditions.Condition(pod, corev1.PodReady).Message = shutMessage
	pod.Generation, pod.Status.ObservedGeneration = 2, 2
	moved := readiness.Move{Hash: "b", Generation: 2,
		Containers: map[string]readiness.MovedContainer{"app": {Image: "v2", ImageID: "sha256:v1", ContainerID: "old"}}}
	pod.Annotations = map[string]string{inplace.AnnotationMove: moved.String()}
	pod.Status.ContainerStatuses[0].State = runningSince(start.Add(-time.Second))
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func justCreated(pod *corev1.Pod) {
	pod.Annotations, pod.Generation, pod.Status.Conditions = nil, 1, nil
	conditionIs(corev1.ContainersReady, corev1.ConditionFalse)(pod)
	conditionIs(corev1.PodReady, corev1.ConditionFalse)(pod)
}

// probed gives the container probes. The container was restarted that long before it was reported ready.
func probed(startup *corev1.Probe, readiness *corev1.Probe, before time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		conditionIs(inplace.ConditionServing, corev1.ConditionTrue)(pod)
		pod.Spec.Containers[0].StartupProbe, pod.Spec.Containers[0].ReadinessProbe = startup, readiness
		status := &pod.Status.ContainerStatuses[0]
		status.RestartCount = 1
		status.State = runningSince(conditions.Condition(pod, corev1.ContainersReady).LastTransitionTime.Add(-before))
	}
}

func TestStoredConditions(t *testing.T) {
	unopened := func(pod *corev1.Pod) { conditions.Condition(pod, corev1.PodReady).Status = corev1.ConditionTrue }
	old := func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].ContainerID = "old" }
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
			[]func(*corev1.Pod){conditionIs(inplace.ConditionServing, isTrue)}, isTrue, isTrue},
		"Stayput opens, and the containers are not ready": {readiness.OwnWriter,
			[]func(*corev1.Pod){conditionIs(inplace.ConditionServing, isTrue), unready}, isTrue, isFalse},
		"the next update has closed it": {readiness.KubeletWriter,
			[]func(*corev1.Pod){func(p *corev1.Pod) { conditions.Condition(p, inplace.ConditionServing).ObservedGeneration = 2 }}, isFalse, isFalse},
		"it is a surge pod to remove": {readiness.KubeletWriter,
			[]func(*corev1.Pod){func(p *corev1.Pod) { p.Annotations[inplace.AnnotationSurgePod] = "true" }}, isFalse, isFalse},
		"the first report of a new pod": {readiness.KubeletWriter, []func(*corev1.Pod){justCreated}, isTrue, isFalse},
		"a pod without the gate":        {readiness.KubeletWriter, []func(*corev1.Pod){ungated}, "", isFalse},
		"no probes":                     {readiness.KubeletWriter, []func(*corev1.Pod){probed(nil, nil, 0)}, isTrue, isTrue},
		"a readiness probe": {readiness.KubeletWriter, []func(*corev1.Pod){probed(nil, every10s, 0)}, isTrue,
			isTrue},
		"a startup probe that may not have run": {readiness.KubeletWriter, []func(*corev1.Pod){probed(every10s, nil, 14*time.Second)},
			isTrue, isFalse},
		"both, and only the other has run": {readiness.KubeletWriter, []func(*corev1.Pod){probed(every10s, every10s, time.Second)},
			isTrue, isFalse},
		"both, and both have run": {readiness.KubeletWriter,
			[]func(*corev1.Pod){probed(every10s, every10s, 15*time.Second)}, isTrue, isTrue},
		"a restart that ContainersReady does not show": {readiness.KubeletWriter, []func(*corev1.Pod){probed(every10s, nil, -time.Minute)},
			isTrue, isFalse},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			sent := behindGate(c.change...)
			stored := sent.DeepCopy()
			stored.Status.Conditions = readiness.StoredConditions(sent, sent, c.writer)
			if got := conditionStatus(stored, inplace.ConditionServing); got != c.gate {
				t.Errorf("the gate is %q, want %q", got, c.gate)
			}
			if got := conditionStatus(stored, corev1.PodReady); got != c.ready {
				t.Errorf("Ready is %q, want %q", got, c.ready)
			}
		})
	}
}

func conditionStatus(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	if c := conditions.Condition(pod, kind); c != nil {
		return c.Status
	}
	return ""
}

// TestReadySaysWhatTheKubeletExpects: another message at closing, or none at opening, costs a second or more.
func TestReadySaysWhatTheKubeletExpects(t *testing.T) {
	closing := behindGate(func(pod *corev1.Pod) { pod.Annotations = nil })
	*conditions.Condition(closing, corev1.PodReady) = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	closed := behindGate()
	closed.Status.Conditions = readiness.StoredConditions(closing, closing, readiness.OwnWriter)
	if c := conditions.Condition(closed, corev1.PodReady); c.Reason != readiness.ReasonGatesNotReady || c.Message != shutMessage {
		t.Errorf("closed: %+v", c)
	}
	closing.Spec.ReadinessGates = append(closing.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: "example.com/lb"})
	closed.Status.Conditions = readiness.StoredConditions(closing, closing, readiness.OwnWriter)
	if c := conditions.Condition(closed,
		corev1.PodReady); c.Message != shutMessage+`, corresponding condition of pod readiness gate "example.com/lb" does not exist.` {
		t.Errorf("closed, and another gate, too: %+v", c)
	}
	opened := behindGate()
	opened.Status.Conditions = readiness.StoredConditions(opened, opened, readiness.KubeletWriter)
	if c := conditions.Condition(opened, corev1.PodReady); c.Reason != "" || c.Message == "" {
		t.Errorf("opened: %+v", c)
	}
}

// TestReadyIsAsOldAsItIs: minReadySeconds count from when all containers ran, and go on when the kubelet reports Ready later.
func TestReadyIsAsOldAsItIs(t *testing.T) {
	before := behindGate()
	opened := before.DeepCopy()
	opened.Status.Conditions = readiness.StoredConditions(before, before, readiness.KubeletWriter)
	at := conditions.Condition(opened, corev1.PodReady).LastTransitionTime
	if want := metav1.NewTime(start.Add(-time.Second)); !at.Equal(&want) {
		t.Errorf("Ready since %s, although the container runs since %s", at, want)
	}
	told := opened.DeepCopy()
	*conditions.Condition(told, corev1.PodReady) = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(start)}
	told.Status.Conditions = readiness.StoredConditions(opened, told, readiness.KubeletWriter)
	if c := conditions.Condition(told, corev1.PodReady); !c.LastTransitionTime.Equal(&at) || c.Message != "" {
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
		if got := readiness.WriterOf(readiness.UserIn("stayput-system"), c.user, c.groups, c.node); got != c.want {
			t.Errorf("%s %v on %q: %d, want %d", c.user, c.groups, c.node, got, c.want)
		}
	}
}
