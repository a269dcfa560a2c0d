package cel

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
)

var (
	noon   = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	serves = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}
)

// servingPod returns a pod whose containers are ready, and which has two readiness gates of its user.
func servingPod() *corev1.Pod {
	pod := podWithSidecar()
	pod.Generation = 3
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}, {ConditionType: "example.com/dns"}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: "example.com/lb", Status: corev1.ConditionTrue}, serves,
		{Type: "example.com/dns", Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Ready: true}}
	return pod
}

func withReady(ready corev1.PodCondition) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Conditions = readiness.WithCondition(pod.Status.Conditions, ready) }
}

// takenOut is what Stayput writes to take the pod out of service.
func takenOut(pod *corev1.Pod) {
	withReady(readiness.TakenOutUntil(pod, noon.Add(time.Minute), noon))(pod)
}

// putBack is what Stayput writes to put the pod back.
func putBack(pod *corev1.Pod) { withReady(readiness.PutBack(pod, noon))(pod) }

// TestOwnReady checks that Stayput may take pods out of service and put them back, and may write nothing else into the status of a pod.
func TestOwnReady(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-ready")
	readyIs := func(change func(*corev1.PodCondition)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			takenOut(pod)
			change(apps.Condition(pod, corev1.PodReady))
		}
	}
	message := func(text string) func(*corev1.Pod) { return readyIs(func(c *corev1.PodCondition) { c.Message = text }) }
	says := readiness.TakenOutUntil(&corev1.Pod{}, noon, noon).Message
	nothing := func(*corev1.Pod) {}
	const forms, where, other, metadata = "as far as their containers", "in labelled namespaces", "but the condition Ready", "no metadata"
	unlabelled := &corev1.Namespace{}
	for name, test := range map[string]struct {
		in            *corev1.Namespace
		before, after func(*corev1.Pod)
		want          string
	}{
		"no change": {unlabelled, nothing, nothing, ""},
		"taken out": {labelled, nothing, takenOut, ""},
		"taken out again": {labelled, takenOut, readyIs(func(c *corev1.PodCondition) {
			c.LastTransitionTime = metav1.NewTime(noon.Add(time.Second))
		}), ""},
		"put back":                 {labelled, takenOut, putBack, ""},
		"put back, no label":       {unlabelled, takenOut, putBack, ""},
		"taken out, no label":      {unlabelled, nothing, takenOut, where},
		"taken out, no controller": {labelled, func(pod *corev1.Pod) { pod.OwnerReferences = nil }, takenOut, where},
		"taken out, of a Job": {labelled, func(pod *corev1.Pod) {
			pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = "batch/v1", "Job"
		}, takenOut, where},
		"another message":   {labelled, nothing, message("x"), forms},
		"a longer message":  {labelled, nothing, message(says + " x"), forms},
		"a message before":  {labelled, nothing, message("x\n" + says), forms},
		"a message behind":  {labelled, nothing, message(says + "\nx"), forms},
		"no time":           {labelled, nothing, message(says[:len(says)-20] + strings.Repeat("x", 20)), forms},
		"Unknown":           {labelled, nothing, readyIs(func(c *corev1.PodCondition) { c.Status = corev1.ConditionUnknown }), forms},
		"another reason":    {labelled, nothing, readyIs(func(c *corev1.PodCondition) { c.Reason = "x" }), forms},
		"Ready, our reason": {labelled, nothing, readyIs(func(c *corev1.PodCondition) { c.Status = corev1.ConditionTrue }), forms},
		"not Ready":         {labelled, nothing, withReady(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}), forms},
		"Ready, containers are not": {labelled, func(pod *corev1.Pod) {
			takenOut(pod)
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
		}, withReady(serves), forms},
		"Ready, a gate is shut": {labelled, func(pod *corev1.Pod) {
			takenOut(pod)
			pod.Status.Conditions[1].Status = corev1.ConditionFalse
		}, withReady(serves), forms},
		"Ready, with a message": {labelled, takenOut, withReady(corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, Message: "x"}), forms},
		"Ready, but not taken out": {labelled, withReady(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}),
			withReady(serves), forms},
		"Ready removed": {labelled, nothing, func(pod *corev1.Pod) {
			pod.Status.Conditions = slices.Delete(pod.Status.Conditions, 2, 3)
		}, forms},
		"Ready twice": {labelled, nothing, func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, readiness.TakenOutUntil(pod, noon, noon))
		}, forms},
		"another condition": {labelled, nothing, func(pod *corev1.Pod) {
			takenOut(pod)
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
		}, other},
		"a condition more": {labelled, nothing, func(pod *corev1.Pod) {
			takenOut(pod)
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "x", Status: corev1.ConditionTrue})
		}, other},
		"a user's gate": {labelled, func(pod *corev1.Pod) { pod.Status.Conditions[1].Status = corev1.ConditionFalse },
			func(pod *corev1.Pod) { pod.Status.Conditions[1].Status = corev1.ConditionTrue }, other},
		"phase":           {labelled, nothing, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, other},
		"containers":      {labelled, nothing, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Ready = false }, other},
		"generation seen": {labelled, nothing, func(pod *corev1.Pod) { pod.Status.ObservedGeneration = 9 }, other},
		"a mark":          {labelled, nothing, func(pod *corev1.Pod) { pod.Annotations = map[string]string{"stayput.dev/move": "{}"} }, metadata},
		"a label":         {labelled, nothing, func(pod *corev1.Pod) { pod.Labels = nil }, metadata},
		"a finalizer":     {labelled, nothing, func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/keep"} }, metadata},
	} {
		old := servingPod()
		test.before(old)
		sent := old.DeepCopy()
		test.after(sent)
		if got := policy.of(old, sent, test.in, byStayput); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestOwnReadyIsTheKubelets checks that Stayput may put a pod back with the Ready that the program writes, whatever its containers and
// gates say, and with no other.
func TestOwnReadyIsTheKubelets(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-ready")
	said := map[string]bool{}
	for _, containers := range []corev1.ConditionStatus{"", corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
		for _, lb := range []corev1.ConditionStatus{"", corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
			for _, dns := range []corev1.ConditionStatus{"", corev1.ConditionTrue, corev1.ConditionFalse} {
				old := servingPod()
				takenOut(old)
				old.Status.Conditions[0].Reason, old.Status.Conditions[0].Message = "ContainersNotReady", "containers with unready status: [app]"
				old.Status.Conditions[0].Status, old.Status.Conditions[1].Status, old.Status.Conditions[3].Status = containers, lb, dns
				old.Status.Conditions = slices.DeleteFunc(old.Status.Conditions, func(c corev1.PodCondition) bool { return c.Status == "" })
				sent := old.DeepCopy()
				putBack(sent)
				if why := policy.of(old, sent, labelled, byStayput); why != "" {
					t.Errorf("containers %q, gates %q and %q: %s", containers, lb, dns, why)
				}
				ready := apps.Condition(sent, corev1.PodReady)
				said[fmt.Sprint(ready.Status, ready.Reason)] = true
				ready.Message += "x"
				if policy.of(old, sent, labelled, byStayput) == "" {
					t.Errorf("containers %q, gates %q and %q: it may say %q", containers, lb, dns, ready.Message)
				}
			}
		}
	}
	for _, want := range []string{"True", "False", "FalseContainersNotReady", "UnknownContainersNotReady", "FalseReadinessGatesNotReady"} {
		if !said[want] {
			t.Errorf("%s was not tried: %v", want, said)
		}
	}
}

// TestOwnReadyWithinItsBudget has a pod with more conditions and gates than any. A policy that costs too much would refuse the write.
func TestOwnReadyWithinItsBudget(t *testing.T) {
	policy, old := compileRefusals(t, "../base/own-power.yaml", "stayput-own-ready"), servingPod()
	for i := range 100 {
		gate := corev1.PodConditionType(fmt.Sprintf("%s/gate-%d", strings.Repeat("x", 100), i))
		old.Spec.ReadinessGates = append(old.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
		old.Status.Conditions = append(old.Status.Conditions,
			corev1.PodCondition{Type: gate, Status: corev1.ConditionFalse, Message: strings.Repeat("x", 1<<10)})
	}
	takenOut(old)
	sent := old.DeepCopy()
	putBack(sent)
	if why := policy.of(old, sent, labelled, byStayput); why != "" {
		t.Error(why)
	}
}
