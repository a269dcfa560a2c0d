package webhook

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

// statefulSet returns a StatefulSet that is updated in place.
func statefulSet(t testing.TB, template, more string) *apps.StatefulSet {
	t.Helper()
	return parse[apps.StatefulSet](t, `{"apiVersion":"apps/v1","kind":"StatefulSet",
		"metadata":{"namespace":"shop","name":"db","uid":"sts","labels":{}},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},
			"updateStrategy":{"type":"RollingUpdate"}`+more+`,"template":`+template+`}}`)
}

// memberRevision returns a ControllerRevision of that StatefulSet.
func memberRevision(t testing.TB, name, template string) *apps.ControllerRevision {
	t.Helper()
	revision := controllerRevision(t, name, template)
	revision.Name, revision.UID = "db-"+name, types.UID("db-"+name)
	revision.Labels = map[string]string{"app": "web", "controller.kubernetes.io/hash": name}
	revision.OwnerReferences = controlledBy("StatefulSet", "db", "sts")
	return revision
}

// member returns a pod of that StatefulSet.
func member(name, revision string) *corev1.Pod {
	pod := daemon(name, revision)
	pod.OwnerReferences = controlledBy("StatefulSet", "db", "sts")
	return pod
}

func TestMemberDeletionHeld(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	first, second := memberRevision(t, "a", v1Template), memberRevision(t, "b", v2Template)
	pod, other := member("db-1", "db-a"), member("db-0", "db-a")
	base := func(set *apps.StatefulSet, others ...client.Object) client.Reader {
		return reader(t, append(others, namespace(inplace.ModeInPlaceOnly), set, first, node, pod, other)...)
	}
	v2 := func(more string) *apps.StatefulSet { return statefulSet(t, v2Template, more) }
	unasked := v2("")
	unasked.Labels = map[string]string{inplace.LabelUpdate: inplace.Native}
	asked := v2(`,"updateStrategy":{"type":"OnDelete"}`)
	asked.Labels = map[string]string{inplace.LabelUpdate: string(inplace.ModeInPlaceOnly)}
	failed, orphan := member("db-1", "db-a"), member("db-1", "db-a")
	failed.Status.Phase, orphan.OwnerReferences = corev1.PodFailed, nil
	for name, test := range map[string]struct {
		live client.Reader
		pod  *corev1.Pod
		user string
		age  time.Duration
		code int32
	}{
		"in place":              {base(v2(""), second), pod, statefulSetController, 0, 409},
		"Parallel":              {base(v2(`,"podManagementPolicy":"Parallel"`), second), pod, statefulSetController, 0, 409},
		"no revision yet":       {base(v2("")), pod, statefulSetController, 0, 409},
		"updated a moment ago":  {base(v2(""), second), member("db-1", "db-b"), statefulSetController, 0, 409},
		"not asked for":         {base(unasked, second), pod, statefulSetController, 0, 0},
		"not in place by now":   {base(statefulSet(t, envTemplate, "")), pod, statefulSetController, 0, 0},
		"scaled down":           {base(v2(`,"replicas":1`), second), pod, statefulSetController, 0, 0},
		"OnDelete":              {base(v2(`,"updateStrategy":{"type":"OnDelete"}`), second), pod, statefulSetController, 0, 0},
		"OnDelete, in place":    {base(asked, second), pod, statefulSetController, 0, 0},
		"failed":                {base(v2(""), second), failed, statefulSetController, 0, 0},
		"orphaned a moment ago": {broken(t), orphan, statefulSetController, 0, 409},
		"no living leader":      {base(v2(""), second), pod, statefulSetController, inplace.LeaderPatience + time.Second, 0},
		"by a user":             {base(v2(""), second), pod, "alice", 0, 0},
		"reading fails":         {broken(t), pod, statefulSetController, 0, 0},
		"the set is gone":       {reader(t), pod, statefulSetController, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlersWith(t, reader(t, lease(test.age)), test.live, test.live)
			given, _ := h.at("/validate-pod")(t.Context(), request(t, test.user, admissionv1.Delete, nil, test.pod))
			if test.code == 0 && !given.Allowed || test.code != 0 && given.Allowed {
				t.Fatalf("allowed is %t: %v", given.Allowed, given.Result)
			}
			if test.code != 0 && (given.Result.Code != test.code || !strings.HasPrefix(given.Result.Message, "held: stayput")) {
				t.Errorf("denied with %d %q", given.Result.Code, given.Result.Message)
			}
		})
	}
}

// TestLoweredPartitionIsANewStage: the hold of a stage whose pods are still to be marked lasts for a minute, whenever the stage begins.
func TestLoweredPartitionIsANewStage(t *testing.T) {
	live := reader(t)
	h := handlers(t, live, live)
	update := memberRevision(t, "b", v2Template)
	stage := func(partition string) *apps.StatefulSet {
		return statefulSet(t, v2Template, `,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":`+partition+`}}`)
	}
	began := time.Now()
	for _, test := range []struct {
		partition string
		after     time.Duration
		since     time.Duration
	}{{"1", 0, 0}, {"1", time.Minute, 0}, {"0", 2 * time.Minute, 2 * time.Minute}, {"0", 3 * time.Minute, 2 * time.Minute}} {
		set := stage(test.partition)
		if since := h.holdStarts.since(set, set.Spec.Template, update, began.Add(test.after)); !since.Equal(began.Add(test.since)) {
			t.Errorf("after %s at partition %s it is held since %s", test.after, test.partition, since.Sub(began))
		}
	}
}

