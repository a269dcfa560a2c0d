package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/port"
)

// The port answers every client that reaches it. In these tests that is an unknown client.

var paths = []string{
	"/mutate-workload", "/validate-workload", "/validate-in-place-only",
	"/mutate-replicaset", "/validate-replicaset", "/throttle-replicaset", "/throttle-pod",
	"/validate-status", "/validate-new-pod", "/validate-pod", "/validate-revision",
}

func served(h Handlers) http.Handler {
	server := port.New(ctrlwebhook.Options{})
	Register(server, h)
	return server.WebhookMux()
}

// post sends the request as an API server would.
func post(t *testing.T, server http.Handler, path string, req admission.Request) *httptest.ResponseRecorder {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: &req.AdmissionRequest}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	return recorder
}

// ask is post for requests that get an admission response, and returns it.
func ask(t *testing.T, server http.Handler, path string, req admission.Request) admissionv1.AdmissionResponse {
	t.Helper()
	recorder := post(t, server, path, req)
	if recorder.Code != http.StatusOK {
		t.Fatalf("%s answered %d: %s", path, recorder.Code, recorder.Body)
	}
	return *parse[admissionv1.AdmissionReview](t, recorder.Body.String()).Response
}

// reads are what a reader was asked for.
type reads struct {
	mu   sync.Mutex
	gets []string
	// lists are the selectors of lists; whole are the namespaces of lists without a selector.
	lists, whole []string
}

// counting serves these objects, and notes what is read.
func (r *reads) counting(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	return interceptor.NewClient(reader(t, objects...).(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.gets = append(r.gets, fmt.Sprintf("%T %s", into, key))
			return c.Get(ctx, key, into, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if asked := (&client.ListOptions{}).ApplyOptions(options); asked.LabelSelector == nil {
				r.whole = append(r.whole, asked.Namespace)
			} else {
				r.lists = append(r.lists, asked.LabelSelector.String())
			}
			return c.List(ctx, into, options...)
		},
	})
}

// TestInventedReplicaSetsAreForgotten: a client that reaches the port can claim to be a native controller that deletes ReplicaSets which
// were never created. A mark that is no time is not the leader's.
func TestInventedReplicaSetsAreForgotten(t *testing.T) {
	live := reader(t, namespace(inplace.ModeInPlace), deployment(t, v2Template))
	h := handlers(t, live, live)
	for i := range 100 {
		invented := revision(t, "web-1", v1Template, "0")
		invented.UID, invented.Labels[inplace.LabelUpdating] = types.UID(fmt.Sprint(i)), "soon"
		given, err := h.at("/validate-replicaset")(t.Context(), request(t, deploymentController, admissionv1.Delete, nil, invented))
		if err != nil || !given.Allowed {
			t.Fatalf("the deletion is held: %v, %v", given.Result, err)
		}
	}
	if kept := h.holdStarts.Len(); kept > 0 {
		t.Errorf("%d updates of invented ReplicaSets are remembered", kept)
	}
}

// TestRememberedUpdatesAreSmall: what is remembered of an update is bounded, whatever its owner has written.
func TestRememberedUpdatesAreSmall(t *testing.T) {
	web := deployment(t, v2Template)
	newRS := revision(t, "web-2", v2Template, "0")
	newRS.Annotations = map[string]string{inplace.AnnotationRevision: strings.Repeat("9", 200_000)}
	if start := holdStartOf(web, web.Spec.Template, newRS); len(start.revision) > lineLength {
		t.Errorf("%d bytes are remembered", len(start.revision))
	}
}

func TestKindsOfRequestsMakeNoSeries(t *testing.T) {
	managed := namespace(inplace.ModeInPlace)
	server := served(handlers(t, reader(t, managed), reader(t, managed)))
	before := series(t)
	for i := range 10 {
		for _, path := range paths {
			for _, user := range []string{deploymentController, replicaSetController, daemonSetController, statefulSetController} {
				req := editing(t, deployment(t, v2Template), deployment(t, v1Template))
				req.Kind.Kind, req.UserInfo.Username = fmt.Sprintf("Invented%d", i), user
				req.Object.Raw, req.OldObject.Raw = []byte(`"nothing"`), []byte(`"nothing"`)
				ask(t, server, path, req)
			}
		}
	}
	if after := series(t); after != before {
		t.Errorf("%d series of decisions became %d", before, after)
	}
}

// series returns the number of series of stayput_admission_decisions_total.
func series(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "stayput_admission_decisions_total" {
			return len(family.GetMetric())
		}
	}
	return 0
}

