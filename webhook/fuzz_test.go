package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/internal/templates"
)

// answers are what the webhooks may answer: the codes that they deny with, and the differences that their patches make, in the notation
// of differences.
var answers = map[string]struct {
	denies  []int32
	changes string
}{
	"/mutate-workload": {nil, `^/metadata/annotations/` +
		`stayput\.dev~1(decision|in-place-annotations|restart-annotations|auxiliary) (gone|".*")$`},
	"/mutate-replicaset": {nil, `^(/spec/replicas 0|` +
		`/metadata/labels/stayput\.dev~1(updating|fallback|renewed|surge-replicas|replicas|bypassed|current) gone)$`},
	"/mutate-pod-status":      {nil, `^/status/conditions/\d+ {.*"type":"Ready"}$`},
	"/validate-new-pod":       {denies: []int32{409}},
	"/validate-workload":      {denies: []int32{422}},
	"/validate-in-place-only": {denies: []int32{422, 503}},
	"/validate-replicaset":    {denies: []int32{404, 409}},
	"/validate-status":        {denies: []int32{409}},
	"/validate-pod":           {denies: []int32{404, 409}},
	"/validate-revision":      {denies: []int32{409}},
	"/throttle-replicaset":    {},
	"/throttle-pod":           {},
}

// typed are the types of the objects that webhooks are called for, as the API server decodes them.
var typed = map[string]reflect.Type{
	"Deployment":         reflect.TypeFor[appsv1.Deployment](),
	"DaemonSet":          reflect.TypeFor[appsv1.DaemonSet](),
	"StatefulSet":        reflect.TypeFor[appsv1.StatefulSet](),
	"ReplicaSet":         reflect.TypeFor[appsv1.ReplicaSet](),
	"Scale":              reflect.TypeFor[autoscalingv1.Scale](),
	"ControllerRevision": reflect.TypeFor[appsv1.ControllerRevision](),
	"Pod":                reflect.TypeFor[corev1.Pod](),
}

var operations = []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}

// FuzzRequests sends objects of all sorts to every webhook in the middle of updates. Each request gets an answer that the webhook may
// give. A patch applies to the object that was sent, changes only what that webhook may change, and leaves nothing more to change: API
// servers may ask again.
func FuzzRequests(f *testing.F) {
	all := slices.Sorted(maps.Keys(answers))
	if called := slices.Sorted(maps.Keys(Calls())); !slices.Equal(all, called) {
		f.Fatalf("known are the answers of %q, called are %q", all, called)
	}
	for _, seed := range realRequests(f) {
		at, operation := uint8(slices.Index(all, seed.path)), uint8(slices.Index(operations, seed.Operation))
		f.Add(at, operation, seed.UserInfo.Username, string(seed.Object.Raw), string(seed.OldObject.Raw), uint64(0))
		for _, odd := range []string{`null`, `{}`, `{"metadata":null}`} {
			f.Add(at, operation, seed.UserInfo.Username, odd, odd, uint64(0))
			f.Add(at, operation, seed.UserInfo.Username, odd, string(seed.OldObject.Raw), uint64(0))
		}
	}
	f.Fuzz(func(t *testing.T, at, operation uint8, user, object, old string, disorder uint64) {
		req := admission.Request{}
		path, op := all[int(at)%len(all)], operations[int(operation)%len(operations)]
		random := rand.New(rand.NewPCG(disorder, 0))
		req.Operation, req.UserInfo.Username = op, user
		if op != admissionv1.Delete {
			req.Object.Raw = disordered(random, object, disorder)
		}
		if op != admissionv1.Create {
			req.OldObject.Raw = disordered(random, old, disorder)
		}
		if complete(path, &req) != nil {
			return
		}
		synctest.Test(t, func(t *testing.T) { checkAnswer(t, path, req) }) // so that throttled answers take no time
	})
}

// asked is a request to a webhook, and the code that it is denied with; 0 if it is allowed.
type asked struct {
	path string
	code int32
	admission.Request
}

// TestRealRequestsAreDecided: the seeds of FuzzRequests make webhooks deny and patch.
func TestRealRequestsAreDecided(t *testing.T) {
	for _, sent := range realRequests(t) {
		t.Run(sent.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock begins when the holds were renewed
				if err := complete(sent.path, &sent.Request); err != nil {
					t.Fatal(err)
				}
				answer := ask(t, servedWhileUpdating(t), sent.path, sent.Request)
				if answer.Allowed != (sent.code == 0) || !answer.Allowed && answer.Result.Code != sent.code {
					t.Errorf("answered %+v, want %d", answer, sent.code)
				}
				if patched := len(answer.Patch) > 0; patched != strings.HasPrefix(sent.path, "/mutate-") {
					t.Errorf("answered with patch %s", answer.Patch)
				}
			})
		})
	}
}

