package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/observe"
)

var leaseKey = types.NamespacedName{Namespace: "stayput-system", Name: inplace.Lease}

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// cluster is an API server with a Deployment of three pods that was just given a new image: its new ReplicaSet was born empty.
type cluster struct {
	client.Client
	t        *testing.T
	recorder *events.FakeRecorder
	registry *prometheus.Registry
	metrics  *metrics
	lock     sync.Mutex
	patches  int
	// refuse may fail the patch of an object.
	refuse func(object client.Object, patch string) error
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, recorder: events.NewFakeRecorder(100), registry: prometheus.NewRegistry()}
	c.metrics = newMetrics(c.registry)
	c.Client = fake.NewClientBuilder().WithScheme(newScheme(t)).
		WithObjects(newObjects(t)...).
		WithStatusSubresource(&inplace.Deployment{}, &inplace.ReplicaSet{}, &corev1.Pod{}).
		WithInterceptorFuncs(interceptor.Funcs{Patch: c.patch, SubResourcePatch: c.patchStatus}).Build()
	return c
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme, inplace.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func (c *cluster) patch(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := c.admit(object, patch); err != nil {
		return err
	}
	return to.Patch(ctx, object, patch, options...)
}

func (c *cluster) patchStatus(ctx context.Context, to client.Client, _ string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if err := c.admit(object, patch); err != nil {
		return err
	}
	return to.Status().Patch(ctx, object, patch, options...)
}

func (c *cluster) admit(object client.Object, patch client.Patch) error {
	c.lock.Lock() // steps are carried out side by side
	defer c.lock.Unlock()
	c.patches++
	body, err := patch.Data(object)
	if err != nil || c.refuse == nil {
		return err
	}
	return c.refuse(object, string(body))
}

// deploymentReader reads a Deployment with its ReplicaSets and pods; see observe.Reader.
type deploymentReader interface {
	Rollout(ctx context.Context, key types.NamespacedName) (*inplace.Rollout, error)
}

// reconciler is a new process: it remembers nothing. It reads through the reader given, else the API server.
func (c *cluster) reconciler(cached deploymentReader) *Reconciler {
	live := c.observer()
	if cached == nil {
		cached = live
	}
	return &Reconciler{
		cached:   kinds.DeploymentsBy(cached.Rollout),
		live:     kinds.DeploymentsBy(live.WithoutNodes().Rollout),
		drains:   &drains{cached: live, live: live},
		quotas:   live,
		writer:   c.writer(),
		reporter: newReporter(kinds.Deployments, c.recorder, c.metrics),
	}
}

func (c *cluster) observer() observe.Reader {
	return observe.Reader{Reader: c, Hold: observe.Hold{Reader: c, Namespace: leaseKey.Namespace}}
}

func (c *cluster) reconcile(r *Reconciler) reconcile.Result {
	c.t.Helper()
	result, err := r.Reconcile(c.t.Context(), reconcile.Request{NamespacedName: web})
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

func (c *cluster) add(object client.Object) {
	c.t.Helper()
	if err := c.Create(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

func ownedBy(kind, name string, uid types.UID) *metav1.OwnerReference {
	controls := true
	return &metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &controls}
}

func (c *cluster) replicaSet(name string) *inplace.ReplicaSet {
	c.t.Helper()
	replicaSet := &inplace.ReplicaSet{}
	if err := c.Get(c.t.Context(), types.NamespacedName{Namespace: web.Namespace, Name: name}, replicaSet); err != nil {
		c.t.Fatal(err)
	}
	return replicaSet
}

// snapshot is a cache that has stopped.
func (c *cluster) snapshot() frozen {
	c.t.Helper()
	rollout, err := c.observer().Rollout(c.t.Context(), web)
	if err != nil || rollout == nil {
		c.t.Fatal(rollout, err)
	}
	return frozen{rollout}
}

type frozen struct{ rollout *inplace.Rollout }

func (f frozen) Rollout(context.Context, types.NamespacedName) (*inplace.Rollout, error) {
	return f.rollout, nil
}

// told returns the events recorded so far, and forgets them.
func told(recorder *events.FakeRecorder) []string {
	var notes []string
	for len(recorder.Events) > 0 {
		notes = append(notes, <-recorder.Events)
	}
	return notes
}

func wantTold(t *testing.T, recorder *events.FakeRecorder, want ...string) {
	t.Helper()
	got := told(recorder)
	if len(got) != len(want) {
		t.Fatalf("events %q, want %d: %q", got, len(want), want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("event %q does not contain %q", got[i], want[i])
		}
	}
}

func newObjects(t *testing.T) []client.Object {
	t.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: web.Namespace, Labels: map[string]string{
			inplace.LabelUpdate: "in-place", inplace.LabelDrain: "0", inplace.LabelPrePullParallelism: "0"}}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseKey.Namespace, Name: leaseKey.Name}},
		decode[inplace.Deployment](t, deploymentJSON),
		decode[inplace.ReplicaSet](t, fmt.Sprintf(replicaSetJSON, "web-old", "old", "10:00", 3, "app:1", "old", 3)),
		decode[inplace.ReplicaSet](t, fmt.Sprintf(replicaSetJSON, "web-new", "new", "11:00", 0, "app:2", "new", 0)),
	}
	for i := range 3 {
		objects = append(objects, decode[corev1.Pod](t, fmt.Sprintf(podJSON, fmt.Sprintf("web-old-%d", i))))
	}
	return objects
}

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

const deploymentJSON = `{
	"metadata": {"name": "web", "namespace": "shop", "uid": "web", "generation": 2},
	"spec": {
		"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "progressDeadlineSeconds": 600,
		"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
		"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app:2"}]}}
	},
	"status": {"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "unavailableReplicas": 0}
}`

const replicaSetJSON = `{
	"metadata": {
		"name": %[1]q, "namespace": "shop", "uid": %[1]q, "generation": 1, "creationTimestamp": "2026-01-01T%[3]s:00Z",
		"labels": {"app": "web", "pod-template-hash": %[2]q},
		"annotations": {"deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "4"},
		"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web", "controller": true}]
	},
	"spec": {
		"replicas": %[4]d, "selector": {"matchLabels": {"app": "web", "pod-template-hash": %[6]q}},
		"template": {"metadata": {"labels": {"app": "web", "pod-template-hash": %[6]q}}, "spec": {"containers": [{"name": "app", "image": %[5]q}]}}
	},
	"status": {"observedGeneration": 1, "replicas": %[7]d, "readyReplicas": %[7]d, "availableReplicas": %[7]d}
}`

const podJSON = `{
	"metadata": {
		"name": %[1]q, "namespace": "shop", "uid": %[1]q, "generation": 1, "creationTimestamp": "2026-01-01T10:00:00Z",
		"labels": {"app": "web", "pod-template-hash": "old"},
		"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-old", "uid": "web-old", "controller": true}]
	},
	"spec": {"containers": [{"name": "app", "image": "app:1"}], "readinessGates": [{"conditionType": "stayput.dev/serving"}]},
	"status": {
		"phase": "Running", "observedGeneration": 1,
		"conditions": [
			{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"},
			{"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"},
			{"type": "stayput.dev/serving", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"}
		],
		"containerStatuses": [{"name": "app", "image": "app:1", "imageID": "one", "containerID": "c1", "ready": true,
			"state": {"running": {"startedAt": "2026-01-01T10:00:00Z"}}}]
	}
}`
