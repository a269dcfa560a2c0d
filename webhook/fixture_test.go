package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/internal/observe"
	"github.com/stayput/stayput/internal/watchdog"
)

// The users of the native controllers of DaemonSets and of StatefulSets.
var (
	daemonSetController   = observe.DaemonSets.PodsBy
	statefulSetController = observe.StatefulSets.PodsBy
)

const (
	space = "shop"
	own   = "stayput-system"

	v1Template  = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"web:v1"}]}}`
	v2Template  = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"web:v2"}]}}`
	envTemplate = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[` +
		`{"name":"app","image":"web:v1","env":[{"name":"A","value":"b"}]}]}}`
)

var errRead = errors.New("the API server is on fire")

// reader returns a client that serves these objects.
func reader(t testing.TB, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme, autoscalingv2.AddToScheme,
		policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	byNode := func(pod client.Object) []string { return []string{pod.(*corev1.Pod).Spec.NodeName} }
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&corev1.Pod{}, "spec.nodeName", byNode).Build()
}

// broken returns a client whose reads fail.
func broken(t *testing.T) client.Reader {
	t.Helper()
	whole, ok := reader(t).(client.WithWatch)
	if !ok {
		t.Fatal("the fake client cannot be intercepted")
	}
	return interceptor.NewClient(whole, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errRead
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errRead },
	})
}

// onlyNamespaces returns a client that serves the namespaces among these objects; all other reads fail.
func onlyNamespaces(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	return interceptor.NewClient(reader(t, objects...).(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, is := into.(*corev1.Namespace); !is {
				return errRead
			}
			return c.Get(ctx, key, into, options...)
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errRead },
	})
}

// without returns a client that serves these objects; lists of that type fail.
func without(t *testing.T, failing client.ObjectList, objects ...client.Object) client.Reader {
	t.Helper()
	return interceptor.NewClient(reader(t, objects...).(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if reflect.TypeOf(into) == reflect.TypeOf(failing) {
				return errRead
			}
			return c.List(ctx, into, options...)
		},
	})
}

// deletedNow returns a client that serves these objects, but no ReplicaSet except its metadata: it is deleted between the two reads.
func deletedNow(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	return interceptor.NewClient(reader(t, objects...).(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, is := into.(*apps.ReplicaSet); is {
				return apierrors.NewNotFound(appsv1.Resource("replicasets"), key.Name)
			}
			return c.Get(ctx, key, into, options...)
		},
	})
}

// handlers returns the handlers of a process whose leader is alive.
func handlers(t *testing.T, cached, live client.Reader) Handlers {
	t.Helper()
	return handlersWith(t, reader(t, lease(0)), cached, live)
}

// at returns the handler of a webhook, which does not ask whether the namespace is labelled.
func (h Handlers) at(path string) handler { return h.routes()[path].handler }

// handlersWith returns the handlers of a process that reads the Lease of the leader from hold.
func handlersWith(t *testing.T, hold, cached, live client.Reader) Handlers {
	t.Helper()
	excluded := []string{"kube-system", own}
	return Handlers{
		Sources: Sources{
			Cached: observe.Reader{Reader: cached, ExcludedNamespaces: excluded},
			Live:   observe.Reader{Reader: live, ExcludedNamespaces: excluded},
			Hold:   observe.Hold{Reader: hold, Namespace: own},
			Log:    testr.New(t),
		},
		Watchdog: &watchdog.Watchdog{},

		holdStarts: holdStarts{cache.NewExpiring()},
		throttled:  throttledByUser(),
		recounts:   recounts(),
		retries:    newRetries(),
	}
}

// fallbackPersisted serves a Lease that is renewed, and a persisted fallback of the workload.
func fallbackPersisted(t *testing.T, workload types.UID, fallback revisions.Fallback) client.Reader {
	t.Helper()
	fallbacks := revisions.Fallbacks{}
	fallbacks.Add(&metav1.ObjectMeta{UID: workload}, fallback, time.Now())
	return reader(t, lease(0), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: inplace.Fallbacks}, Data: fallbacks})
}

// afterFallback returns the handlers once the update of the workload to that template fell back.
func (h Handlers) afterFallback(t *testing.T, workload types.UID, template apps.Template) Handlers {
	t.Helper()
	h.Hold.Reader = fallbackPersisted(t, workload, revisions.Fallback{Hash: template.Hash(), Code: inplace.CodeRefused})
	h.Cached.Hold, h.Live.Hold = h.Hold, h.Hold
	return h
}

func lease(age time.Duration) *coordinationv1.Lease {
	holder, renewed := "stayput-1", metav1.NewMicroTime(time.Now().Add(-age))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: inplace.Lease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed},
	}
}

func namespace(mode inplace.Mode) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space, Labels: map[string]string{
		inplace.LabelUpdate: string(mode), inplace.LabelKinds: "deployments.daemonsets.statefulsets"}}}
}

// parse decodes JSON as the API server would send it.
func parse[T any](t testing.TB, raw string) *T {
	t.Helper()
	parsed := new(T)
	if err := json.Unmarshal([]byte(raw), parsed); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return parsed
}

func deployment(t testing.TB, template string) *apps.Deployment {
	t.Helper()
	return parse[apps.Deployment](t, `{"apiVersion":"apps/v1","kind":"Deployment",
		"metadata":{"namespace":"shop","name":"web","uid":"d","labels":{"app":"web"}},
		"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"strategy":{"type":"RollingUpdate"},"template":`+template+`}}`)
}