// TestPartsAreMissing sends the real requests without each part of their objects, and without each part of those parts, in turn.
func TestPartsAreMissing(t *testing.T) {
	for _, sent := range realRequests(t) {
		t.Run(sent.path, func(t *testing.T) {
			if err := complete(sent.path, &sent.Request); err != nil {
				t.Fatal(err)
			}
			for _, of := range []*[]byte{&sent.Object.Raw, &sent.OldObject.Raw} {
				whole := *of
				object, _ := tree(t, whole).(map[string]any)
				for _, less := range lesser(object, 2) {
					*of = []byte(templates.Text(less))
					synctest.Test(t, func(t *testing.T) { checkAnswer(t, sent.path, sent.Request) })
				}
				*of = whole
			}
		})
	}
}

// lesser returns copies of the object that lack one part, or have null there, down to so many levels.
func lesser(object map[string]any, levels int) []map[string]any {
	var all []map[string]any
	with := func(key string, part any) {
		one := maps.Clone(object)
		one[key] = part
		all = append(all, one)
	}
	for key, part := range object {
		with(key, nil)
		without := maps.Clone(object)
		delete(without, key)
		all = append(all, without)
		if inner, is := part.(map[string]any); is && levels > 1 {
			for _, less := range lesser(inner, levels-1) {
				with(key, less)
			}
		}
	}
	return all
}

// realRequests returns requests to each webhook as API servers send them while the objects of updating are stored.
func realRequests(t testing.TB) []asked {
	t.Helper()
	v1, v2 := deployment(t, v1Template), deployment(t, v2Template)
	web1, web2 := revision(t, "web-1", v1Template, "3"), revision(t, "web-2", v2Template, "1")
	listing, numbered, undone := deployment(t, v2Template), deployment(t, v2Template), deployment(t, v1Template)
	listing.Annotations = map[string]string{
		inplace.AnnotationInPlaceAnnotations: "example.com/note", inplace.AnnotationDecision: "in place: restarts app"}
	numbered.Annotations = map[string]string{inplace.AnnotationInPlaceAnnotations: "example.com/note", inplace.AnnotationRevision: "2"}
	undone.Annotations = map[string]string{inplace.AnnotationRevision: "2"}
	done := deployment(t, v2Template)
	done.Status = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}
	web2.Labels[inplace.LabelUpdating] = "1"
	cleaned := revision(t, "web-1", v1Template, "0")
	cleaned.Labels[inplace.LabelUpdating] = "946684800" // when the clock of synctest begins
	created, agent := pod(web2), outOfService(daemon("agent-x", "1"))
	created.Name, created.GenerateName, created.Spec.Containers = "", "web-2-", []corev1.Container{{Name: "app", Image: "web:v1"}}
	atPartition := `,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}`
	reported, out, overdue := onNodeOne(pod(web1)), outOfService(onNodeOne(pod(web1))), onNodeOne(pod(web1))
	reported.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	overdue.Status.Conditions = []corev1.PodCondition{readiness.TakenOutUntil(overdue, time.Unix(60, 0), time.Unix(0, 0))}
	updates, kubelet := admissionv1.Update, "system:node:one"
	return []asked{
		{"/mutate-workload", 0, request(t, "jane", updates, deployment(t, envTemplate), v1)},
		{"/mutate-workload", 0, request(t, "jane", updates, v1, listing)},
		{"/mutate-workload", 0, request(t, "jane", updates, undone, numbered)},
		{"/mutate-workload", 0, request(t, "jane", updates, daemonSet(t, v2Template), daemonSet(t, v1Template))},
		{"/mutate-workload", 0, request(t, "jane", updates, statefulSet(t, v2Template, ""), statefulSet(t, v1Template, ""))},
		{"/mutate-workload", 0, request(t, "jane", updates, statefulSet(t, envTemplate, atPartition), statefulSet(t, v1Template, atPartition))},
		{"/validate-in-place-only", 422, request(t, "jane", updates, statefulSet(t, envTemplate, ""), statefulSet(t, v1Template, ""))},
		{"/validate-workload", 422, request(t, "jane", updates, deployment(t, envTemplate), v1)},
		{"/validate-in-place-only", 422, request(t, "jane", updates, daemonSet(t, envTemplate), daemonSet(t, v1Template))},
		{"/mutate-replicaset", 0, request(t, deploymentController, admissionv1.Create, web2, nil)},
		{"/validate-replicaset", 409, request(t, deploymentController, updates, revision(t, "web-1", v1Template, "2"), web1)},
		{"/validate-replicaset", 404, request(t, deploymentController, admissionv1.Delete, nil, cleaned)},
		{"/throttle-replicaset", 0, request(t, deploymentController, updates, revision(t, "web-1", v1Template, "2"), web1)},
		{"/validate-status", 409, request(t, deploymentController, updates, done, v2)},
		{"/validate-new-pod", 409, request(t, replicaSetController, admissionv1.Create, created, nil)},
		{"/mutate-pod-status", 0, request(t, kubelet, updates, reported, out)},
		{"/mutate-pod-status", 0, request(t, kubelet, updates, reported, overdue)},
		{"/validate-pod", 404, request(t, replicaSetController, admissionv1.Delete, nil, pod(web1))},
		{"/validate-pod", 404, request(t, daemonSetController, admissionv1.Delete, nil, agent)},
		{"/validate-pod", 409, request(t, statefulSetController, admissionv1.Delete, nil, member("db-1", "db-a"))},
		{"/validate-revision", 409, request(t, daemonSetController, admissionv1.Delete, nil, controllerRevision(t, "1", v1Template))},
		{"/validate-revision", 409, request(t, statefulSetController, admissionv1.Delete, nil, memberRevision(t, "a", v1Template))},
		{"/throttle-pod", 0, request(t, replicaSetController, admissionv1.Delete, nil, pod(web1))},
		{"/throttle-pod", 0, request(t, daemonSetController, admissionv1.Delete, nil, agent)},
		{"/throttle-pod", 0, request(t, statefulSetController, admissionv1.Delete, nil, member("db-1", "db-a"))},
	}
}

