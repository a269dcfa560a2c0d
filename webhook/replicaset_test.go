package webhook

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
)

// editedTo returns a Deployment with this template, whose pods are those of web-1 with the v1 template.
func editedTo(t *testing.T, template string) []client.Object {
	t.Helper()
	return []client.Object{namespace(inplace.ModeInPlace), deployment(t, template), revision(t, "web-1", v1Template, "3")}
}

// moving returns a Deployment whose pods can move from web-1 to web-2.
func moving(t *testing.T) []client.Object {
	t.Helper()
	return append(editedTo(t, v2Template), revision(t, "web-2", v2Template, "0"))
}

func TestReplicaSetCreatedEmpty(t *testing.T) {
	const empty = `[{"op":"add","path":"/spec/replicas","value":0}]`
	stale := reader(t, namespace(inplace.ModeInPlace))
	for name, test := range map[string]struct {
		cached, live client.Reader
		user, patch  string
		template     string
	}{
		"the cache suffices to hold":   {reader(t, editedTo(t, v2Template)...), broken(t), deploymentController, empty, v2Template},
		"the cache is stale":           {stale, reader(t, editedTo(t, v2Template)...), deploymentController, empty, v2Template},
		"the edit is unknown to both":  {reader(t, editedTo(t, v1Template)...), broken(t), deploymentController, empty, v2Template},
		"a later edit is not possible": {reader(t, editedTo(t, envTemplate)...), broken(t), deploymentController, empty, v2Template},
		"not possible in place": {
			reader(t, editedTo(t, envTemplate)...), reader(t, editedTo(t, envTemplate)...), deploymentController, "", envTemplate},
		"the first revision": {
			reader(t, editedTo(t, v2Template)[:2]...), reader(t, editedTo(t, v2Template)[:2]...), deploymentController, "", v2Template},
		"made by a user":       {broken(t), broken(t), "jane", "", v2Template},
		"being deleted":        {reader(t, deleting(editedTo(t, v2Template))...), broken(t), deploymentController, empty, v2Template},
		"the cache fails":      {broken(t), reader(t, editedTo(t, v2Template)...), deploymentController, "", v2Template},
		"the API server fails": {stale, broken(t), deploymentController, "", v2Template},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, test.cached, test.live)
			req := request(t, test.user, admissionv1.Create, revision(t, "web-2", test.template, "1"), nil)
			expectPatch(t, h.handle(context.Background(), req, h.at("/mutate-replicaset")), test.patch)
		})
	}
}

func TestReplicaSetIsCreatedWithoutMarks(t *testing.T) {
	h := handlers(t, reader(t, editedTo(t, v2Template)...), broken(t))
	req := request(t, deploymentController, admissionv1.Create, markUpdating(revision(t, "web-2", v2Template, "1")), nil)
	expectPatch(t, h.handle(context.Background(), req, h.at("/mutate-replicaset")),
		`[{"op":"remove","path":"/metadata/labels/stayput.dev~1updating"},{"op":"add","path":"/spec/replicas","value":0}]`)
}

// TestCleanupHeld: a pod may be moving to a ReplicaSet that has no pods in the cache on which the Deployment controller decides to clean
// up.
func TestCleanupHeld(t *testing.T) {
	old := func() *apps.ReplicaSet { return revision(t, "web-1", v1Template, "0") }
	for name, test := range map[string]struct {
		live   client.Reader
		user   string
		delete *apps.ReplicaSet
		hold   client.Reader
		held   bool
	}{
		"pods move to it":            {reader(t, moving(t)...), deploymentController, markUpdating(old()), nil, true},
		"an old one":                 {broken(t), deploymentController, old(), nil, false},
		"another client":             {broken(t), "jane", markUpdating(old()), nil, false},
		"no Deployment":              {reader(t, namespace(inplace.ModeInPlace)), deploymentController, markUpdating(old()), nil, false},
		"reading fails":              {broken(t), deploymentController, markUpdating(old()), nil, false},
		"the leader has not renewed": {broken(t), deploymentController, markUpdating(old()), reader(t, lease(time.Minute)), false},
		"a persisted fallback": {
			reader(t, moving(t)...), deploymentController, markUpdating(old()),
			fallbackPersisted(t, "d", revisions.Fallback{Hash: "hash", Code: inplace.CodeRefused}), false},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, broken(t), test.live)
			if test.hold != nil {
				h.Hold.Reader = test.hold
			}
			response := h.handle(t.Context(), request(t, test.user, admissionv1.Delete, nil, test.delete), h.at("/validate-replicaset"))
			expectHeld(t, response.Allowed, test.held)
			if test.held {
				expectDenied(t, response, 404)
			}
		})
	}
}