// revision returns a ReplicaSet of that Deployment.
func revision(t testing.TB, name, template, replicas string) *apps.ReplicaSet {
	t.Helper()
	rs := parse[apps.ReplicaSet](t, `{"apiVersion":"apps/v1","kind":"ReplicaSet",
		"metadata":{"namespace":"shop","name":"`+name+`","uid":"`+name+`","labels":{"app":"web"}},
		"spec":{"replicas":`+replicas+`,"selector":{"matchLabels":{"app":"web"}},"template":`+template+`}}`)
	rs.OwnerReferences = controlledBy("Deployment", "web", "d")
	return rs
}

// markUpdating marks the ReplicaSet as part of an update that begins now.
func markUpdating(rs *apps.ReplicaSet) *apps.ReplicaSet {
	rs.Labels[inplace.LabelUpdating] = strconv.FormatInt(time.Now().Unix(), 10)
	return rs
}

func pod(owner *apps.ReplicaSet) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: space, Name: "web-x", UID: "p", Labels: map[string]string{"app": "web"},
			OwnerReferences: controlledBy("ReplicaSet", owner.Name, owner.UID),
		},
	}
}

func daemonSet(t testing.TB, template string) *apps.DaemonSet {
	t.Helper()
	return parse[apps.DaemonSet](t, `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"namespace":"shop","name":"agent","uid":"ds"},
		"spec":{"selector":{"matchLabels":{"app":"web"}},"updateStrategy":{"type":"RollingUpdate"},"template":`+template+`}}`)
}

// controllerRevision returns a ControllerRevision of that DaemonSet.
func controllerRevision(t testing.TB, hash, template string) *apps.ControllerRevision {
	t.Helper()
	revision := parse[apps.ControllerRevision](t, `{"apiVersion":"apps/v1","kind":"ControllerRevision","revision":1,
		"metadata":{"namespace":"shop","name":"agent-`+hash+`","uid":"`+hash+`","labels":{"app":"web","controller-revision-hash":"`+hash+`"}},
		"data":{"spec":{"template":`+strings.Replace(template, "{", `{"$patch":"replace",`, 1)+`}}}`)
	revision.OwnerReferences = controlledBy("DaemonSet", "agent", "ds")
	return revision
}

// daemon returns a pod of that DaemonSet on node one.
func daemon(name, hash string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: space, Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web", "controller-revision-hash": hash},
			OwnerReferences: controlledBy("DaemonSet", "agent", "ds"),
		},
		Spec: corev1.PodSpec{NodeName: "one"},
	}
}

// updating returns a Deployment and a DaemonSet in the middle of updates.
func updating(t testing.TB) []client.Object {
	t.Helper()
	web1 := markUpdating(revision(t, "web-1", v1Template, "3"))
	return []client.Object{
		namespace(inplace.ModeInPlaceOnly), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
		deployment(t, v2Template), web1, markUpdating(revision(t, "web-2", v2Template, "0")), pod(web1),
		daemonSet(t, v2Template), controllerRevision(t, "1", v1Template), controllerRevision(t, "2", v2Template), daemon("agent-x", "1"),
		statefulSet(t, v2Template, ""), memberRevision(t, "a", v1Template), memberRevision(t, "b", v2Template),
		member("db-0", "db-a"), member("db-1", "db-a"),
	}
}

func controlledBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &yes}}
}

// request returns what the API server would send for that operation. Before is the object before the operation.
func request(t testing.TB, user string, operation admissionv1.Operation, object, before client.Object) admission.Request {
	t.Helper()
	of := object
	if of == nil {
		of = before
	}
	gvk := of.GetObjectKind().GroupVersionKind()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "request", Operation: operation, Namespace: space, Name: of.GetName(),
		Kind:     metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		UserInfo: authenticationv1.UserInfo{Username: user},
		Object:   raw(t, object), OldObject: raw(t, before),
	}}
}

func raw(t testing.TB, object client.Object) runtime.RawExtension {
	t.Helper()
	if object == nil {
		return runtime.RawExtension{}
	}
	bytes, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: bytes}
}

// templateHash is the end of a recorded decision.
var templateHash = regexp.MustCompile(` \(template [0-9a-f]{10}\)`)

// expectPatch compares the operations as the API server gets them, without the hashes of templates; "" expects none.
func expectPatch(t *testing.T, response admission.Response, want string) {
	t.Helper()
	if !response.Allowed {
		t.Errorf("denied: %v", response.Result)
	}
	got := ""
	if len(response.Patches) > 0 {
		bytes, err := json.Marshal(response.Patches)
		if err != nil {
			t.Fatal(err)
		}
		got = templateHash.ReplaceAllString(string(bytes), "")
	}
	if got != want {
		t.Errorf("patch\n got %s\nwant %s", got, want)
	}
}

// expectDenied expects a denial with this code and its reason; code 0 expects the request to be allowed.
func expectDenied(t *testing.T, response admission.Response, code int32) {
	t.Helper()
	reason := map[int32]metav1.StatusReason{
		404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 422: metav1.StatusReasonInvalid,
	}[code]
	switch {
	case response.Allowed != (code == 0):
		t.Errorf("allowed is %t: %v", response.Allowed, response.Result)
	case code != 0 && (response.Result.Code != code || response.Result.Reason != reason):
		t.Errorf("denied with %d %s, want %d %s", response.Result.Code, response.Result.Reason, code, reason)
	}
}
