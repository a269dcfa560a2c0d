package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

// drained adds a pod whose gate the leader has closed.
func (c *cluster) drained(name, move string) types.NamespacedName {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: name, Annotations: map[string]string{inplace.AnnotationMove: move}},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}},
	}
	if err := c.Create(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
	c.observed(pod, 1, corev1.ConditionTrue)
	return client.ObjectKeyFromObject(pod)
}

// observed has the kubelet report how far it is.
func (c *cluster) observed(pod *corev1.Pod, generation int64, containersReady corev1.ConditionStatus) {
	c.t.Helper()
	pod.Status = corev1.PodStatus{ObservedGeneration: generation, Conditions: []corev1.PodCondition{
		{Type: inplace.ConditionServing, Status: corev1.ConditionFalse},
		{Type: corev1.ContainersReady, Status: containersReady},
	}}
	if err := c.Status().Update(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
}

func TestFarewellOpensWhatTheLeaderClosed(t *testing.T) {
	c := newCluster(t)
	unpatched := c.drained("unpatched", "{}")
	patched := c.drained("patched", `{"hash":"new","generation":2,"containers":{"app":{"image":"app:v2","containerID":"old"}}}`)
	f := &farewell{cached: c, writer: c.writer()}
	pass := func(wantDone, wantUnpatched, wantPatched bool) {
		t.Helper()
		done, err := f.open(t.Context())
		if err != nil || done != wantDone {
			t.Errorf("done %t, error %v; want %t", done, err, wantDone)
		}
		if open := isTrue(c.pod(unpatched), inplace.ConditionServing); open != wantUnpatched {
			t.Errorf("the gate of the pod not patched is open: %t, want %t", open, wantUnpatched)
		}
		if open := isTrue(c.pod(patched), inplace.ConditionServing); open != wantPatched {
			t.Errorf("the gate of the patched pod is open: %t, want %t", open, wantPatched)
		}
	}
	pass(false, true, false) // the kubelet has not acted on the patch
	c.observed(c.pod(patched), 2, corev1.ConditionFalse)
	pass(false, true, true)
	pass(true, true, true)
}

func TestLastWords(t *testing.T) {
	c := newCluster(t)
	born := types.NamespacedName{Namespace: web.Namespace, Name: "born"}
	if err := c.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: born.Namespace, Name: born.Name},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := LastWords(t.Context(), c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
	}
	if !isTrue(c.pod(born), inplace.ConditionServing) {
		t.Error("a gate that nobody had opened was left")
	}
	if c.replicaSet("web-new").Labels[inplace.LabelWoken] == "" {
		t.Error("the native controller was not woken for the update under way")
	}
	r := c.reconciler(nil)
	c.reconcile(r)
	c.reconcile(r)
	if c.replicaSet("web-new").Labels[inplace.LabelWoken] != "" {
		t.Error("the next manager left the label")
	}
}