// TestUnlabelledNamespaceIsNotDecided: for a namespace in which API servers do not call Stayput, an answer reveals nothing, and nothing
// but a few namespaces is read.
func TestUnlabelledNamespaceIsNotDecided(t *testing.T) {
	for name, space := range map[string][]client.Object{"unlabelled": {namespace("")}, "no such namespace": nil} {
		t.Run(name, func(t *testing.T) {
			var live reads
			objects := slices.Concat(space, []client.Object{deployment(t, v1Template), markUpdating(revision(t, "web-1", v1Template, "3"))})
			for _, path := range paths {
				for _, req := range forged(t) {
					response := ask(t, served(handlers(t, reader(t, objects...), live.counting(t, objects...))), path, req)
					if !response.Allowed || len(response.Warnings) > 0 || len(response.Patch) > 0 {
						t.Errorf("%s answered %s of %s with %+v, want no more than that it is allowed", path, req.Operation, req.Kind.Kind, response)
					}
				}
			}
			if len(live.lists)+len(live.whole) > 0 {
				t.Errorf("the API server was asked for lists with %q, and for lists of %q", live.lists, live.whole)
			}
			expectAll(t, live.gets, "*v1.Namespace /shop")
		})
	}
}

// expectAll expects that nothing but this was asked for.
func expectAll(t *testing.T, asked []string, want string) {
	t.Helper()
	if slices.ContainsFunc(asked, func(got string) bool { return got != want }) {
		t.Errorf("the API server was asked for %q, want nothing but %q", asked, want)
	}
}

// forged returns requests of all kinds that claim to come from the native controllers.
func forged(t *testing.T) []admission.Request {
	t.Helper()
	v1, v2 := deployment(t, v1Template), deployment(t, v2Template)
	v2.Status.Replicas, v2.Status.UpdatedReplicas, v2.Status.AvailableReplicas = 3, 3, 3
	first := revision(t, "web-1", v1Template, "3")
	status := request(t, deploymentController, admissionv1.Update, v2, v1)
	status.SubResource = "status"
	return []admission.Request{
		editing(t, v2, v1),
		status,
		request(t, deploymentController, admissionv1.Update, revision(t, "web-1", v1Template, "2"), first),
		request(t, deploymentController, admissionv1.Create, revision(t, "web-2", v2Template, "1"), nil),
		request(t, replicaSetController, admissionv1.Create, pod(first), nil),
		request(t, replicaSetController, admissionv1.Delete, nil, pod(first)),
		request(t, daemonSetController, admissionv1.Delete, nil, daemon("agent-x", "1")),
		request(t, daemonSetController, admissionv1.Delete, nil, controllerRevision(t, "1", v1Template)),
		request(t, "jane", admissionv1.Update, statefulSet(t, v2Template, ""), statefulSet(t, v1Template, "")),
		request(t, statefulSetController, admissionv1.Create, member("db-1", "db-a"), nil),
		request(t, statefulSetController, admissionv1.Delete, nil, member("db-1", "db-a")),
		request(t, statefulSetController, admissionv1.Delete, nil, memberRevision(t, "a", v1Template)),
	}
}

func TestFewNamespacesAreReadForStrangers(t *testing.T) {
	const requests = 1000
	var live reads
	server := served(handlers(t, reader(t), live.counting(t)))
	for i := range requests {
		req := editing(t, deployment(t, v2Template), deployment(t, v1Template))
		req.Namespace = fmt.Sprintf("invented-%d", i)
		if response := ask(t, server, "/validate-workload", req); !response.Allowed {
			t.Fatalf("denied: %v", response.Result)
		}
	}
	if answered := len(live.gets) + len(live.lists) + len(live.whole); answered > requests/2 {
		t.Errorf("%d requests for invented namespaces made the API server answer %d", requests, answered)
	}
}

// TestEveryCheckIsAnswered: the check of an installation asks every webhook about an edit in Stayput's own namespace, as often as a user
// runs it. No such edit is denied because the API server was asked about other namespaces too often.
func TestEveryCheckIsAnswered(t *testing.T) {
	const checks = 20
	server := served(handlers(t, reader(t), reader(t)))
	for range checks {
		for _, path := range paths {
			req := editing(t, deployment(t, v2Template), deployment(t, v1Template))
			req.Namespace = own
			if response := ask(t, server, path, req); !response.Allowed || len(response.Warnings) > 0 {
				t.Fatalf("%s answered %+v, want no more than that it is allowed", path, response)
			}
		}
	}
}

// TestJustLabelledNamespaceIsDecided: users label a namespace and edit at once, before the cache knows of the label.
func TestJustLabelledNamespaceIsDecided(t *testing.T) {
	h := handlers(t, reader(t, namespace("")), running(t, inplace.ModeInPlaceOnly))
	req := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	response := ask(t, served(h), "/validate-in-place-only", req)
	if response.Allowed || response.Result.Reason != metav1.StatusReasonInvalid {
		t.Errorf("answered %+v, want a rejection", response)
	}
}