// stored is made once, because that takes most of the time. In every synctest bubble the clock begins at the same time: no hold has
// expired.
var stored struct {
	once          sync.Once
	objects, hold client.Reader
}

func servedWhileUpdating(t *testing.T) http.Handler {
	t.Helper()
	stored.once.Do(func() { stored.objects, stored.hold = reader(t, updating(t)...), reader(t, lease(0)) })
	return served(handlersWith(t, stored.hold, stored.objects, stored.objects))
}

// complete fills in what the API server says about the object, as far as that can be told. The error says why there can be no such
// request.
func complete(path string, req *admission.Request) error {
	for _, raw := range [][]byte{req.Object.Raw, req.OldObject.Raw} {
		if raw != nil && !json.Valid(raw) {
			return fmt.Errorf("no JSON: %s", raw)
		}
	}
	name, kind := named(req.Object.Raw)
	if old, oldKind := named(req.OldObject.Raw); old != "" { // as in the path of the request
		name, kind = old, oldKind
	}
	if kinds := Calls()[path].Kinds; !slices.Contains(kinds, kind) {
		kind = kinds[0]
	}
	if name == "" && req.Operation != admissionv1.Create {
		name = "web"
	}
	req.UID, req.Namespace, req.Name, req.Kind = "request", space, name, metav1.GroupVersionKind{Version: "v1", Kind: kind}
	if strings.HasSuffix(path, "-status") {
		req.SubResource = "status"
	}
	if strings.HasPrefix(req.UserInfo.Username, "system:node:") {
		req.UserInfo.Groups = []string{"system:nodes"}
	}
	return nil
}

func named(raw []byte) (name, kind string) {
	var object struct {
		Kind     string
		Metadata struct{ Name string }
	}
	_ = json.Unmarshal(raw, &object) // what is no object has no name
	return object.Metadata.Name, object.Kind
}

