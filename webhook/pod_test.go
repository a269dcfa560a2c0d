package webhook

import (
	"context"
	"slices"
	"strconv"
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
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

func TestPodDeletionHeld(t *testing.T) {
	marked, unmarked := markUpdating(revision(t, "web-1", v1Template, "2")), revision(t, "web-1", v1Template, "2")
	copied, recreated := markUpdating(revision(t, "web-1", v1Template, "2")), markUpdating(revision(t, "web-1", v1Template, "2"))
	copied.OwnerReferences = nil
	recreated.UID = "another"
	web := deployment(t, v2Template)
	surge := map[string]string{inplace.AnnotationSurgePod: "true"}
	going := map[string]string{inplace.AnnotationSurgePod: "true", corev1.PodDeletionCost: "-2147483648"}
	for name, test := range map[string]struct {
		live        client.Reader
		user        string
		age         time.Duration
		code        int32
		annotations map[string]string
	}{
		"updating, and it is a surge pod":           {reader(t, web, marked), replicaSetController, 0, 404, surge},
		"updating, and it is a surge pod to remove": {broken(t), replicaSetController, 0, 0, going},
		"updating":                       {reader(t, web, marked), replicaSetController, 0, 404, nil},
		"not updating":                   {reader(t, web, unmarked), replicaSetController, 0, 0, nil},
		"another client":                 {broken(t), "jane", 0, 0, nil},
		"no living leader":               {reader(t, web, marked), replicaSetController, inplace.LeaderPatience + time.Second, 0, nil},
		"the ReplicaSet is gone":         {reader(t, web), replicaSetController, 0, 0, nil},
		"another ReplicaSet of the name": {reader(t, web, recreated), replicaSetController, 0, 0, nil},
		"a copied mark":                  {reader(t, web, copied), replicaSetController, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, reader(t, web, marked), test.live)
			h.Hold.Reader = reader(t, lease(test.age))
			deleted := pod(unmarked)
			deleted.Annotations = test.annotations
			req := request(t, test.user, admissionv1.Delete, nil, deleted)
			expectDenied(t, h.handle(context.Background(), req, h.at("/validate-pod")), test.code)
		})
	}
}

// TestPodsOfAnUpdateThatFellBack: an update with a persisted fallback may have left marks that Stayput cannot remove.
func TestPodsOfAnUpdateThatFellBack(t *testing.T) {
	marked, web := markUpdating(revision(t, "web-1", v1Template, "0")), deployment(t, v2Template)
	objects := []client.Object{namespace(inplace.ModeInPlace), web, marked}
	for name, test := range map[string]struct {
		workload types.UID
		code     string
		passes   bool
	}{
		"it fell back":                 {web.UID, inplace.CodeNativeRollout, true},
		"Stayput's writes are refused": {web.UID, inplace.CodeRefused, true},
		"another workload fell back":   {"another", inplace.CodeFailing, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, reader(t, objects...), reader(t, objects...))
			h.Hold.Reader = fallbackPersisted(t, test.workload, revisions.Fallback{Hash: "hash", Code: test.code})
			deletion := h.handle(t.Context(), request(t, replicaSetController, admissionv1.Delete, nil, pod(marked)), h.at("/validate-pod"))
			if deletion.Allowed != test.passes {
				t.Errorf("deletion allowed: %t", deletion.Allowed)
			}
			create := request(t, replicaSetController, admissionv1.Create, pod(marked), nil)
			if creation := h.handle(t.Context(), create, h.at("/validate-new-pod")); creation.Allowed != test.passes {
				t.Errorf("creation of a pod too many allowed: %t", creation.Allowed)
			}
		})
	}
}

