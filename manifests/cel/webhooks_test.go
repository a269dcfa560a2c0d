package cel

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

// webhook has the match conditions of a webhook, compiled as in k8s.io/apiserver/pkg/admission/plugin/webhook.
type webhook struct{ matchconditions.Matcher }

func compileWebhook(t *testing.T, name string) webhook {
	t.Helper()
	raw, err := os.ReadFile("../base/webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var configuration admissionv1.ValidatingWebhookConfiguration // what it shares with a mutating one
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			t.Fatal(err)
		}
		for _, hook := range configuration.Webhooks {
			if hook.Name != name {
				continue
			}
			compiler := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
			evaluator := compiler.CompileCondition(accessors(hook.MatchConditions),
				plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
			fails := admissionv1.Fail // with Ignore the matcher would return no errors
			return webhook{matchconditions.NewMatcher(evaluator, &fails, "webhook", "admit", name)}
		}
	}
	t.Fatalf("there is no webhook %s", name)
	return webhook{}
}

func accessors(conditions []admissionv1.MatchCondition) []plugincel.ExpressionAccessor {
	all := make([]plugincel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		all[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	return all
}

// calls reports whether the API server calls the webhook for the write of a pod: an update of its status, or its deletion if sent is nil.
func (w webhook) calls(t *testing.T, old, sent *corev1.Pod, by user.Info) bool {
	t.Helper()
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	operation, part, after := admission.Delete, "", runtime.Object(nil)
	if sent != nil {
		operation, part, after = admission.Update, "status", sent
	}
	matched := w.Match(context.Background(), &admission.VersionedAttributes{
		Attributes:      admission.NewAttributesRecord(after, old, kind, old.Namespace, old.Name, resource, part, operation, nil, false, by),
		VersionedObject: after, VersionedOldObject: old, VersionedKind: kind,
	}, nil, nil)
	if matched.Error != nil {
		t.Error(matched.Error)
	}
	return matched.Matches
}

// TestWebhooksKnowWhatIsOutOfService checks that API servers ask about the reports of a kubelet only for pods that Stayput has taken out of
// service, and that deletions of the ReplicaSet controller are throttled only for those.
func TestWebhooksKnowWhatIsOutOfService(t *testing.T) {
	reports, deletions := compileWebhook(t, "kubelet-reports.stayput.dev"), compileWebhook(t, "throttled-pods.stayput.dev")
	replicaSets := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:replicaset-controller"}
	for name, conditions := range map[string][]corev1.PodCondition{
		"no conditions": nil,
		"taken out":     {{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: readiness.ReasonUpdating}},
		"among others": {{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: readiness.ReasonUpdating}},
		"Ready":             {{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		"not Ready":         {{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		"containers fail":   {{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}},
		"Ready, our reason": {{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: readiness.ReasonUpdating}},
		"another condition": {{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: readiness.ReasonUpdating}},
	} {
		old := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Conditions: conditions}}
		sent := old.DeepCopy()
		sent.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		out := readiness.Out(old)
		if reports.calls(t, old, sent, kubelet("n")) != out {
			t.Errorf("%s: asked about the report %t", name, !out)
		}
		if deletions.calls(t, old, nil, replicaSets) != out {
			t.Errorf("%s: the deletion is throttled %t", name, !out)
		}
	}
}

// TestMovedPodsAreForOneWebhook checks that API servers ask about each deletion by a controller of pods once, and that the webhook that
// fails closed is only for deletions by the ReplicaSet controller of pods that run a container that is to stop since they have moved.
func TestMovedPodsAreForOneWebhook(t *testing.T) {
	moved, all := compileWebhook(t, "moved-pods.stayput.dev"), compileWebhook(t, "pods.stayput.dev")
	mark := readiness.Move{Containers: map[string]readiness.MovedContainer{"app": {ContainerID: "containerd://1"}}}.String()
	running := func(id string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{}, {ContainerID: id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	id := "containerd://" + strings.Repeat("0", 64)
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	stopped := []corev1.ContainerStatus{{ContainerID: "containerd://1", State: waiting}}
	for name, test := range map[string]struct {
		mark   string
		status corev1.PodStatus
		want   bool
	}{
		"no status yet":                 {mark: mark},
		"never moved":                   {status: corev1.PodStatus{ContainerStatuses: running("containerd://1")}},
		"only its labels changed":       {"{}", corev1.PodStatus{ContainerStatuses: running("containerd://1")}, false},
		"its old container runs":        {mark, corev1.PodStatus{ContainerStatuses: running("containerd://1")}, true},
		"its old sidecar runs":          {mark, corev1.PodStatus{InitContainerStatuses: running("containerd://1")}, true},
		"its old container has stopped": {mark, corev1.PodStatus{ContainerStatuses: stopped}, false},
		"its new container runs":        {mark, corev1.PodStatus{ContainerStatuses: running("containerd://2")}, false},
		"no ID":                         {mark, corev1.PodStatus{ContainerStatuses: running("")}, false},
		"as long as it may be": {strings.Repeat("x", 8<<10),
			corev1.PodStatus{ContainerStatuses: slices.Repeat(running(id), 100)}, false},
		"forged, and longer": {strings.Repeat("x", 200<<10) + id, corev1.PodStatus{ContainerStatuses: running(id)}, false},
	} {
		pod := &corev1.Pod{Status: test.status}
		if test.mark != "" {
			pod.Annotations = map[string]string{inplace.AnnotationMove: test.mark}
		}
		for _, controller := range []string{
			"replicaset-controller", "daemon-set-controller", "statefulset-controller", "generic-garbage-collector",
		} {
			by := &user.DefaultInfo{Name: inplace.NativeController(controller)}
			fails, ignores := moved.calls(t, pod, nil, by), all.calls(t, pod, nil, by)
			if want := test.want && controller == "replicaset-controller"; fails != want {
				t.Errorf("%s: a deletion by the %s fails without an answer: %t", name, controller, fails)
			}
			if want := controller != "generic-garbage-collector"; fails != ignores != want {
				t.Errorf("%s: of a deletion by the %s two webhooks are asked, or none: %t, %t", name, controller, fails, ignores)
			}
		}
	}
}

// TestOnlyKubeletsReport checks that API servers ask only about what the kubelet of the pod's own node writes.
func TestOnlyKubeletsReport(t *testing.T) {
	reports := compileWebhook(t, "kubelet-reports.stayput.dev")
	for _, by := range []*user.DefaultInfo{
		kubelet("n"), kubelet("other"), kubelet(""), byStayput, {Name: "system:node:n"}, {Name: "jane", Groups: kubelet("n").Groups},
		{Name: "system:serviceaccount:kube-system:node-controller"},
	} {
		for _, node := range []string{"n", ""} {
			old := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: readiness.ReasonUpdating}}}}
			if want := readiness.ByKubelet(by.Name, by.Groups, node); reports.calls(t, old, old.DeepCopy(), by) != want {
				t.Errorf("asked about a write of %s in %q to a pod on node %q: %t", by.Name, by.Groups, node, !want)
			}
		}
	}
}

func kubelet(node string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
}
