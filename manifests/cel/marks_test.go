package cel

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestOnlyStayputWritesMarks checks that other clients can neither add nor change a mark, and may do anything else.
func TestOnlyStayputWritesMarks(t *testing.T) {
	policy := compileRefusals(t, "../base/marks.yaml", "stayput-marks")
	tenant, kubelet := &user.DefaultInfo{Name: "jane"}, &user.DefaultInfo{Name: "system:node:n1", Groups: []string{"system:nodes"}}
	controller := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:deployment-controller"}
	annotations := []string{inplace.AnnotationMove, inplace.AnnotationSurgePod, inplace.AnnotationRestarts, inplace.AnnotationNudged,
		inplace.AnnotationRestarted}
	labels := append([]string{inplace.LabelPrePull}, inplace.Marks...)
	masters := &user.DefaultInfo{Name: "kubernetes-admin", Groups: []string{"system:masters"}}
	for _, kind := range []func(own, template metav1.ObjectMeta) runtime.Object{aPod, aDeployment, aSet} {
		for _, in := range []bool{false, true} {
			try := func(by user.Info, key string, was, is func(key string) metav1.ObjectMeta, refused bool) {
				t.Helper()
				object := func(meta func(string) metav1.ObjectMeta) runtime.Object {
					if in {
						return kind(metav1.ObjectMeta{}, meta(key))
					}
					return kind(meta(key), metav1.ObjectMeta{})
				}
				old, sent := object(was), object(is)
				_, isPod := sent.(*corev1.Pod)
				got := policy.of(old, sent, &corev1.Namespace{}, by)
				refused = refused && !(isPod && in)
				if (got != "") != refused || refused && !strings.Contains(got, key+": only Stayput writes such marks") {
					t.Errorf("%T, in its template %t, %s by %s: %q, want refused %t", sent, in, key, by.GetName(), got, refused)
				}
			}
			none := func(string) metav1.ObjectMeta { return metav1.ObjectMeta{} }
			for _, key := range annotations {
				one, other := annotated("1"), annotated("2")
				for _, by := range []user.Info{tenant, kubelet} {
					try(by, key, none, one, true)
					try(by, key, one, other, true)
					try(by, key, one, one, false)
					try(by, key, one, none, false)
					try(by, key, one, annotatedBeside("1"), false)
				}
				try(byStayput, key, none, one, false)
				try(controller, key, none, one, false)
				try(masters, key, none, one, false)
			}
			for _, key := range labels {
				one, other := labelledWith("1"), labelledWith("2")
				try(tenant, key, none, one, true)
				try(tenant, key, one, other, true)
				try(tenant, key, one, one, false)
				try(tenant, key, one, none, false)
				try(byStayput, key, none, one, false)
				try(controller, key, none, one, false)
			}
		}
	}
	binding := &corev1.Binding{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"}, ObjectMeta: annotated("1")(inplace.AnnotationMove)}
	if got := policy.of(nil, binding, &corev1.Namespace{}, tenant); !strings.Contains(got, inplace.AnnotationMove) {
		t.Errorf("a binding with a mark: %q", got)
	}
}

// TestNewObjectsHaveNoMarks checks that other clients create nothing with marks, apart from pods with marks that order nothing: a backup of
// a pod that was updated in place has those.
func TestNewObjectsHaveNoMarks(t *testing.T) {
	policy := compileRefusals(t, "../base/marks.yaml", "stayput-marks")
	tenant := &user.DefaultInfo{Name: "jane"}
	controller := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:replicaset-controller"}
	masters := &user.DefaultInfo{Name: "kubernetes-admin", Groups: []string{"system:masters"}}
	none := metav1.ObjectMeta{}
	moved := readiness.Move{Hash: "b", Generation: 2, Containers: map[string]readiness.MovedContainer{"app": {Image: "backend/resize:1"}}}
	partly, resized := moved, moved
	partly.Back = map[string]string{"app": "app:1"}
	resized.Resize = readiness.Resize{"app": {Back: edit.Amounts{CPURequest: "1"}}}
	mark := func(text string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{inplace.AnnotationMove: text}}
	}
	both := metav1.ObjectMeta{Labels: map[string]string{inplace.LabelUpdating: "1", inplace.LabelReplicas: "2", "app": "web"}}
	for name, test := range map[string]struct {
		created runtime.Object
		refused string // what the message names
	}{
		"a Deployment":                      {aDeployment(none, none), ""},
		"a template with an annotation":     {aDeployment(none, mark("{}")), inplace.AnnotationMove},
		"a template with a label":           {aDeployment(none, labelledWith("x")(inplace.LabelPrePull)), inplace.LabelPrePull},
		"a ReplicaSet":                      {aSet(metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, none), ""},
		"a marked ReplicaSet":               {aSet(both, none), inplace.LabelUpdating + ", " + inplace.LabelReplicas},
		"a ReplicaSet's template":           {aSet(none, labelledWith("x")(inplace.LabelPrePull)), inplace.LabelPrePull},
		"a marked ControllerRevision":       {aRevision(both), inplace.LabelUpdating},
		"a pod":                             {aPod(none, none), ""},
		"a pod with the label of pre-pulls": {aPod(labelledWith("x")(inplace.LabelPrePull), none), inplace.LabelPrePull},
		"a copy of a pod that was updated":  {aPod(mark(moved.String()), none), ""},
		"a copy of one that was to restart": {aPod(annotated("refused app: no")(inplace.AnnotationRestarted), none), ""},
		"a copy of a partially patched pod": {aPod(mark(partly.String()), none), inplace.AnnotationMove},
		"a copy of a pod that was resized":  {aPod(mark(resized.String()), none), inplace.AnnotationMove},
		"a mark in capitals":                {aPod(mark(`{"hash":"b","BACK":{"app":"app:9"}}`), none), inplace.AnnotationMove},
		"a mark with other letters":         {aPod(mark(`{"hash":"b","bac`+"\u212a"+`":{"app":"app:9"}}`), none), inplace.AnnotationMove},
		"a mark with an escape":             {aPod(mark(`{"hash":"b","\u0062ack":{"app":"app:9"}}`), none), inplace.AnnotationMove},
		"a mark with spaces":                {aPod(mark("{\"hash\":\"b\",\"back\"\n : {\"app\":\"app:9\"}}"), none), inplace.AnnotationMove},
	} {
		got := policy.of(nil, test.created, &corev1.Namespace{}, tenant)
		if test.refused == "" && got != "" || !strings.HasPrefix(got, test.refused) || got != "" && !strings.Contains(got, "from what you create") {
			t.Errorf("%s: %q, want %q", name, got, test.refused)
		}
		for _, by := range []user.Info{byStayput, controller, masters} {
			if got := policy.of(nil, test.created, &corev1.Namespace{}, by); got != "" {
				t.Errorf("%s by %s: %q", name, by.GetName(), got)
			}
		}
	}
}