// TestPodCreationHeld: the ReplicaSet controller may see that a pod has left before it sees that there are to be fewer. Where pods come,
// it may see that there are to be more before it sees the pods.
func TestPodCreationHeld(t *testing.T) {
	web := deployment(t, v2Template)
	full, lacking := markUpdating(revision(t, "web-1", v1Template, "1")), markUpdating(revision(t, "web-1", v1Template, "2"))
	unmarked, there, another := revision(t, "web-1", v1Template, "1"), pod(full), pod(full)
	another.Name = "web-y"
	dying := pod(full)
	dying.DeletionTimestamp, dying.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/hold"}
	all := func(objects ...client.Object) client.Reader {
		return reader(t, append(objects, namespace(inplace.ModeInPlace), web)...)
	}
	noPods := without(t, &corev1.PodList{}, full, namespace(inplace.ModeInPlace), web)
	for name, test := range map[string]struct {
		cached, live client.Reader
		user         string
		age          time.Duration
		code         int32
	}{
		"all are there":  {all(full, there), all(full, there), replicaSetController, 0, 409},
		"one too many":   {all(full, there, another), all(full, there, another), replicaSetController, 0, 409},
		"one is missing": {all(lacking, there), all(lacking, there), replicaSetController, 0, 0},
		"one goes":       {all(full, dying), all(full, dying), replicaSetController, 0, 0},
		"the cache does not know that it is full":           {all(lacking, there), all(full, there), replicaSetController, 0, 409},
		"the cache does not know that a pod has come":       {all(full), all(full, there), replicaSetController, 0, 409},
		"the cache does not know that there are to be more": {all(full, there), all(lacking, there), replicaSetController, 0, 0},
		"the cache does not know of the mark":               {all(unmarked, there), all(full, there), replicaSetController, 0, 409},
		"the cache cannot list pods, and all are there":     {noPods, all(full, there), replicaSetController, 0, 409},
		"the cache cannot list pods, and one is missing":    {noPods, all(lacking, there), replicaSetController, 0, 0},
		"the ReplicaSet is deleted just now":                {all(full, there), deletedNow(t, full, web), replicaSetController, 0, 0},
		"no update":                                         {all(unmarked, there), all(unmarked, there), replicaSetController, 0, 0},
		"no living leader": {
			all(full, there), broken(t), replicaSetController, inplace.LeaderPatience + time.Second, 0},
		"the mark is removed":                               {all(full, there), all(unmarked, there), replicaSetController, 0, 0},
		"the API server cannot be read":                     {all(full, there), broken(t), replicaSetController, 0, 409},
		"the API server cannot be read, and one is missing": {all(lacking, there), broken(t), replicaSetController, 0, 0},
		"neither the API server nor the cache can be read":  {broken(t), broken(t), replicaSetController, 0, 0},
		"another client":                                    {broken(t), broken(t), "jane", 0, 0},
		"the DaemonSet controller":                          {broken(t), broken(t), daemonSetController, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, test.cached, test.live)
			h.Hold.Reader = reader(t, lease(test.age))
			created := pod(full)
			created.Name, created.UID = "", ""
			req := request(t, test.user, admissionv1.Create, created, nil)
			expectDenied(t, h.handle(context.Background(), req, h.at("/validate-new-pod")), test.code)
		})
	}
}

// TestOnlyMetadataIsRead: whether a deletion or a creation is held depends on marks and owners, so the API server sends no templates. Only
// where a creation may be held, the replicas are read, too.
func TestOnlyMetadataIsRead(t *testing.T) {
	const metadata = "*v1.PartialObjectMetadata shop/"
	web, unmarked := deployment(t, v2Template), revision(t, "web-1", v1Template, "1")
	marked := markUpdating(revision(t, "web-1", v1Template, "1"))
	for name, test := range map[string]struct {
		rs        *apps.ReplicaSet
		operation admissionv1.Operation
		code      int32
		gets      []string
	}{
		"a creation": {unmarked, admissionv1.Create, 0, []string{metadata + "web-1"}},
		"a creation in an update": {marked, admissionv1.Create, 409,
			[]string{metadata + "web-1", metadata + "web", "*apps.ReplicaSet shop/web-1"}},
		"a deletion":                    {unmarked, admissionv1.Delete, 0, []string{metadata + "web-1"}},
		"a deletion in an update, held": {marked, admissionv1.Delete, 404, []string{metadata + "web-1", metadata + "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			asked, objects := &reads{}, []client.Object{web, test.rs, pod(test.rs)}
			h := handlers(t, reader(t, objects...), asked.counting(t, objects...))
			req, handle := request(t, replicaSetController, test.operation, nil, pod(test.rs)), h.at("/validate-pod")
			if test.operation == admissionv1.Create {
				req, handle = request(t, replicaSetController, test.operation, pod(test.rs), nil), h.at("/validate-new-pod")
			}
			expectDenied(t, h.handle(t.Context(), req, handle), test.code)
			if !slices.Equal(asked.gets, test.gets) {
				t.Errorf("read were %q, want %q", asked.gets, test.gets)
			}
			if len(asked.lists) > 0 {
				t.Errorf("the API server was asked for pods that the cache has: %q", asked.lists)
			}
		})
	}
}

