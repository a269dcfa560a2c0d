package webhook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// The tests of this file take place on the first day of 2000, with which the clock of synctest begins. A pod of generation 4 was taken out
// of service at 11:59:50, until 12:00:30 at most. Now it is 12:00:00.
const taken = "False UpdatingInPlace 11:59:50"

// These are marks of the pod: what its container was patched to after and before it was taken out of service.
const (
	patched = `{"hash":"2","generation":5,"containers":` +
		`{"app":{"image":"web:v2","imageID":"1","containerID":"old","at":"2000-01-01T11:59:55Z"}}}`
	earlier = `{"hash":"1","generation":4,"containers":` +
		`{"app":{"image":"web:v1","imageID":"0","containerID":"older","at":"2000-01-01T11:00:00Z"}}}`
)

// atNoon calls the test when it is 12:00:00.
func atNoon(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour)
		test(t)
	})
}

func onNodeOne(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName, pod.Spec.Containers = "one", []corev1.Container{{Name: "app", Image: "web:v1"}}
	return pod
}

// reports returns the pod with that mark. Its kubelet has seen that generation, and reports this Ready and this container.
func reports(t *testing.T, mark, ready string, seen int64, container string) *corev1.Pod {
	t.Helper()
	pod := onNodeOne(pod(revision(t, "web-1", v1Template, "1")))
	pod.Generation, pod.Annotations = 4, map[string]string{inplace.AnnotationMove: mark}
	if mark == patched {
		pod.Generation = 5
	}
	pod.Status.ObservedGeneration = seen
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{containers[container]}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, readyOf(t, ready)}
	return pod
}

// containers are the container app, as a kubelet reports it.
var containers = map[string]corev1.ContainerStatus{
	"old":     {Name: "app", Image: "web:v1", ImageID: "1", ContainerID: "old", Ready: true, State: inRunning},
	"stopped": {Name: "app", Image: "web:v1", ImageID: "1", ContainerID: "old"},
	"new":     {Name: "app", Image: "web:v2", ImageID: "2", ContainerID: "new", Ready: true, State: inRunning},
}

var inRunning = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

// readyOf returns the condition Ready with that status, reason and time of the last transition.
func readyOf(t *testing.T, text string) corev1.PodCondition {
	t.Helper()
	parts := strings.Fields(text)
	at, err := time.Parse(time.TimeOnly, parts[len(parts)-1])
	if err != nil {
		t.Fatal(err)
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionStatus(parts[0])}
	ready.LastTransitionTime = metav1.NewTime(at.AddDate(2000, 0, 0))
	if len(parts) == 3 {
		ready.Reason = parts[1]
	}
	if ready.Reason == "UpdatingInPlace" {
		ready.ObservedGeneration = 4
		ready.Message = "Stayput keeps the pod out of service before its containers restart, at most until 2000-01-01T12:00:30Z"
	}
	return ready
}