func TestNamespaceThatCannotBeReadIsNoPermission(t *testing.T) {
	h := handlers(t, reader(t), broken(t))
	req := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	response := ask(t, served(h), "/validate-in-place-only", req)
	if response.Allowed || response.Result.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %+v, want a denial with 503", response)
	}
}

// TestSelectorOfRequestIsNotUsed: a webhook lists what the stored workload selects.
func TestSelectorOfRequestIsNotUsed(t *testing.T) {
	everything := &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "all", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	wide, wideDaemons, wideMembers := deployment(t, v2Template), daemonSet(t, v2Template), statefulSet(t, v2Template, "")
	wide.Spec.Selector, wideDaemons.Spec.Selector, wideMembers.Spec.Selector = everything, everything, everything
	wide.Status.Replicas, wide.Status.UpdatedReplicas, wide.Status.AvailableReplicas = 3, 3, 3
	elsewhere, invented := wide.DeepCopyObject().(*apps.Deployment), wide.DeepCopyObject().(*apps.Deployment)
	elsewhere.Namespace, invented.Name = "kube-system", "invented"
	status := request(t, deploymentController, admissionv1.Update, wide, deployment(t, v1Template))
	status.SubResource = "status"
	for name, test := range map[string]struct {
		path    string
		request admission.Request
	}{
		"mutation":             {"/mutate-workload", editing(t, wide, deployment(t, v1Template))},
		"validation":           {"/validate-workload", editing(t, wide, deployment(t, v1Template))},
		"DaemonSet":            {"/validate-workload", request(t, "jane", admissionv1.Update, wideDaemons, daemonSet(t, v1Template))},
		"StatefulSet":          {"/validate-workload", request(t, "jane", admissionv1.Update, wideMembers, statefulSet(t, v1Template, ""))},
		"status":               {"/validate-status", status},
		"of another namespace": {"/validate-workload", editing(t, elsewhere, deployment(t, v1Template))},
		"invented":             {"/validate-workload", editing(t, invented, deployment(t, v1Template))},
	} {
		t.Run(name, func(t *testing.T) {
			var live reads
			stored := []client.Object{namespace(inplace.ModeInPlace), deployment(t, v1Template), daemonSet(t, v1Template),
				statefulSet(t, v1Template, "")}
			ask(t, served(handlers(t, reader(t, stored...), live.counting(t, stored...))), test.path, test.request)
			expectAll(t, live.lists, "app=web")
			expectAll(t, live.whole, space)
		})
	}
}

// TestObjectsThatNoAPIServerSends: a patch would not apply to an object that lacks a part that all objects have, or that has the part
// twice or under another name.
func TestObjectsThatNoAPIServerSends(t *testing.T) {
	stored := reader(t, updating(t)...)
	whole := string(raw(t, deployment(t, v1Template)).Raw)
	const spec = `"spec":{"template":` + v1Template + `}`
	for name, test := range map[string]struct {
		path, user  string
		operation   admissionv1.Operation
		object, old string
		lacks       string // what the warning or the denial names
	}{
		"null":                     {"/mutate-workload", "jane", admissionv1.Update, `null`, whole, "end of JSON"},
		"no metadata":              {"/mutate-workload", "jane", admissionv1.Update, `{` + spec + `}`, whole, "metadata"},
		"none before":              {"/mutate-workload", "jane", admissionv1.Update, whole, `{}`, "metadata"},
		"metadata that are null":   {"/mutate-workload", "jane", admissionv1.Update, `{"metadata":null,` + spec + `}`, whole, "metadata"},
		"metadata by another name": {"/mutate-workload", "jane", admissionv1.Update, `{"Metadata":{"name":"web"}}`, whole, "metadata"},
		"labels by another name": {"/mutate-replicaset", deploymentController, admissionv1.Create,
			`{"metadata":{"Labels":{"stayput.dev/updating":"1"}},"spec":{}}`, `null`, ""},
		"metadata twice": {"/mutate-workload", "jane", admissionv1.Update,
			`{"metadata":{"annotations":{"a":"b"}},"metadata":{},` + spec + `}`, whole, "metadata"},
		"a ReplicaSet without spec": {"/mutate-replicaset", deploymentController, admissionv1.Create, `{"metadata":{}}`, `null`, "spec"},
		"a pod without metadata":    {"/validate-new-pod", replicaSetController, admissionv1.Create, `{"spec":{}}`, `null`, "metadata"},
		"a report without status": {"/mutate-pod-status", "system:node:one", admissionv1.Update,
			`{"metadata":{},"spec":{"nodeName":"one"}}`, `{"metadata":{}}`, "status"},
		"in a namespace in-place-only": {"/validate-in-place-only", "jane", admissionv1.Update, `{` + spec + `}`, whole, "metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, test.user, test.operation, deployment(t, v2Template), nil)
			req.Kind.Kind = Calls()[test.path].Kinds[0]
			req.Object.Raw, req.OldObject.Raw = []byte(test.object), []byte(test.old)
			if req.Kind.Kind == "Pod" && test.operation == admissionv1.Update {
				req.SubResource, req.UserInfo.Groups = "status", []string{"system:nodes"}
			}
			answer := ask(t, served(handlers(t, stored, stored)), test.path, req)
			said := strings.Join(answer.Warnings, "")
			if answer.Result != nil {
				said += answer.Result.Message
			}
			strict := test.path == "/validate-in-place-only"
			if answer.Allowed == strict || len(answer.Patch) > 0 || !strings.Contains(said, test.lacks) || (said == "") != (test.lacks == "") {
				t.Errorf("answered %+v with patch %s", answer, answer.Patch)
			}
		})
	}
}