// TestRevisionOfAMemberStays: the label of a partially patched pod names no revision.
func TestRevisionOfAMemberStays(t *testing.T) {
	first, second := memberRevision(t, "a", v1Template), memberRevision(t, "b", v2Template)
	world := func(pod *corev1.Pod) client.Reader {
		return reader(t, namespace(inplace.ModeInPlace), statefulSet(t, v2Template, ""), first, second, pod,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		user string
		code int32
	}{
		"a pod has it":                  {member("db-0", "db-a"), statefulSetController, 409},
		"no pod has it":                 {member("db-0", "db-b"), statefulSetController, 0},
		"by the DaemonSet's controller": {member("db-0", "db-a"), daemonSetController, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, world(test.pod), world(test.pod))
			given, err := h.at("/validate-revision")(t.Context(), request(t, test.user, admissionv1.Delete, nil, first))
			if err != nil || given.Allowed != (test.code == 0) || test.code != 0 && given.Result.Code != test.code {
				t.Errorf("allowed is %t, %v: %v", given.Allowed, given.Result, err)
			}
		})
	}
}

// TestEditOfAStatefulSet: without the opt-in there is neither a warning nor a refusal.
func TestEditOfAStatefulSet(t *testing.T) {
	unasked := statefulSet(t, v1Template, "")
	unasked.Labels = map[string]string{inplace.LabelUpdate: inplace.Native}
	asked := statefulSet(t, v1Template, `,"updateStrategy":{"type":"OnDelete"}`)
	asked.Labels = map[string]string{inplace.LabelUpdate: string(inplace.ModeInPlaceOnly)}
	for name, test := range map[string]struct {
		stored   *apps.StatefulSet
		template string
		code     int32
		warns    bool
	}{
		"in place":            {statefulSet(t, v1Template, ""), v2Template, 0, true},
		"needs new pods":      {statefulSet(t, v1Template, ""), envTemplate, 422, true},
		"OnDelete":            {statefulSet(t, v1Template, `,"updateStrategy":{"type":"OnDelete"}`), v2Template, 422, true},
		"OnDelete, in place":  {asked, v2Template, 0, true},
		"OnDelete, new pods":  {asked, envTemplate, 422, true},
		"without the opt-in":  {unasked, envTemplate, 0, false},
		"OnDelete, no opt-in": {unasked, v2Template, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := reader(t, namespace(inplace.ModeInPlaceOnly), test.stored, memberRevision(t, "a", v1Template), member("db-0", "db-a"),
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
			edited := test.stored.DeepCopy()
			edited.Spec.Template = *parse[apps.Template](t, test.template)
			h := handlers(t, live, live)
			given, err := h.validateWorkload(t.Context(), request(t, "alice", admissionv1.Update, edited, test.stored))
			if err != nil || given.Allowed != (test.code == 0) || test.code != 0 && given.Result.Code != test.code {
				t.Errorf("allowed is %t, %v: %v", given.Allowed, given.Result, err)
			}
			if warned := len(given.Warnings) > 0 || test.code != 0; warned != test.warns {
				t.Errorf("warnings are %q", given.Warnings)
			}
		})
	}
}

// TestMemberDeletionWaitsForStayput: the answer comes late until Stayput or the user has acted.
func TestMemberDeletionWaitsForStayput(t *testing.T) {
	first, second := memberRevision(t, "a", v1Template), memberRevision(t, "b", v2Template)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	world := func(set *apps.StatefulSet, pod *corev1.Pod) client.Reader {
		return reader(t, namespace(inplace.ModeInPlace), set, first, second, node, pod)
	}
	edited := statefulSet(t, v2Template, "")
	edited.Generation = 7
	before := world(statefulSet(t, v2Template, ""), member("db-1", "db-a"))
	for name, test := range map[string]struct {
		first, then client.Reader
		waits       [2]bool
	}{
		"nothing has happened":  {before, before, [2]bool{true, true}},
		"the pod is patched":    {before, world(statefulSet(t, v2Template, ""), member("db-1", "updating-in-place")), [2]bool{true, false}},
		"the user has edited":   {before, world(edited, member("db-1", "db-a")), [2]bool{true, false}},
		"the set is gone":       {before, reader(t, namespace(inplace.ModeInPlace)), [2]bool{true, false}},
		"it is not held":        {world(statefulSet(t, envTemplate, ""), member("db-1", "db-a")), broken(t), [2]bool{false, false}},
		"the cache is not read": {broken(t), broken(t), [2]bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			now := test.first
			changing := interceptor.NewClient(before.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
					return now.Get(ctx, key, into, options...)
				},
				List: func(ctx context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					return now.List(ctx, into, options...)
				},
			})
			futile := handlers(t, changing, changing).futile(observe.StatefulSets, member("db-1", "db-a"))
			first := futile(t.Context())
			now = test.then
			if waits := [2]bool{first, futile(t.Context())}; waits != test.waits {
				t.Errorf("it waits %v, want %v", waits, test.waits)
			}
		})
	}
}
