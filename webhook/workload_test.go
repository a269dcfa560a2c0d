package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/bynamespace"
)

const (
	annotate = `[{"op":"add","path":"/metadata/annotations","value":{"stayput.dev/decision":`
	path     = `"path":"/metadata/annotations/stayput.dev~1decision"`
)

// editing returns the request of a user who edits a Deployment.
func editing(t *testing.T, now, before *apps.Deployment) admission.Request {
	t.Helper()
	return request(t, "jane", admissionv1.Update, now, before)
}

// annotated returns the Deployment with a decision.
func annotated(d *apps.Deployment, decision string) *apps.Deployment {
	d.Annotations = map[string]string{inplace.AnnotationDecision: decision}
	return d
}

// staged returns the workload with a partition.
func staged[O client.Object](partition string, of O) O {
	staged, _ := of.DeepCopyObject().(O)
	staged.SetAnnotations(map[string]string{inplace.AnnotationPartition: partition})
	return staged
}

// prepared returns the template with an init container.
func prepared(template string) string {
	return strings.Replace(template, `"spec":{`, `"spec":{"initContainers":[{"name":"setup","image":"setup:1"}],`, 1)
}

// reading returns the template with that chart, which a variable reads.
func reading(template, chart string) string {
	template = strings.Replace(template, `{"app":"web"}`, `{"app":"web","chart":"`+chart+`"}`, 1)
	return strings.Replace(template, `"image":`,
		`"env":[{"name":"C","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['chart']"}}}],"image":`, 1)
}

// hurried returns the Deployment with a deadline shorter than its drain.
func hurried(of *apps.Deployment) *apps.Deployment {
	hurried := of.DeepCopy()
	metav1.SetMetaDataAnnotation(&hurried.ObjectMeta, inplace.AnnotationDrain, "1m")
	hurried.Spec.ProgressDeadlineSeconds = new(int32(20))
	return hurried
}

// running serves a Deployment, a DaemonSet and a StatefulSet with one revision each, and pods of the last two, in a namespace of that mode,
// and other objects.
func running(t *testing.T, mode inplace.Mode, besides ...client.Object) client.Reader {
	t.Helper()
	return reader(t, append(besides, namespace(mode),
		deployment(t, v1Template), revision(t, "web-1", v1Template, "3"),
		daemonSet(t, v1Template), controllerRevision(t, "1", v1Template), daemon("agent-x", "1"),
		statefulSet(t, v1Template, ""), memberRevision(t, "a", v1Template), member("db-0", "db-a"))...)
}

// scaler returns an autoscaler by CPU that waits for so many seconds before it scales up.
func scaler(kind, name string, window int32) client.Object {
	rules := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &window}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "by-cpu"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: kind, Name: name},
			Metrics:        []autoscalingv2.MetricSpec{{Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU}}},
			Behavior:       &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules},
		},
	}
}

// protected serves the same, in a namespace that asks for PodDisruptionBudgets, with one that requires so many of those pods.
func protected(t *testing.T, required, pods int32) client.Reader {
	t.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	budget.Status = policyv1.PodDisruptionBudgetStatus{DesiredHealthy: required, ExpectedPods: pods}
	asks := namespace(inplace.ModeInPlace)
	metav1.SetMetaDataAnnotation(&asks.ObjectMeta, inplace.AnnotationDisruptionBudgets, inplace.DisruptionBudgetsRespect)
	return reader(t, budget, asks, deployment(t, v1Template), revision(t, "web-1", v1Template, "3"))
}

// unlisted serves the same, but a list of autoscalers gets no answer until the caller gives up.
func unlisted(t *testing.T, whole client.Reader) client.Reader {
	t.Helper()
	return interceptor.NewClient(whole.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if _, is := into.(*autoscalingv2.HorizontalPodAutoscalerList); is {
				<-ctx.Done()
				return ctx.Err()
			}
			return c.List(ctx, into, options...)
		},
	})
}