// deleting makes the Deployment, the second of those objects, one that is being deleted without what it controls.
func deleting(objects []client.Object) []client.Object {
	objects[1].SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	objects[1].SetFinalizers([]string{metav1.FinalizerOrphanDependents})
	return objects
}

func TestReplicasHeld(t *testing.T) {
	stale, optedOut := reader(t, namespace(inplace.ModeInPlace)), moving(t)
	optedOut[1].SetLabels(map[string]string{inplace.LabelUpdate: string(inplace.ModeNative)})
	native := deleting(editedTo(t, envTemplate))
	for name, test := range map[string]struct {
		cached, live client.Reader
		user, to     string
		held         bool
	}{
		"the cache suffices to hold": {reader(t, moving(t)...), broken(t), deploymentController, "2", true},
		"the cache is stale":         {stale, reader(t, moving(t)...), deploymentController, "2", true},
		"nothing is being updated": {
			reader(t, editedTo(t, v1Template)...), reader(t, editedTo(t, v1Template)...), deploymentController, "2", false},
		"opted out":                   {reader(t, optedOut...), reader(t, optedOut...), deploymentController, "2", false},
		"other fields, same replicas": {reader(t, moving(t)...), reader(t, moving(t)...), deploymentController, "3", false},
		"another client": {
			broken(t), broken(t), "system:serviceaccount:kube-system:horizontal-pod-autoscaler", "2", false},
		"reading fails":                       {broken(t), reader(t, moving(t)...), deploymentController, "2", false},
		"the second reading fails too":        {stale, broken(t), deploymentController, "2", false},
		"being deleted":                       {reader(t, deleting(moving(t))...), broken(t), deploymentController, "2", true},
		"being deleted, unknown to the cache": {stale, reader(t, deleting(moving(t))...), deploymentController, "2", true},
		"being deleted, and scaled by a user": {broken(t), broken(t), "jane", "2", false},
		"being deleted, in a native rollout":  {reader(t, native...), reader(t, native...), deploymentController, "2", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, test.cached, test.live)
			before, now := revision(t, "web-1", v1Template, "3"), revision(t, "web-1", v1Template, test.to)
			response := h.handle(context.Background(), request(t, test.user, admissionv1.Update, now, before), h.at("/validate-replicaset"))
			expectHeld(t, response.Allowed, test.held)
			if test.held {
				expectDenied(t, response, 409)
			}
		})
	}
}

func TestReplicasAfterAFallback(t *testing.T) {
	for name, objects := range map[string][]client.Object{"native": moving(t), "being deleted": deleting(moving(t))} {
		web := objects[1].(*apps.Deployment)
		h := handlers(t, reader(t, objects...), reader(t, objects...)).afterFallback(t, web.UID, web.Spec.Template)
		before, now := revision(t, "web-1", v1Template, "3"), revision(t, "web-1", v1Template, "2")
		scaling := request(t, deploymentController, admissionv1.Update, now, before)
		if !h.handle(t.Context(), scaling, h.at("/validate-replicaset")).Allowed {
			t.Errorf("%s: scaling is held", name)
		}
	}
}

func TestScaleHeld(t *testing.T) {
	h := handlers(t, reader(t, moving(t)...), broken(t))
	before, now := scale(3), scale(0)
	req := request(t, deploymentController, admissionv1.Update, now, before)
	req.SubResource = "scale"
	expectDenied(t, h.handle(context.Background(), req, h.at("/validate-replicaset")), 409)
}