// TestCreationsAreCountedNowAndThen: however many pods are created, the API server is not asked to count the pods of their ReplicaSet for
// each.
func TestCreationsAreCountedNowAndThen(t *testing.T) {
	web, lacking := deployment(t, v2Template), markUpdating(revision(t, "web-1", v1Template, "2"))
	whole, ok := reader(t, web, lacking, pod(lacking), namespace(inplace.ModeInPlace)).(client.WithWatch)
	if !ok {
		t.Fatal("the fake client cannot be intercepted")
	}
	asked := 0
	live := interceptor.NewClient(whole, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, pods := list.(*corev1.PodList); pods {
				asked++
			}
			return c.List(ctx, list, options...)
		}})
	h := handlers(t, whole, live)
	for range 50 {
		created := pod(lacking)
		created.Name, created.UID = "", ""
		create := request(t, replicaSetController, admissionv1.Create, created, nil)
		expectDenied(t, h.handle(context.Background(), create, h.at("/validate-new-pod")), 0)
	}
	if most := recounts().Burst() + 5; asked == 0 || asked > most {
		t.Errorf("asked %d times for 50 creations, want some, and %d at most", asked, most)
	}
}

func TestDaemonDeletionHeld(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	pod, other, elsewhere := daemon("agent-x", "1"), daemon("agent-y", "1"), daemon("agent-z", "1")
	elsewhere.Spec.NodeName = "two"
	first, second := controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template)
	base := func(template string, others ...client.Object) client.Reader {
		return reader(t, append(others, namespace(inplace.ModeInPlace), daemonSet(t, template), first, pod)...)
	}
	orphan := daemon("agent-x", "1")
	orphan.OwnerReferences = nil
	failed := daemon("agent-x", "1")
	failed.Status.Phase = corev1.PodFailed
	for name, test := range map[string]struct {
		live client.Reader
		pod  *corev1.Pod
		user string
		age  time.Duration
		code int32
	}{
		"in place":                   {base(v2Template, node, second), pod, daemonSetController, 0, 409},
		"no revision yet":            {base(v2Template, node), pod, daemonSetController, 0, 409},
		"a pod elsewhere":            {base(v2Template, node, second, elsewhere), pod, daemonSetController, 0, 409},
		"moved a moment ago":         {base(v2Template, node, second), daemon("agent-x", "2"), daemonSetController, 0, 409},
		"not in place by now":        {base(envTemplate, node), pod, daemonSetController, 0, 0},
		"node gone":                  {base(v2Template, second), pod, daemonSetController, 0, 0},
		"one of several on the node": {base(v2Template, node, second, other), pod, daemonSetController, 0, 0},
		"failed":                     {base(v2Template, node, second), failed, daemonSetController, 0, 0},
		"orphaned a moment ago":      {broken(t), orphan, daemonSetController, 0, 409},
		"no living leader":           {base(v2Template, node, second), pod, daemonSetController, inplace.LeaderPatience + time.Second, 0},
		"another client":             {broken(t), pod, "jane", 0, 0},
		"the ReplicaSet controller":  {base(v2Template, node, second), pod, replicaSetController, 0, 0},
		"the DaemonSet is gone":      {reader(t), pod, daemonSetController, 0, 0},
		"the namespace is not managed": {
			reader(t, namespace(""), node, daemonSet(t, v2Template), first, second, pod), pod, daemonSetController, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, test.live, test.live)
			h.Hold.Reader = reader(t, lease(test.age))
			req := request(t, test.user, admissionv1.Delete, nil, test.pod)
			expectDenied(t, h.handle(context.Background(), req, h.at("/validate-pod")), test.code)
		})
	}
}