// stuck returns a client whose reads do not end before the caller gives up.
func stuck(t *testing.T) client.Reader {
	t.Helper()
	return interceptor.NewClient(reader(t).(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
}

func TestRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := served(handlers(t, stuck(t), stuck(t)))
		response := ask(t, server, "/validate-workload", editing(t, deployment(t, v2Template), deployment(t, v1Template)))
		if !response.Allowed || len(response.Warnings) != 1 {
			t.Errorf("answered %+v, want a warning that there is no decision", response)
		}
	})
}

// TestManyLargeRequestsKeepNoSmallOneWaiting: a small request gets a place beside any number of larger ones. A larger request that waits
// too long gets no admission response, but is left to failurePolicy.
func TestManyLargeRequestsKeepNoSmallOneWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := editing(t, deployment(t, v2Template), deployment(t, v1Template))
		free := editing(t, deployment(t, v2Template), deployment(t, v1Template))
		stalls.Options.Raw = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
		free.Kind.Kind = "Invented" // which needs no reads
		server := served(handlers(t, stuck(t), stuck(t)))
		var codes [40]int
		var waiting sync.WaitGroup
		for i := range codes {
			waiting.Go(func() { codes[i] = post(t, server, "/validate-workload", stalls).Code })
		}
		synctest.Wait()
		if code := post(t, server, "/validate-workload", free).Code; code != http.StatusOK {
			t.Errorf("with 40 MiB of requests in progress a small one is answered with %d", code)
		}
		waiting.Wait()
		if !slices.Contains(codes[:], http.StatusTooManyRequests) || !slices.Contains(codes[:], http.StatusOK) {
			t.Errorf("40 MiB of requests were answered with %v, want a few decided and the others refused", codes)
		}
		if code := post(t, server, "/validate-workload", stalls).Code; code != http.StatusOK {
			t.Errorf("once they are done, another one is answered with %d", code)
		}
	})
}

func TestRequestThatHangsIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unblock := make(chan struct{})
		hanging := interceptor.NewClient(reader(t).(client.WithWatch), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				<-unblock
				return errRead
			},
		})
		h := handlers(t, hanging, hanging)
		server, req := served(h), editing(t, deployment(t, v2Template), deployment(t, v1Template))
		var waiting sync.WaitGroup
		waiting.Go(func() { post(t, server, "/validate-workload", req) })
		time.Sleep(port.Patience)
		if err := h.Watchdog.Check(nil); err != nil {
			t.Errorf("a request that takes as long as it may: %v", err)
		}
		time.Sleep(time.Minute)
		if err := h.Watchdog.Check(nil); err == nil || !strings.Contains(err.Error(), "/validate-workload") {
			t.Errorf("a request that has not ended for a minute: %v", err)
		}
		close(unblock)
		waiting.Wait()
		if err := h.Watchdog.Check(nil); err != nil {
			t.Errorf("now it has ended: %v", err)
		}
	})
}

// TestPanicIsLeftToFailurePolicy: a panic decides nothing, and leaves nothing behind that the Watchdog would take for work.
func TestPanicIsLeftToFailurePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panicking := interceptor.NewClient(reader(t).(client.WithWatch), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				panic("no answer")
			},
		})
		h := handlersWith(t, panicking, reader(t, namespace(inplace.ModeInPlace)), broken(t))
		server, created := served(h), request(t, replicaSetController, admissionv1.Create, pod(revision(t, "web-1", v1Template, "3")), nil)
		created.Options.Raw = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
		for range 40 {
			func() {
				defer func() {
					if recovered := recover(); recovered != "no answer" {
						t.Errorf("recovered %v, want the panic that drops the connection", recovered)
					}
				}()
				post(t, server, "/validate-new-pod", created)
			}()
		}
		time.Sleep(time.Hour)
		if err := h.Watchdog.Check(nil); err != nil {
			t.Error(err)
		}
	})
}