func checkAnswer(t *testing.T, path string, req admission.Request) {
	t.Helper()
	server := servedWhileUpdating(t)
	answer, may := ask(t, server, path, req), answers[path]
	if answer.UID != req.UID {
		t.Errorf("the answer is to request %q", answer.UID)
	}
	if !answer.Allowed {
		if len(answer.Patch) > 0 || !slices.Contains(may.denies, answer.Result.Code) {
			t.Errorf("denied with %+v and patch %s, want one of %v", answer.Result, answer.Patch, may.denies)
		}
		return
	}
	if len(answer.Patch) == 0 {
		return
	}
	after, err := applied(req.Object.Raw, answer.Patch)
	if err != nil {
		t.Fatalf("%v: %s", err, answer.Patch)
	}
	for _, difference := range differences("", tree(t, req.Object.Raw), tree(t, after)) {
		if may.changes == "" || !regexp.MustCompile(may.changes).MatchString(difference) {
			t.Errorf("%s by %s", difference, answer.Patch)
		}
	}
	if kind := typed[req.Kind.Kind]; json.Unmarshal(req.Object.Raw, reflect.New(kind).Interface()) == nil {
		if err := json.Unmarshal(after, reflect.New(kind).Interface()); err != nil {
			t.Errorf("made %s of it: %v", after, err)
		}
	}
	req.Object.Raw = after
	if again := ask(t, server, path, req); len(again.Patch) > 0 || !again.Allowed {
		t.Errorf("after %s, asked again about %s: %+v %s", answer.Patch, after, again, again.Patch)
	}
}

// applied returns the object after the patch, as the API server applies it.
func applied(object, operations []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	return patch.Apply(object)
}

// tree returns the value of the JSON, with its numbers as they are written; nil if there is no JSON.
func tree(t *testing.T, raw []byte) any {
	t.Helper()
	if raw == nil {
		return nil
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// differences returns the places in which two trees differ, each with its value in the second one. Elements of lists are compared as a
// whole. A missing map or list equals an empty one.
func differences(at string, before, after any) []string {
	var all []string
	wasMap, _ := before.(map[string]any)
	isMap, isOne := after.(map[string]any)
	wasList, _ := before.([]any)
	isList, isOneList := after.([]any)
	switch {
	case isOne && (wasMap != nil || before == nil):
		keys := maps.Clone(wasMap)
		if keys == nil {
			keys = map[string]any{}
		}
		maps.Copy(keys, isMap)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if now, has := isMap[key]; has {
				all = append(all, differences(at+patches.Pointer(key), wasMap[key], now)...)
			} else {
				all = append(all, at+patches.Pointer(key)+" gone")
			}
		}
	case isOneList && len(isList) >= len(wasList) && (wasList != nil || before == nil):
		for i, now := range isList {
			if i >= len(wasList) || !reflect.DeepEqual(wasList[i], now) {
				all = append(all, fmt.Sprintf("%s/%d %s", at, i, templates.Text(now)))
			}
		}
	case !reflect.DeepEqual(before, after):
		all = append(all, at+" "+templates.Text(after))
	}
	return all
}

// disordered returns the object with one to three parts removed, added or replaced. With disorder 0, or if it is no JSON, the object
// stays as it is.
func disordered(random *rand.Rand, object string, disorder uint64) []byte {
	var tree any
	decoder := json.NewDecoder(strings.NewReader(object))
	decoder.UseNumber()
	if disorder == 0 || decoder.Decode(&tree) != nil {
		return []byte(object)
	}
	for range 1 + random.IntN(3) {
		tree = disordering(random, tree)
	}
	return []byte(templates.Text(tree))
}

var (
	oddValues = []string{`null`, `{}`, `[]`, `""`, `"web"`, `"2030-01-01T00:00:00Z"`, `0`, `-1`, `2147483648`, `1e400`, `0.5`, `true`,
		`{"a":null}`, `[null]`, `[{}]`}
	oddKeys = slices.Concat(inplace.Marks, []string{
		inplace.AnnotationDecision, inplace.AnnotationMove, inplace.AnnotationRestarts,
		inplace.LabelUpdate, inplace.LabelKinds, inplace.AnnotationPartition, inplace.AnnotationDrain, inplace.AnnotationMaintenanceWindow,
		inplace.AnnotationRestartAnnotations, inplace.AnnotationAuxiliary, inplace.AnnotationUpdateLast,
		"metadata", "spec", "status", "annotations", "labels", "conditions", "Metadata", "a/b~c"})
)

// disordering removes, adds or replaces one part.
func disordering(random *rand.Rand, of any) any {
	replaced := random.IntN(8) == 0
	switch of := of.(type) {
	case map[string]any:
		keys := append(slices.Sorted(maps.Keys(of)), oddKeys[random.IntN(len(oddKeys))])
		key := keys[random.IntN(len(keys))]
		if replaced {
			delete(of, key)
		} else {
			of[key] = disordering(random, of[key])
		}
		return of
	case []any:
		if len(of) > 0 && !replaced {
			i := random.IntN(len(of))
			of[i] = disordering(random, of[i])
			return of
		}
	}
	return json.RawMessage(oddValues[random.IntN(len(oddValues))])
}
