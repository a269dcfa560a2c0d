package webhook

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// reported returns a pod on node one whose containers are ready. Its gate has this status, if there is one.
func reported(t testing.TB, gate ...corev1.ConditionStatus) *corev1.Pod {
	pod := pod(revision(t, "web-1", v1Template, "1"))
	pod.Spec = corev1.PodSpec{NodeName: "one", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}}
	at := metav1.NewTime(time.Unix(1_800_000_000, 0).UTC())
	pod.CreationTimestamp = at
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", LastTransitionTime: at},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
	}
	for _, status := range gate {
		condition := corev1.PodCondition{Type: inplace.ConditionServing, Status: status, LastTransitionTime: at}
		pod.Status.Conditions = append(pod.Status.Conditions, condition)
	}
	return pod
}

// ready makes the pod Ready, as a kubelet reports it that does not know of the gate.
func ready(pod *corev1.Pod) *corev1.Pod {
	pod.Status.Conditions[0].Status, pod.Status.Conditions[0].Reason = corev1.ConditionTrue, ""
	return pod
}

// report returns the request by which that user writes the status of the pod.
func report(t testing.TB, user string, old, sent *corev1.Pod) admission.Request {
	req := request(t, user, admissionv1.Update, sent, old)
	req.SubResource, req.UserInfo.Groups = "status", []string{"system:nodes"}
	return req
}

func TestPodStatus(t *testing.T) {
	const kubelet = "system:node:one"
	stayput := readiness.UserOf(own, "in-place")
	newPod := reported(t)
	newPod.Status = corev1.PodStatus{}
	for name, test := range map[string]struct {
		user        string
		sent        *corev1.Pod
		operations  int
		gate, ready corev1.ConditionStatus
	}{
		"new, with its containers ready":        {kubelet, reported(t), 2, "True", "True"},
		"new, without any condition":            {kubelet, newPod, 1, "True", ""},
		"its gate is open":                      {kubelet, reported(t, "True"), 1, "True", "True"},
		"its gate is closed":                    {kubelet, reported(t, "False"), 0, "False", "False"},
		"its kubelet does not know of the gate": {kubelet, ready(reported(t, "False")), 1, "False", "False"},
		"Stayput closes its gate":               {stayput, ready(reported(t, "False")), 1, "False", "False"},
		"as it should be":                       {kubelet, ready(reported(t, "True")), 0, "True", "True"},
		"another node's kubelet":                {"system:node:two", reported(t), 0, "", "False"},
		"another namespace's service account": {
			readiness.UserOf("shop", "in-place"), ready(reported(t, "False")), 0, "False", "True"},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, broken(t), broken(t)) // the webhook reads nothing but the request
			h.User = stayput
			response := h.handle(context.Background(), report(t, test.user, test.sent, test.sent), h.podGates().mutatePodStatus)
			if len(response.Patches) != test.operations {
				t.Errorf("%d operations, want %d: %v", len(response.Patches), test.operations, response.Patches)
			}
			stored := patched(t, test.sent, response)
			want := test.sent.DeepCopy()
			writer := readiness.WriterOf(stayput, test.user, []string{"system:nodes"}, "one")
			if want.Status.Conditions = readiness.StoredConditions(test.sent, test.sent, writer); !equality.Semantic.DeepEqual(stored, want) {
				t.Errorf("stored is\n%+v\nwant\n%+v", stored.Status, want.Status)
			}
			gate, ready := conditionOf(stored, inplace.ConditionServing), conditionOf(stored, corev1.PodReady)
			if gate != test.gate || ready != test.ready {
				t.Errorf("gate and Ready are %q and %q, want %q and %q", gate, ready, test.gate, test.ready)
			}
		})
	}
}

// TestPodStatusKeepsTimes: Ready keeps its transition time, whatever the kubelet sends.
func TestPodStatusKeepsTimes(t *testing.T) {
	old, sent := ready(reported(t, "True")), ready(reported(t, "True"))
	sent.Status.Conditions[0].LastTransitionTime = metav1.NewTime(old.Status.Conditions[0].LastTransitionTime.Add(time.Second))
	h := handlers(t, broken(t), broken(t))
	response := h.handle(context.Background(), report(t, "system:node:one", old, sent), h.podGates().mutatePodStatus)
	if stored := patched(t, sent, response); !equality.Semantic.DeepEqual(stored, old) {
		t.Errorf("stored is %+v, want %+v", stored.Status, old.Status)
	}
}

func TestPodStatusNotOurs(t *testing.T) {
	another := report(t, "system:node:one", reported(t), reported(t))
	another.SubResource = "resize"
	creation := report(t, "system:node:one", nil, reported(t))
	creation.Operation = admissionv1.Create
	broke := report(t, "system:node:one", reported(t), reported(t))
	broke.OldObject.Raw = []byte(`{"status":[]}`)
	for name, req := range map[string]admission.Request{"another subresource": another, "a creation": creation, "not a pod": broke} {
		h := handlers(t, broken(t), broken(t))
		response := h.handle(context.Background(), req, h.podGates().mutatePodStatus)
		expectPatch(t, response, "")
		if warned := len(response.Warnings) > 0; warned != (name == "not a pod") {
			t.Errorf("%s: warnings are %v", name, response.Warnings)
		}
	}
}

// patched returns the pod as it is stored after the answer.
func patched(t *testing.T, sent *corev1.Pod, response admission.Response) *corev1.Pod {
	t.Helper()
	if !response.Allowed || len(response.Patches) == 0 {
		return sent
	}
	operations, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := decoded.Apply(raw(t, sent).Raw)
	if err != nil {
		t.Fatalf("%v: %s", err, operations)
	}
	return parse[corev1.Pod](t, string(stored))
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// TestCrowdedPodsAreNotSearched: readiness gates are searched among the conditions, and containers among their statuses. 60,000 of each
// took a minute and a half.
func TestCrowdedPodsAreNotSearched(t *testing.T) {
	crowd := map[string]func(pod *corev1.Pod){
		"101 readiness gates": func(pod *corev1.Pod) { pod.Spec.ReadinessGates = make([]corev1.PodReadinessGate, 101) },
		"101 conditions":      func(pod *corev1.Pod) { pod.Status.Conditions = make([]corev1.PodCondition, 101) },
		"101 containers":      func(pod *corev1.Pod) { pod.Spec.Containers = make([]corev1.Container, 101) },
		"101 statuses of containers": func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = make([]corev1.ContainerStatus, 50), make([]corev1.ContainerStatus, 51)
		},
	}
	for with, add := range crowd {
		pod := &corev1.Pod{}
		add(pod)
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		_, err = decodePod(admission.Request{}, runtime.RawExtension{Raw: raw}, "status")
		if err == nil || !strings.Contains(err.Error(), with) {
			t.Errorf("a pod with %s is read: %v", with, err)
		}
	}
}