// TestDaemonDeletionAfterAFallback checks that pods that moved already stay.
func TestDaemonDeletionAfterAFallback(t *testing.T) {
	agent := daemonSet(t, v2Template)
	first, second := controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	for revision, code := range map[string]int32{"1": 0, "2": 409} {
		pod := daemon("agent-x", revision)
		all := reader(t, namespace(inplace.ModeInPlace), agent, first, second, node, pod)
		h := handlers(t, all, all).afterFallback(t, agent.UID, agent.Spec.Template)
		req := request(t, daemonSetController, admissionv1.Delete, nil, pod)
		expectDenied(t, h.handle(context.Background(), req, h.at("/validate-pod")), code)
	}
}

// TestRevisionOfAPodThatIsPartiallyPatchedStays: the label of a partially patched pod names no revision. So the DaemonSet controller
// takes the pod's revision for one that no pod has.
func TestRevisionOfAPodThatIsPartiallyPatchedStays(t *testing.T) {
	first, second := controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template)
	partial := daemon("agent-x", podstate.HashPartial)
	partial.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "1"}.String()}
	applied := daemon("agent-x", "2")
	world := func(pod *corev1.Pod, objects ...client.Object) client.Reader {
		return reader(t, append(objects, namespace(inplace.ModeInPlace), daemonSet(t, v2Template), first, pod)...)
	}
	for name, test := range map[string]struct {
		cached, live client.Reader
		user         string
		age          time.Duration
		code         int32
	}{
		"the cache suffices to hold":      {world(partial, second), broken(t), daemonSetController, 0, 409},
		"the cache is late":               {world(applied, second), world(partial, second), daemonSetController, 0, 409},
		"the cache has no such DaemonSet": {reader(t, namespace(inplace.ModeInPlace)), world(partial, second), daemonSetController, 0, 409},
		"a pod has the revision again":    {world(applied, second), world(daemon("agent-x", "1"), second), daemonSetController, 0, 409},
		"no pod is of it":                 {world(applied, second), world(applied, second), daemonSetController, 0, 0},
		"another client":                  {broken(t), broken(t), "jane", 0, 0},
		"no living leader": {
			world(partial, second), world(partial, second), daemonSetController, inplace.LeaderPatience + time.Second, 0},
		"reading fails":                 {broken(t), world(partial, second), daemonSetController, 0, 0},
		"the API server cannot be read": {world(applied, second), broken(t), daemonSetController, 0, 0},
		"the namespace has no label any more": {
			reader(t, namespace(""), daemonSet(t, v2Template), first, second, partial),
			reader(t, namespace(""), daemonSet(t, v2Template), first, second, partial), daemonSetController, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, test.cached, test.live)
			h.Hold.Reader = reader(t, lease(test.age))
			req := request(t, test.user, admissionv1.Delete, nil, first)
			expectDenied(t, h.handle(t.Context(), req, h.at("/validate-revision")), test.code)
		})
	}
}

func TestRevisionOfAPartiallyPatchedPodAfterAFallback(t *testing.T) {
	agent := daemonSet(t, v2Template)
	first, second := controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template)
	partial := daemon("agent-x", podstate.HashPartial)
	partial.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "1"}.String()}
	all := reader(t, namespace(inplace.ModeInPlace), agent, first, second, partial)
	h := handlers(t, all, all).afterFallback(t, agent.UID, agent.Spec.Template)
	req := request(t, daemonSetController, admissionv1.Delete, nil, first)
	expectDenied(t, h.handle(t.Context(), req, h.at("/validate-revision")), 409)
}