func TestDecisionRecorded(t *testing.T) {
	v1, v2, env := deployment(t, v1Template), deployment(t, v2Template), deployment(t, envTemplate)
	copied := annotated(deployment(t, v1Template), "in place: a copy")
	optedOut := deployment(t, v2Template)
	optedOut.Labels[inplace.LabelUpdate] = string(inplace.ModeNative)
	recreated := deployment(t, v2Template)
	recreated.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	onDelete := daemonSet(t, v2Template)
	onDelete.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	listing := func(object client.Object, list string) client.Object { // the list of the request counts, not the stored one
		object.SetAnnotations(map[string]string{inplace.AnnotationInPlaceAnnotations: list})
		return object
	}
	note := strings.Replace(v1Template, `"labels"`, `"annotations":{"example.com/note":"n"},"labels"`, 1)
	tolerating := func(toleration string) string {
		return strings.Replace(v1Template, `"spec":{`, `"spec":{"tolerations":[`+toleration+`],`, 1)
	}
	impatient := tolerating(`{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":30}`)
	live := running(t, inplace.ModeInPlace)
	beside := func(scaler client.Object) client.Reader { return running(t, inplace.ModeInPlace, scaler) }
	for name, test := range map[string]struct {
		live    client.Reader
		request admission.Request
		patch   string
		warning string
	}{
		"toleration": {live, editing(t, deployment(t, tolerating(`{"key":"gpu"}`)), v1),
			annotate + `"in place: no restart"}}]`, "stayput: in place: no restart"},
		"toleration of what is tolerated by default": {live, editing(t, deployment(t, impatient), v1), annotate +
			`"recreate: /spec/tolerations changed: running pods keep the default toleration of node.kubernetes.io/not-ready"}}]`,
			"stayput: recreate: /spec/tolerations changed: running pods keep the default toleration of node.kubernetes.io/not-ready"},
		"the same of a DaemonSet, whose controller sets that toleration itself": {live,
			request(t, "jane", admissionv1.Update, daemonSet(t, impatient), daemonSet(t, v1Template)),
			annotate + `"in place: no restart"}}]`, "stayput: in place: no restart"},
		"annotation that the workload lists": {live,
			request(t, "jane", admissionv1.Update, listing(deployment(t, note), "example.com/note"), v1),
			`[{"op":"add",` + path + `,"value":"in place: no restart"}]`, "stayput: in place: no restart"},
		"annotation that a DaemonSet lists": {live,
			request(t, "jane", admissionv1.Update, listing(daemonSet(t, note), "example.com/*"), daemonSet(t, v1Template)),
			`[{"op":"add",` + path + `,"value":"in place: no restart"}]`, "stayput: in place: no restart"},
		"annotation beside a list that does not parse": {live,
			request(t, "jane", admissionv1.Update, listing(deployment(t, note), "example.com/note,"), v1),
			`[{"op":"add",` + path + `,"value":"recreate: annotation example.com/note added; ` +
				`annotation stayput.dev/in-place-annotations is ignored: it has an empty entry"}]`,
			"stayput: recreate: annotation example.com/note added; " +
				"annotation stayput.dev/in-place-annotations is ignored: it has an empty entry"},
		"image": {live, editing(t, v2, v1), annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app"},
		"env": {live, editing(t, env, v1),
			annotate + `"recreate: /spec/containers/0/env added"}}]`, "stayput: recreate: /spec/containers/0/env added"},
		"scaled": {broken(t), editing(t, v1, v1), "", ""},
		"a new decision in place of the old": {live,
			editing(t, annotated(deployment(t, v2Template), "recreate: x"), annotated(deployment(t, v1Template), "recreate: x")),
			`[{"op":"add",` + path + `,"value":"in place: restarts app"}]`, "stayput: in place: restarts app"},
		"kept when something else is edited": {broken(t),
			editing(t, annotated(deployment(t, v1Template), "x"), annotated(deployment(t, v1Template), "x")), "", ""},
		"a copy is removed": {broken(t), editing(t, copied, v1), `[{"op":"remove",` + path + `}]`, ""},
		"a copy is removed on creation": {
			broken(t), request(t, "jane", admissionv1.Create, copied, nil), `[{"op":"remove",` + path + `}]`, ""},
		"opted out": {live, editing(t, optedOut, v1), "", ""},
		"reasons besides the template": {live, editing(t, recreated, v1),
			annotate + `"recreate: strategy Recreate promises that two versions never run at once"}}]`,
			"stayput: recreate: strategy Recreate promises that two versions never run at once"},
		"DaemonSet": {live, request(t, "jane", admissionv1.Update, daemonSet(t, v2Template), daemonSet(t, v1Template)),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app"},
		"DaemonSet with another env": {live, request(t, "jane", admissionv1.Update, daemonSet(t, envTemplate), daemonSet(t, v1Template)),
			annotate + `"recreate: /spec/containers/0/env added"}}]`, "stayput: recreate: /spec/containers/0/env added"},
		"DaemonSet updated by hand": {live, request(t, "jane", admissionv1.Update, onDelete, daemonSet(t, v1Template)),
			annotate + `"recreate: with strategy OnDelete the user decides when a pod is updated"}}]`,
			"stayput: recreate: with strategy OnDelete the user decides when a pod is updated"},
		"partition": {live, request(t, "jane", admissionv1.Update, staged("30%", v2), v1),
			`[{"op":"add",` + path + `,"value":"in place: restarts app"}]`, "stayput: in place: restarts app; stayput: partition 30%: " +
				"so many pods stay at the current revision until the partition is lowered or removed, or Stayput is uninstalled"},
		"partition of what is recreated": {live,
			request(t, "jane", admissionv1.Update, staged("3", daemonSet(t, envTemplate)), daemonSet(t, v1Template)),
			`[{"op":"add",` + path + `,"value":"recreate: /spec/containers/0/env added"}]`,
			"stayput: recreate: /spec/containers/0/env added; stayput: partition 3 does not apply: " +
				"an edit that cannot be made in place is native for all pods"},
		"partition that is invalid": {live, request(t, "jane", admissionv1.Update, staged("half", v2), v1),
			`[{"op":"add",` + path + `,"value":"in place: restarts app"}]`,
			`stayput: in place: restarts app; stayput: partition is not valid, so no pod is updated for now: ` +
				`annotation stayput.dev/partition: "half" is neither a number nor 0% to 100%`},
		"image beside an init container": {
			reader(t, namespace(inplace.ModeInPlace), deployment(t, prepared(v1Template)), revision(t, "web-1", prepared(v1Template), "3")),
			editing(t, deployment(t, prepared(v2Template)), deployment(t, prepared(v1Template))),
			annotate + `"in place: restarts app"}}]`,
			"stayput: in place: restarts app; stayput: init container setup does not run again"},
		"label that a variable reads": {
			reader(t, namespace(inplace.ModeInPlace), deployment(t, reading(v1Template, "1")), revision(t, "web-1", reading(v1Template, "1"), "3")),
			editing(t, deployment(t, reading(v1Template, "2")), deployment(t, reading(v1Template, "1"))),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app; stayput: variables read label chart (app)"},
		"a drain beyond the deadline": {live, editing(t, hurried(v2), v1), `[{"op":"add",` + path + `,"value":"in place: restarts app"}]`,
			"stayput: in place: restarts app; stayput: progressDeadlineSeconds of 20s: " +
				"a pod may take 1m0s to drain (stayput.dev/drain) and 30s to stop (terminationGracePeriodSeconds). " +
				"The deadline waits for that; timeouts of other tools, such as that of helm, do not"},
		"image beside an autoscaler by CPU": {
			beside(scaler("Deployment", "web", 0)), editing(t, v2, v1), annotate + `"in place: restarts app"}}]`,
			"stayput: in place: restarts app; stayput: HorizontalPodAutoscaler by-cpu scales by cpu: " +
				"what restarted containers use to start counts as load. " +
				"behavior.scaleUp.stabilizationWindowSeconds beyond the update's length keeps it from scaling up for that"},
		"image beside one that waits": {beside(scaler("Deployment", "web", 600)), editing(t, v2, v1),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app"},
		"image beside one of another workload": {beside(scaler("Deployment", "api", 0)), editing(t, v2, v1),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app"},
		"nothing restarts beside an autoscaler": {
			beside(scaler("Deployment", "web", 0)), editing(t, deployment(t, tolerating(`{"key":"gpu"}`)), v1),
			annotate + `"in place: no restart"}}]`, "stayput: in place: no restart"},
		"what is recreated beside an autoscaler": {beside(scaler("Deployment", "web", 0)), editing(t, env, v1),
			annotate + `"recreate: /spec/containers/0/env added"}}]`, "stayput: recreate: /spec/containers/0/env added"},
		"image of a StatefulSet beside an autoscaler by CPU": {
			beside(scaler("StatefulSet", "db", 0)),
			request(t, "jane", admissionv1.Update, statefulSet(t, v2Template, ""), statefulSet(t, v1Template, "")),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app; stayput: HorizontalPodAutoscaler by-cpu scales by cpu: " +
				"what restarted containers use to start counts as load. " +
				"behavior.scaleUp.stabilizationWindowSeconds beyond the update's length keeps it from scaling up for that"},
		"image of a StatefulSet beside one of a Deployment": {beside(scaler("Deployment", "db", 0)),
			request(t, "jane", admissionv1.Update, statefulSet(t, v2Template, ""), statefulSet(t, v1Template, "")),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app"},
		"DaemonSets have no autoscaler": {beside(scaler("DaemonSet", "agent", 0)),
			request(t, "jane", admissionv1.Update, daemonSet(t, v2Template), daemonSet(t, v1Template)),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app"},
		"image, and a PodDisruptionBudget that requires every pod": {protected(t, 3, 3), editing(t, v2, v1),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app; stayput: PodDisruptionBudget web: " +
				"it requires 3 healthy pods of 3, so the update waits until that changes"},
		"image, and a PodDisruptionBudget that does not": {protected(t, 2, 3), editing(t, v2, v1),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app"},
		"image, and autoscalers cannot be listed": {unlisted(t, live), editing(t, v2, v1),
			annotate + `"in place: restarts app"}}]`, "stayput: in place: restarts app"},
		"deletion":      {broken(t), request(t, "jane", admissionv1.Delete, nil, v1), "", ""},
		"reading fails": {broken(t), editing(t, v2, v1), "", "stayput: allowed without a decision"},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, broken(t), test.live)
			response := h.handle(context.Background(), test.request, h.mutateWorkload)
			expectPatch(t, response, test.patch)
			expectWarning(t, response, test.warning)
		})
	}
}

// TestUndoKeepsTheList: the list stays after kubectl rollout undo, which names no field manager. A client that applies a manifest names
// one, and means what it writes.
func TestUndoKeepsTheList(t *testing.T) {
	note := func(value string) string {
		return strings.Replace(v1Template, `"labels"`, `"annotations":{"example.com/note":"`+value+`"},"labels"`, 1)
	}
	before, undone := deployment(t, note("2")), deployment(t, note("1"))
	before.Annotations = map[string]string{inplace.AnnotationInPlaceAnnotations: "example.com/note", inplace.AnnotationRevision: "2"}
	undone.Annotations = map[string]string{inplace.AnnotationRevision: "2"}
	live := reader(t, namespace(inplace.ModeInPlaceOnly), before, revision(t, "web-1", note("1"), "0"), revision(t, "web-2", note("2"), "3"))
	for manager, want := range map[string]struct{ patch, warning string }{
		"": {`[{"op":"add","path":"/metadata/annotations/stayput.dev~1decision","value":"in place: no restart"},` +
			`{"op":"add","path":"/metadata/annotations/stayput.dev~1in-place-annotations","value":"example.com/note"}]`,
			"stayput: in place: no restart"},
		"kustomize-controller": {`[{"op":"add","path":"/metadata/annotations/stayput.dev~1decision",` +
			`"value":"recreate: annotation example.com/note changed"}]`,
			"stayput: recreate: annotation example.com/note changed"},
	} {
		req := editing(t, undone, before)
		req.Options.Raw = []byte(`{"kind":"PatchOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"` + manager + `"}`)
		response := handlers(t, broken(t), live).handle(context.Background(), req, handlers(t, broken(t), live).mutateWorkload)
		expectPatch(t, response, want.patch)
		expectWarning(t, response, want.warning)
	}
}

// TestUndoToNoAnnotations: the annotations that are kept do not displace the decision.
func TestUndoToNoAnnotations(t *testing.T) {
	before := deployment(t, v2Template)
	before.Annotations = map[string]string{inplace.AnnotationInPlaceAnnotations: "example.com/note"}
	live := reader(t, namespace(inplace.ModeInPlace), before, revision(t, "web-1", v1Template, "0"), revision(t, "web-2", v2Template, "3"))
	h := handlers(t, broken(t), live)
	response := h.handle(context.Background(), editing(t, deployment(t, v1Template), before), h.mutateWorkload)
	expectPatch(t, response, `[{"op":"add","path":"/metadata/annotations","value":`+
		`{"stayput.dev/decision":"in place: restarts app","stayput.dev/in-place-annotations":"example.com/note"}}]`)
}

func TestInPlaceOnly(t *testing.T) {
	v1, v2, env := deployment(t, v1Template), deployment(t, v2Template), deployment(t, envTemplate)
	recreated, optedOut, opted := deployment(t, v2Template), deployment(t, envTemplate), deployment(t, envTemplate)
	recreated.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	optedOut.Labels[inplace.LabelUpdate] = string(inplace.ModeNative)
	opted.Labels[inplace.LabelUpdate] = string(inplace.ModeInPlaceOnly)
	annotations := deployment(t, strings.Replace(v1Template, `"labels"`, `"annotations":{"example.com/a-b":"c"},"labels"`, 1))
	unparsed := annotations.DeepCopy()
	unparsed.Annotations = map[string]string{inplace.AnnotationInPlaceAnnotations: "*"}
	only, some := running(t, inplace.ModeInPlaceOnly), running(t, inplace.ModeInPlace)
	for name, test := range map[string]struct {
		live    client.Reader
		request admission.Request
		fields  []string
		warning string
	}{
		"env":        {only, editing(t, env, v1), []string{"spec.template.spec.containers[0].env"}, ""},
		"annotation": {only, editing(t, annotations, v1), []string{"spec.template.metadata.annotations[example.com/a-b]"}, ""},
		"annotation beside a list that does not parse": {only, editing(t, unparsed, v1),
			[]string{"spec.template.metadata.annotations[example.com/a-b]", "metadata.annotations[stayput.dev/in-place-annotations]"}, ""},
		"strategy":                   {only, editing(t, recreated, v1), []string{"spec.strategy.type"}, ""},
		"image":                      {only, editing(t, v2, v1), nil, "stayput: in place: restarts app"},
		"workload opts out":          {only, editing(t, optedOut, v1), nil, ""},
		"workload opts in":           {some, editing(t, opted, v1), []string{"spec.template.spec.containers[0].env"}, ""},
		"in-place allows recreation": {some, editing(t, env, v1), nil, "stayput: recreate: /spec/containers/0/env added"},
		"DaemonSet": {only, request(t, "jane", admissionv1.Update, daemonSet(t, v2Template), daemonSet(t, v1Template)), nil,
			"stayput: in place: restarts app"},
		"DaemonSet with another env": {only, request(t, "jane", admissionv1.Update, daemonSet(t, envTemplate), daemonSet(t, v1Template)),
			[]string{"spec.template.spec.containers[0].env"}, ""},
		"no template edit": {broken(t), editing(t, v1, v1), nil, ""},
		"creation":         {broken(t), request(t, "jane", admissionv1.Create, v1, nil), nil, ""},
		"reading fails":    {broken(t), editing(t, env, v1), nil, "stayput: allowed without a decision"},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, broken(t), test.live)
			response := h.handle(context.Background(), test.request, h.validateWorkload)
			expectRejected(t, test.request, response, test.fields)
			expectWarning(t, response, test.warning)
		})
	}
}

// TestUnmanagedIsNotRead: whether a workload is managed needs its namespace only, so an edit of one that is not passes. Who may expect an
// update in place, as the namespace is labelled, is told why there is none.
func TestUnmanagedIsNotRead(t *testing.T) {
	unasked, set := statefulSet(t, v2Template, ""), statefulSet(t, v1Template, "")
	optedOut := deployment(t, envTemplate)
	optedOut.Labels[inplace.LabelUpdate] = string(inplace.ModeNative)
	for name, test := range map[string]struct {
		request admission.Request
		warning string
	}{
		"StatefulSet that did not ask": {request(t, "jane", admissionv1.Update, unasked, set), "stayput: not updated in place: it has no label " +
			"stayput.dev/update itself, and label stayput.dev/kinds of the namespace does not name its kind"},
		"Deployment that opts out": {editing(t, optedOut, deployment(t, v1Template)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := test.request
			here := namespace(inplace.ModeInPlaceOnly)
			delete(here.Labels, inplace.LabelKinds)
			h := handlers(t, broken(t), onlyNamespaces(t, here))
			expectWarning(t, h.handle(t.Context(), req, h.mutateWorkload), test.warning)
			response := h.handle(t.Context(), req, orDeny(h.validateWorkload))
			expectRejected(t, req, response, nil)
			expectWarning(t, response, "")
		})
	}
}

// TestLabelRemovedMeanwhile: the user removes the namespace's label while an edit is decided. The edit passes as one that Stayput has
// nothing to do with, even if new pods are necessary for it.
func TestLabelRemovedMeanwhile(t *testing.T) {
	for name, req := range map[string]admission.Request{
		"Deployment": editing(t, deployment(t, envTemplate), deployment(t, v1Template)),
		"DaemonSet":  request(t, "jane", admissionv1.Update, daemonSet(t, envTemplate), daemonSet(t, v1Template)),
	} {
		t.Run(name, func(t *testing.T) {
			labelled, before, after := 1, running(t, inplace.ModeInPlaceOnly), running(t, "")
			live := interceptor.NewClient(after.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
					if _, is := into.(*corev1.Namespace); is && labelled > 0 {
						labelled--
						return before.Get(ctx, key, into, options...)
					}
					return c.Get(ctx, key, into, options...)
				},
			})
			h := handlers(t, broken(t), live)
			response := h.handle(t.Context(), req, orDeny(h.validateWorkload))
			if labelled > 0 {
				t.Fatal("the namespace was not read")
			}
			expectRejected(t, req, response, nil)
			expectWarning(t, response, "")
		})
	}
}