func TestNothingHeldWithoutLeader(t *testing.T) {
	for name, lease := range map[string]client.Reader{
		"no Lease":         reader(t),
		"an old Lease":     reader(t, lease(inplace.LeaderPatience+time.Second)),
		"unreadable Lease": broken(t),
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, reader(t, moving(t)...), reader(t, moving(t)...))
			h.Hold.Reader = lease
			before, now := revision(t, "web-1", v1Template, "3"), revision(t, "web-1", v1Template, "2")
			scaling := request(t, deploymentController, admissionv1.Update, now, before)
			expectDenied(t, h.handle(context.Background(), scaling, h.at("/validate-replicaset")), 0)
			creation := request(t, deploymentController, admissionv1.Create, revision(t, "web-2", v2Template, "1"), nil)
			expectPatch(t, h.handle(context.Background(), creation, h.at("/mutate-replicaset")), "")
		})
	}
}

// marked returns what moving returns, with the leader's mark.
func marked(t *testing.T, ago time.Duration) []client.Object {
	t.Helper()
	objects := moving(t)
	objects[3].GetLabels()[inplace.LabelUpdating] = strconv.FormatInt(time.Now().Add(-ago).Unix(), 10)
	return objects
}

// TestNothingIsHeldThatIsNotRenewed: if a living leader never gets to the workload, the hold does not last.
func TestNothingIsHeldThatIsNotRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		objects  []client.Object
		began    time.Duration
		revision string
		held     bool
	}{
		"not marked, just begun":                        {moving(t), 0, "", true},
		"not marked, and long begun":                    {moving(t), 2 * time.Minute, "", false},
		"an earlier update to the same update revision": {moving(t), 2 * time.Minute, "1", true},
		"marked just now":                               {marked(t, 0), 2 * time.Minute, "", true},
		"marked, and never renewed":                     {marked(t, 3*time.Minute), 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, reader(t, test.objects...), reader(t, test.objects...))
			h.holdStarts.Set(holdStart{workload: "d", updateRevision: "web-2", revision: test.revision}, time.Now().Add(-test.began), time.Hour)
			before, now := revision(t, "web-1", v1Template, "3"), revision(t, "web-1", v1Template, "2")
			response := h.handle(t.Context(), request(t, deploymentController, admissionv1.Update, now, before), h.at("/validate-replicaset"))
			expectHeld(t, response.Allowed, test.held)
		})
	}
}

// TestTheSameEditOnceMoreIsAnotherUpdate: an edit was long held, marked and undone. The user makes it again before the Deployment
// controller has seen the undo, so the revision has the same number.
func TestTheSameEditOnceMoreIsAnotherUpdate(t *testing.T) {
	start := holdStart{workload: "d", updateRevision: "web-2"}
	begun, again := reader(t, marked(t, 0)...), reader(t, moving(t)...)
	h := handlers(t, begun, begun)
	h.holdStarts.Set(start, time.Now().Add(-2*time.Minute), time.Hour)
	before, now := revision(t, "web-1", v1Template, "3"), revision(t, "web-1", v1Template, "2")
	scaling := request(t, deploymentController, admissionv1.Update, now, before)
	expectHeld(t, h.handle(t.Context(), scaling, h.at("/validate-replicaset")).Allowed, true)
	once := handlers(t, again, again)
	once.holdStarts = h.holdStarts
	expectHeld(t, once.handle(t.Context(), scaling, once.at("/validate-replicaset")).Allowed, true)
}