// TestMarksAreLookedAtInAllWrites checks that the policy applies to all objects that may have marks, when they are created and changed.
func TestMarksAreLookedAtInAllWrites(t *testing.T) {
	rules := validatingSpec(t, "../base/marks.yaml", "stayput-marks").MatchConstraints.ResourceRules
	for _, resource := range []string{"pods", "deployments", "daemonsets", "statefulsets", "replicasets", "controllerrevisions"} {
		for _, operation := range []admissionv1.OperationType{admissionv1.Create, admissionv1.Update} {
			if !slices.ContainsFunc(rules, func(rule admissionv1.NamedRuleWithOperations) bool {
				return slices.Contains(rule.Resources, resource) && slices.Contains(rule.Operations, operation)
			}) {
				t.Errorf("not to %s of %s", operation, resource)
			}
		}
	}
}

func aRevision(own metav1.ObjectMeta) runtime.Object {
	return &appsv1.ControllerRevision{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevision"}, ObjectMeta: own}
}

func annotated(value string) func(string) metav1.ObjectMeta {
	return func(key string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{key: value}}
	}
}

func annotatedBeside(value string) func(string) metav1.ObjectMeta {
	return func(key string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{key: value, "note": "x"}, Labels: map[string]string{"tier": "x"}}
	}
}

func labelledWith(value string) func(string) metav1.ObjectMeta {
	return func(key string) metav1.ObjectMeta { return metav1.ObjectMeta{Labels: map[string]string{key: value}} }
}

func aPod(own, _ metav1.ObjectMeta) runtime.Object {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: own}
}

func aDeployment(own, template metav1.ObjectMeta) runtime.Object {
	return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: own,
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: template}}}
}

func aSet(own, template metav1.ObjectMeta) runtime.Object {
	return &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: own,
		Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: template}}}
}

// TestPriorityIsStayputs checks that no pod may preempt others with the class of the managers, and that all others come through.
func TestPriorityIsStayputs(t *testing.T) {
	policy := compileRefusals(t, "../base/priority.yaml", "stayput-priority")
	for class, refused := range map[string]bool{"stayput": true, "": false, "web": false} {
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{PriorityClassName: class}}
		got := policy.of(nil, pod, &corev1.Namespace{}, &user.DefaultInfo{Name: "jane"})
		if (got != "") != refused || refused && !strings.Contains(got, "priorityClassName stayput is for the managers") {
			t.Errorf("class %q: %q, want refused %t", class, got, refused)
		}
	}
}