// TestRevisionThatPodsAreOnTheirWayToStays: the label of a pod names the revision only once the pod has been patched for it. Until then
// the DaemonSet controller may take the revision for an old one: its cache may be older than the last edit, or newer than the plan.
func TestRevisionThatPodsAreOnTheirWayToStays(t *testing.T) {
	first, current := controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template)
	former := controllerRevision(t, "3", envTemplate)
	marked := former.DeepCopy()
	marked.Labels[inplace.LabelUpdating] = strconv.FormatInt(time.Now().Unix(), 10)
	for name, test := range map[string]struct {
		revision *apps.ControllerRevision
		code     int32
	}{
		"of the DaemonSet's template":      {current, 409},
		"of an update that has just ended": {marked, 409},
		"of a former template":             {former, 0},
	} {
		t.Run(name, func(t *testing.T) {
			world := reader(t, namespace(inplace.ModeInPlace), daemonSet(t, v2Template), first, current, former, daemon("agent-x", "1"))
			req := request(t, daemonSetController, admissionv1.Delete, nil, test.revision)
			h := handlers(t, world, world)
			expectDenied(t, h.handle(t.Context(), req, h.at("/validate-revision")), test.code)
		})
	}
}

// outOfService returns the pod as the leader has just taken it out of service, for a minute at most.
func outOfService(pod *corev1.Pod) *corev1.Pod {
	now := time.Now()
	pod.Status.Conditions = []corev1.PodCondition{readiness.TakenOutUntil(pod, now.Add(time.Minute), now)}
	return pod
}

// TestDeletionsThatTheCacheMayDeny: the cache may deny a deletion only where the controller is sure to look again, even if all managers die
// at this moment. After a Conflict it tries again by itself; after NotFound it looks again when the kubelet puts the pod back.
func TestDeletionsThatTheCacheMayDeny(t *testing.T) {
	web := deployment(t, v2Template)
	unmarked, marked := revision(t, "web-1", v1Template, "2"), markUpdating(revision(t, "web-1", v1Template, "2"))
	first, second := controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	agents := func(template string) client.Reader {
		return reader(t, namespace(inplace.ModeInPlace), daemonSet(t, template), first, second, node, daemon("agent-x", "1"))
	}
	shop := func(rs *apps.ReplicaSet) client.Reader { return reader(t, namespace(inplace.ModeInPlace), web, rs) }
	for name, test := range map[string]struct {
		cached, live client.Reader
		pod          *corev1.Pod
		user         string
		code         int32
	}{
		"a mark that is only in the cache":    {shop(marked), shop(unmarked), outOfService(pod(marked)), replicaSetController, 0},
		"a mark that is not yet in the cache": {shop(unmarked), shop(marked), outOfService(pod(marked)), replicaSetController, 404},
		"a daemon pod is updated":             {agents(v2Template), broken(t), outOfService(daemon("agent-x", "1")), daemonSetController, 404},
		"a daemon pod in service":             {agents(v2Template), broken(t), daemon("agent-x", "1"), daemonSetController, 409},
		"a daemon pod in service, the cache knows no update": {
			agents(envTemplate), agents(v2Template), daemon("agent-x", "1"), daemonSetController, 409},
		"a daemon pod that is not updated": {agents(envTemplate), agents(envTemplate), daemon("agent-x", "1"), daemonSetController, 0},
		"the cache knows no update": {
			agents(envTemplate), agents(v2Template), outOfService(daemon("agent-x", "1")), daemonSetController, 404},
		"the cache lacks the DaemonSet": {
			reader(t, namespace(inplace.ModeInPlace), node), agents(v2Template), outOfService(daemon("agent-x", "1")), daemonSetController, 404},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, test.cached, test.live)
			req := request(t, test.user, admissionv1.Delete, nil, test.pod)
			expectDenied(t, h.handle(t.Context(), req, h.at("/validate-pod")), test.code)
		})
	}
}