// TestEachUpdateWithoutAnUpdateRevisionIsHeld: two updates of some minutes apart, whose update revisions do not exist yet, are different
// ones.
func TestEachUpdateWithoutAnUpdateRevisionIsHeld(t *testing.T) {
	recreating := func(template string) Handlers {
		d := deployment(t, template)
		d.Spec.Replicas, d.Spec.Strategy.Type = new(int32(1)), appsv1.RecreateDeploymentStrategyType
		objects := reader(t, namespace(inplace.ModeInPlace), d, revision(t, "web-1", v1Template, "1"))
		return handlers(t, objects, objects)
	}
	held := func(h Handlers) bool {
		before, now := revision(t, "web-1", v1Template, "1"), revision(t, "web-1", v1Template, "0")
		scaling := request(t, deploymentController, admissionv1.Update, now, before)
		return !h.handle(t.Context(), scaling, h.at("/validate-replicaset")).Allowed
	}
	first := recreating(v2Template)
	if !held(first) {
		t.Fatal("the first update is not held")
	}
	start := holdStart{workload: "d", revision: deployment(t, v2Template).Spec.Template.Hash()}
	first.holdStarts.Set(start, time.Now().Add(-2*time.Minute), time.Hour)
	if held(first) {
		t.Error("the leader has never renewed the hold of the first update, and it is held forever")
	}
	second := recreating(strings.Replace(v2Template, "v2", "v3", 1))
	second.holdStarts = first.holdStarts
	if !held(second) {
		t.Error("the second update is not held")
	}
}

// TestTheHoldOutlastsAnEditInItsMiddle: the user edits the template again in the middle of an update, and the Deployment controller takes
// minutes to create the next ReplicaSet. The leader cannot mark that, but renews the marks that there are.
func TestTheHoldOutlastsAnEditInItsMiddle(t *testing.T) {
	for name, test := range map[string]struct {
		ago  time.Duration
		held bool
	}{
		"the leader renews the marks": {0, true},
		"it does not any more":        {3 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := marked(t, test.ago)
			last := deployment(t, strings.Replace(v2Template, "v2", "v3", 1))
			objects[1] = last
			h := handlers(t, reader(t, objects...), reader(t, objects...))
			h.holdStarts.Set(holdStart{workload: "d", revision: last.Spec.Template.Hash()}, time.Now().Add(-2*time.Minute), time.Hour)
			before, now := revision(t, "web-2", v2Template, "0"), revision(t, "web-2", v2Template, "1")
			response := h.handle(t.Context(), request(t, deploymentController, admissionv1.Update, now, before), h.at("/validate-replicaset"))
			expectHeld(t, response.Allowed, test.held)
		})
	}
}

// TestReplicasOfWhatIsBeingDeletedAreHeldToTheEnd: the leader does not renew the hold of a Deployment that is being deleted. It has
// removed its marks, and this replica may have held the update for long.
func TestReplicasOfWhatIsBeingDeletedAreHeldToTheEnd(t *testing.T) {
	h := handlers(t, reader(t, deleting(moving(t))...), broken(t))
	h.holdStarts.Set(holdStart{workload: "d", updateRevision: "web-2"}, time.Now().Add(-2*time.Minute), time.Hour)
	before, now := revision(t, "web-1", v1Template, "3"), revision(t, "web-1", v1Template, "2")
	response := h.handle(t.Context(), request(t, deploymentController, admissionv1.Update, now, before), h.at("/validate-replicaset"))
	expectDenied(t, response, 409)
}

// TestUndecidedIsAllowedWithWarning: the user is told of the failure, and does not wonder later why pods were recreated.
func TestUndecidedIsAllowedWithWarning(t *testing.T) {
	h := handlers(t, broken(t), broken(t))
	req := request(t, deploymentController, admissionv1.Create, revision(t, "web-2", v2Template, "1"), nil)
	response := h.handle(context.Background(), req, h.at("/mutate-replicaset"))
	if !response.Allowed || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], errRead.Error()) {
		t.Errorf("allowed %t with warnings %q", response.Allowed, response.Warnings)
	}
}

func scale(replicas int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "web-1", UID: "web-1"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}
}

func expectHeld(t *testing.T, allowed, held bool) {
	t.Helper()
	if allowed == held {
		t.Errorf("allowed is %t, held should be %t", allowed, held)
	}
}