// textOf is the reverse of readyOf.
func textOf(ready *corev1.PodCondition) string {
	parts := []string{string(ready.Status), ready.Reason, ready.LastTransitionTime.UTC().Format(time.TimeOnly)}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// report returns the request by which the pod's kubelet changes its status.
func report(t *testing.T, old, sent *corev1.Pod) admission.Request {
	t.Helper()
	req := request(t, "system:node:one", admissionv1.Update, sent, old)
	req.SubResource, req.UserInfo.Groups = "status", []string{"system:nodes"}
	return req
}

func TestReportsOfKubelets(t *testing.T) {
	for name, test := range map[string]struct {
		mark   string
		old    string // the stored Ready
		sent   string // the Ready that the kubelet reports
		seen   int64  // the generation that the kubelet has seen
		runs   string // the container that the kubelet reports
		after  time.Duration
		stored string // the Ready that is stored then
	}{
		"it drains":                          {"", taken, "True 09:00:00", 4, "old", 0, taken},
		"it drains, patched before":          {earlier, taken, "True 09:00:00", 4, "old", 0, taken},
		"it drains, and its container fails": {"", taken, "False ContainersNotReady 11:59:58", 4, "stopped", 0, taken},
		"it drains, for the last second":     {"", taken, "True 09:00:00", 4, "old", 29 * time.Second, taken},
		"it was not patched in time":         {"", taken, "True 09:00:00", 4, "old", 31 * time.Second, "True 12:00:31"},
		"its kubelet has not seen the patch": {patched, taken, "True 09:00:00", 4, "old", time.Hour, taken},
		"its kubelet is about to kill":       {patched, taken, "True 09:00:00", 5, "old", 0, taken},
		"the old container stops slowly":     {patched, taken, "True 09:00:00", 5, "old", time.Hour, taken},
		"the old container has stopped": {
			patched, taken, "False ContainersNotReady 11:59:59", 5, "stopped", 0, "False ContainersNotReady 11:59:59"},
		"the new container is ready":           {patched, taken, "True 11:59:59", 5, "new", 0, "True 11:59:59"},
		"it is ready, and always was":          {patched, taken, "True 09:00:00", 5, "new", 0, "True 12:00:00"},
		"the new one, but of no seen patch":    {patched, taken, "True 09:00:00", 4, "new", 0, taken},
		"it is not out of service":             {patched, "True 09:00:00", "True 09:00:00", 5, "old", 0, "True 09:00:00"},
		"it is not Ready for another reason":   {patched, "False ContainersNotReady 11:59:50", "True 11:59:40", 5, "old", 0, "True 11:59:40"},
		"its kubelet leaves it out of service": {"", taken, taken, 4, "old", 0, taken},
	} {
		t.Run(name, func(t *testing.T) {
			atNoon(t, func(t *testing.T) {
				time.Sleep(test.after)
				old, sent := reports(t, test.mark, test.old, 4, "old"), reports(t, test.mark, test.sent, test.seen, test.runs)
				expectStored(t, report(t, old, sent), sent, test.stored)
			})
		})
	}
}

// expectStored expects that what was sent is stored with that Ready, and without another change.
func expectStored(t *testing.T, req admission.Request, sent *corev1.Pod, ready string) {
	t.Helper()
	h := handlers(t, broken(t), broken(t)) // the webhook reads nothing but the request
	response := h.handle(t.Context(), req, mutatePodStatus)
	stored := afterPatch(t, sent, response)
	got := apps.Condition(stored, corev1.PodReady)
	if text := textOf(got); text != ready {
		t.Errorf("stored is Ready %q, want %q", text, ready)
	}
	if text := textOf(apps.Condition(sent, corev1.PodReady)); len(response.Patches) > 0 == (text == ready) {
		t.Errorf("%d operations make %q of %q", len(response.Patches), ready, text)
	}
	*apps.Condition(sent, corev1.PodReady) = *got
	if !equality.Semantic.DeepEqual(stored, sent) {
		t.Errorf("stored is %+v, want %+v", stored, sent)
	}
}

// TestWhatIsStoredAsItIsSent: each of these writes puts a pod back into service that drains.
func TestWhatIsStoredAsItIsSent(t *testing.T) {
	for name, change := range map[string]func(req *admission.Request, old, sent *corev1.Pod){
		"a pod without a controller":      func(_ *admission.Request, _, sent *corev1.Pod) { sent.OwnerReferences = nil },
		"a condition without a time":      func(_ *admission.Request, old, _ *corev1.Pod) { old.Status.Conditions[1].Message = "until later" },
		"a controller":                    func(req *admission.Request, _, _ *corev1.Pod) { req.UserInfo.Username = replicaSetController },
		"the kubelet of another node":     func(req *admission.Request, _, _ *corev1.Pod) { req.UserInfo.Username = "system:node:two" },
		"a user by the name of a kubelet": func(req *admission.Request, _, _ *corev1.Pod) { req.UserInfo.Groups = nil },
		"a write that is no report":       func(req *admission.Request, _, _ *corev1.Pod) { req.SubResource = "resize" },
	} {
		t.Run(name, func(t *testing.T) {
			atNoon(t, func(t *testing.T) {
				old, sent := reports(t, "", taken, 4, "old"), reports(t, "", "True 11:59:55", 4, "old")
				req := report(t, old, sent)
				change(&req, old, sent)
				req.Object, req.OldObject = raw(t, sent), raw(t, old)
				expectStored(t, req, sent, "True 11:59:55")
			})
		})
	}
}

// TestReportWithoutReady: the first report of a kubelet may have no condition yet.
func TestReportWithoutReady(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		old, sent := reports(t, "", taken, 4, "old"), reports(t, "", taken, 4, "old")
		sent.Status.Conditions = nil
		h := handlers(t, broken(t), broken(t))
		expectPatch(t, h.handle(t.Context(), report(t, old, sent), mutatePodStatus), "")
	})
}

func TestReportThatDoesNotDecode(t *testing.T) {
	req := report(t, onNodeOne(&corev1.Pod{}), onNodeOne(&corev1.Pod{}))
	req.OldObject.Raw = []byte(`{"status":[]}`)
	h := handlers(t, broken(t), broken(t))
	response := h.handle(t.Context(), req, mutatePodStatus)
	if expectPatch(t, response, ""); len(response.Warnings) == 0 {
		t.Error("no warning says that nothing was decided")
	}
}

// afterPatch returns the pod as it is stored after the answer.
func afterPatch(t *testing.T, sent *corev1.Pod, response admission.Response) *corev1.Pod {
	t.Helper()
	if !response.Allowed || len(response.Patches) == 0 {
		return sent.DeepCopy()
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