// TestUnreadIsNamedAsUsersKnowIt: the warning of an edit that could not be decided shows no types of Go.
func TestUnreadIsNamedAsUsersKnowIt(t *testing.T) {
	revised := []client.Object{namespace(inplace.ModeInPlace), statefulSet(t, v1Template, ""), memberRevision(t, "a", v1Template)}
	set := request(t, "jane", admissionv1.Update, statefulSet(t, v2Template, ""), statefulSet(t, v1Template, ""))
	garbled := set
	garbled.Object.Raw = []byte(`{"metadata":{},"spec":{"template":{}},"spec":{}}`)
	const undecided = "stayput: allowed without a decision: "
	for name, test := range map[string]struct {
		live    client.Reader
		request admission.Request
		warning string
	}{
		"the workload": {onlyNamespaces(t, revised...), set, undecided + "read StatefulSet shop/db: " + errRead.Error()},
		"its revisions": {without(t, &apps.ControllerRevisionList{}, revised...), set,
			undecided + "list ControllerRevisions of StatefulSet shop/db: " + errRead.Error()},
		"its pods": {without(t, &corev1.PodList{}, revised...), set,
			undecided + "list Pods of StatefulSet shop/db: " + errRead.Error()},
		"a request that does not parse": {reader(t, revised...), garbled, undecided + `decode the object of the request: duplicate field "spec"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, broken(t), test.live)
			response := h.handle(t.Context(), test.request, h.mutateWorkload)
			if got := strings.Join(response.Warnings, "; "); got != test.warning {
				t.Errorf("warns\n %s\nwant\n %s", got, test.warning)
			}
		})
	}
}

func TestOnlyIsAPromiseAlsoWhenReadingFails(t *testing.T) {
	h := handlers(t, broken(t), broken(t))
	req := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	response := h.handle(context.Background(), req, orDeny(h.validateWorkload))
	if response.Allowed || response.Result.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %+v, want a denial with 503", response)
	}
	if !strings.Contains(response.Result.Message, "try again") {
		t.Errorf("says %q, want what to do", response.Result.Message)
	}
	req = editing(t, deployment(t, v1Template), deployment(t, v1Template))
	if response := h.handle(context.Background(), req, orDeny(h.validateWorkload)); !response.Allowed {
		t.Errorf("an edit of something else is denied: %+v", response)
	}
}

func TestExcludedNamespaceIsNotOurs(t *testing.T) {
	h := handlers(t, broken(t), running(t, inplace.ModeInPlaceOnly))
	h.Live.ExcludedNamespaces = []string{space}
	req := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	expectRejected(t, req, h.handle(context.Background(), req, h.validateWorkload), nil)
}

func TestDecisionsCounted(t *testing.T) {
	h := handlers(t, broken(t), running(t, inplace.ModeInPlaceOnly))
	req := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	before, dry := counted(t), true
	h.handle(context.Background(), req, h.validateWorkload)
	if got := counted(t); got != before+1 {
		t.Errorf("counted %v decisions, want 1", got-before)
	}
	req.DryRun = &dry
	h.handle(context.Background(), req, h.validateWorkload)
	if got := counted(t); got != before+1 {
		t.Error("a dry run was counted")
	}
}

func TestDecisionsCountedByNamespace(t *testing.T) {
	namespaces.Add(space)
	defer namespaces.Remove(space)
	req := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	in := func(namespace string, made decision) float64 {
		return testutil.ToFloat64(decisions.WithLabelValues(namespace, "Deployment", string(made)))
	}
	rejections, failures := in(space, rejected), in(bynamespace.Elsewhere, failed)

	h := handlers(t, broken(t), running(t, inplace.ModeInPlaceOnly))
	h.handle(t.Context(), req, h.validateWorkload)
	if got := in(space, rejected); got != rejections+1 {
		t.Errorf("%v rejections are counted for the namespace, want 1", got-rejections)
	}
	h.handle(t.Context(), req, func(context.Context, admission.Request) (answer, error) { return allow(), errors.New("no answer") })
	if got := in(bynamespace.Elsewhere, failed); got != failures+1 {
		t.Errorf("%v failures are counted for no namespace, want 1", got-failures)
	}
}

// TestHeldWritesAreCounted: a ReplicaSet that is created without replicas is a write that is held, too.
func TestHeldWritesAreCounted(t *testing.T) {
	for _, made := range []decision{uncounted, inPlace, recreate, rejected, held, createdEmpty, corrected, failed} {
		before := testutil.ToFloat64(holds.WithLabelValues("ReplicaSet"))
		count(space, "ReplicaSet", made)
		if got := testutil.ToFloat64(holds.WithLabelValues("ReplicaSet")) > before; got != (made == held || made == createdEmpty) {
			t.Errorf("%q counts as a held write: %t", made, got)
		}
	}
}

// counted returns the sum of the decisions that /metrics shows.
func counted(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		if family.GetName() == "stayput_admission_decisions_total" {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// expectRejected expects a rejection that names these fields; nil expects the request to be allowed. The answer goes to kubectl as JSON,
// so only its JSON counts.
func expectRejected(t *testing.T, req admission.Request, response admission.Response, fields []string) {
	t.Helper()
	if fields == nil {
		expectDenied(t, response, 0)
		return
	}
	expectDenied(t, response, 422)
	bytes, err := json.Marshal(response.Result)
	if err != nil {
		t.Fatal(err)
	}
	status := parse[struct {
		Details struct {
			Name, Kind string
			Causes     []struct{ Field, Message string }
		}
	}](t, string(bytes))
	var got []string
	for _, cause := range status.Details.Causes {
		got = append(got, cause.Field)
		if !strings.Contains(cause.Message, "stayput.dev/update=in-place-only") {
			t.Errorf("%q does not name the policy", cause.Message)
		}
	}
	if !slices.Equal(got, fields) || status.Details.Name != req.Name || status.Details.Kind != req.Kind.Kind {
		t.Errorf("rejected with %+v, want fields %v of %s %s", status.Details, fields, req.Kind.Kind, req.Name)
	}
}

// expectWarning expects warnings that begin so; "" expects none.
func expectWarning(t *testing.T, response admission.Response, want string) {
	t.Helper()
	switch got := response.Warnings; {
	case want == "" && len(got) > 0:
		t.Errorf("warnings %q, want none", got)
	case want != "" && !strings.HasPrefix(strings.Join(got, "; "), want), len(got) > 1 && strings.Join(got, "; ") != want:
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// TestDecisionIsOfItsTemplate: after an edit of which no manager was asked, what is recorded is not taken for the decision on that edit.
func TestDecisionIsOfItsTemplate(t *testing.T) {
	h := handlers(t, broken(t), running(t, inplace.ModeInPlace))
	v1, v2, env := deployment(t, v1Template), deployment(t, v2Template), deployment(t, envTemplate)
	response := h.handle(context.Background(), editing(t, v2, v1), h.mutateWorkload)
	recorded := response.Patches[0].Value.(map[string]string)[inplace.AnnotationDecision]
	for _, workload := range []*apps.Deployment{v1, v2, env} {
		got := steps.DecidedOn(annotated(workload, recorded), workload.Spec.Template.Hash())
		if want := map[bool]string{true: "in place: restarts app"}[workload == v2]; got != want {
			t.Errorf("%q is taken for %q, want %q", recorded, got, want)
		}
	}
}

// TestGoneMeanwhile: what the API server and the cache do not know any more is not decided, and that is no failure.
func TestGoneMeanwhile(t *testing.T) {
	web, agent, db := deployment(t, v2Template), daemonSet(t, v2Template), statefulSet(t, v2Template, "")
	done := web.DeepCopy()
	done.Status = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}
	status := request(t, deploymentController, admissionv1.Update, done, web)
	status.SubResource = "status"
	rs := markUpdating(revision(t, "web-1", v1Template, "1"))
	more := revision(t, "web-1", v1Template, "2")
	for name, test := range map[string]struct {
		path string
		req  admission.Request
	}{
		"an edited Deployment":     {"/mutate-workload", editing(t, web, deployment(t, v1Template))},
		"an edited DaemonSet":      {"/mutate-workload", request(t, "alice", admissionv1.Update, agent, daemonSet(t, v1Template))},
		"an edited StatefulSet":    {"/validate-workload", request(t, "alice", admissionv1.Update, db, statefulSet(t, v1Template, ""))},
		"a status":                 {"/validate-status", status},
		"a scaled ReplicaSet":      {"/validate-replicaset", request(t, deploymentController, admissionv1.Update, more, rs)},
		"a created pod's owner":    {"/validate-new-pod", request(t, replicaSetController, admissionv1.Create, pod(rs), nil)},
		"a deleted pod's owner":    {"/validate-pod", request(t, replicaSetController, admissionv1.Delete, nil, pod(rs))},
		"a deleted pod, at length": {"/throttle-pod", request(t, replicaSetController, admissionv1.Delete, nil, pod(rs))},
		"a scaling, at length":     {"/throttle-replicaset", request(t, deploymentController, admissionv1.Update, more, rs)},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, reader(t, namespace(inplace.ModeInPlace)), reader(t, namespace(inplace.ModeInPlace)))
			given, err := h.at(test.path)(t.Context(), test.req)
			if err != nil || !given.Allowed || len(given.Patches) > 0 && !strings.Contains(name, "edited") {
				t.Errorf("allowed %t, %v: %v", given.Allowed, given.Result, err)
			}
		})
	}
}

func TestLinesAreCut(t *testing.T) {
	for length, want := range map[int]int{0: 0, lineLength: lineLength, lineLength + 1: lineLength} {
		if got := line(strings.Repeat("x", length)); len(got) != want || strings.HasSuffix(got, "...") != (length > want) {
			t.Errorf("of %d characters there are %d", length, len(got))
		}
	}
}
