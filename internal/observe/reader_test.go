package observe

import (
	"context"
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

var key = types.NamespacedName{Namespace: "shop", Name: "web"}

func meta(name string, uid types.UID, owner ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, Labels: map[string]string{"app": "web"}, OwnerReferences: owner}
}

func controlledBy(kind, name string, uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &yes}
}

// shop returns Deployment web with ReplicaSets web-1 and web-2 and a pod of each. It also returns a ReplicaSet and a
// pod of an earlier Deployment of the same name, and a ReplicaSet and a pod without a controller.
func shop() []client.Object {
	web := &apps.Deployment{ObjectMeta: meta("web", "d")}
	web.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}},
		web,
		&apps.ReplicaSet{ObjectMeta: meta("web-1", "r1", controlledBy("Deployment", "web", "d"))},
		&apps.ReplicaSet{ObjectMeta: meta("web-2", "r2", controlledBy("Deployment", "web", "d"))},
		&apps.ReplicaSet{ObjectMeta: meta("web-0", "r0", controlledBy("Deployment", "web", "earlier"))},
		&apps.ReplicaSet{ObjectMeta: meta("bare", "rb")},
		&corev1.Pod{ObjectMeta: meta("web-1-a", "p1", controlledBy("ReplicaSet", "web-1", "r1"))},
		&corev1.Pod{ObjectMeta: meta("web-2-a", "p2", controlledBy("ReplicaSet", "web-2", "r2"))},
		&corev1.Pod{ObjectMeta: meta("web-0-a", "p0", controlledBy("ReplicaSet", "web-0", "r0"))},
		&corev1.Pod{ObjectMeta: meta("bare", "pb")},
	}
}

func builder(t testing.TB, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, coordinationv1.AddToScheme, autoscalingv2.AddToScheme,
		policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
}

// indexes adds the indexes to a fake client.
type indexes struct{ builder *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	i.builder.WithIndex(object, field, extract)
	return nil
}

// cacheHas returns a Reader of a cache that has those objects.
func cacheHas(t testing.TB, objects ...client.Object) Reader {
	t.Helper()
	indexed := builder(t, objects...)
	if err := Index(t.Context(), indexes{indexed}); err != nil {
		t.Fatal(err)
	}
	return Reader{Reader: indexed.Build(), Stores: storesWith(t, objects...)}
}

// storesWith returns Stores with the pods and nodes among the objects.
func storesWith(t testing.TB, objects ...client.Object) *Stores {
	t.Helper()
	synced := func() bool { return true }
	indexers := indexersOfPods()
	indexers[toolscache.NamespaceIndex] = toolscache.MetaNamespaceIndexFunc // each informer has it
	stores := &Stores{pods: store[*corev1.Pod]{toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers), synced},
		nodes: store[*corev1.Node]{toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil), synced}}
	for _, object := range objects {
		into := map[bool]toolscache.Store{true: stores.pods, false: stores.nodes}
		switch object.(type) {
		case *corev1.Pod, *corev1.Node:
			_, isPod := object.(*corev1.Pod)
			if err := into[isPod].Add(object); err != nil {
				t.Fatal(err)
			}
		}
	}
	return stores
}

func TestRollout(t *testing.T) {
	for name, reader := range map[string]Reader{
		"live":    {Reader: builder(t, shop()...).Build()},
		"indexed": cacheHas(t, shop()...),
	} {
		t.Run(name, func(t *testing.T) {
			rollout, err := reader.Rollout(context.Background(), key)
			if err != nil {
				t.Fatal(err)
			}
			expectNames(t, rollout.ReplicaSets, "web-1", "web-2")
			expectNames(t, rollout.Seen.Pods, "web-1-a", "web-2-a")
			if rollout.Seen.Mode != inplace.ModeInPlace || time.Since(rollout.Seen.Now) > time.Minute {
				t.Errorf("mode %q at %s", rollout.Seen.Mode, rollout.Seen.Now)
			}
			if rollout, err = reader.WithoutPods().Rollout(context.Background(), key); err != nil || len(rollout.Seen.Pods) > 0 {
				t.Errorf("without pods: %v, %v", rollout, err)
			}
		})
	}
}

func TestRolloutOfReplicaSet(t *testing.T) {
	reader := Reader{Reader: builder(t, shop()...).Build()}
	for name, test := range map[string]struct {
		owner []metav1.OwnerReference
		found bool
	}{
		"its Deployment":            {[]metav1.OwnerReference{controlledBy("Deployment", "web", "d")}, true},
		"a former Deployment":       {[]metav1.OwnerReference{controlledBy("Deployment", "web", "earlier")}, false},
		"a Deployment that is gone": {[]metav1.OwnerReference{controlledBy("Deployment", "gone", "d")}, false},
		"another kind":              {[]metav1.OwnerReference{controlledBy("Rollout", "web", "d")}, false},
		"no controller":             {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			rollout, err := reader.RolloutOfReplicaSet(context.Background(), &apps.ReplicaSet{ObjectMeta: meta("rs", "r", test.owner...)})
			if err != nil || (rollout != nil) != test.found {
				t.Errorf("found %v, %v; want found %t", rollout, err, test.found)
			}
		})
	}
}

func TestAbsentIsNil(t *testing.T) {
	reader := Reader{Reader: builder(t).Build()}
	if rollout, err := reader.Rollout(context.Background(), key); rollout != nil || err != nil {
		t.Errorf("rollout %v, %v of a Deployment that is gone", rollout, err)
	}
	if _, err := Deployments.Mode(context.Background(), reader, "shop", nil); err == nil {
		t.Error("no error for the mode in a namespace that is gone")
	}
}

func TestExcludedNamespace(t *testing.T) {
	reader := Reader{Reader: builder(t, shop()...).Build(), ExcludedNamespaces: []string{"shop"}}
	labels := map[string]string{inplace.LabelUpdate: string(inplace.ModeInPlaceOnly)}
	if mode, err := Deployments.Mode(context.Background(), reader, "shop", labels); mode != inplace.ModeNone || err != nil {
		t.Errorf("mode %q, %v", mode, err)
	}
}

func TestHold(t *testing.T) {
	holder, noHolder := "stayput-1", ""
	renewed := func(ago time.Duration) *metav1.MicroTime {
		at := metav1.NewMicroTime(time.Now().Add(-ago))
		return &at
	}
	for name, test := range map[string]struct {
		spec  coordinationv1.LeaseSpec
		alive bool
	}{
		"renewed just now":        {coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: renewed(0)}, true},
		"renewed within a minute": {coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: renewed(59 * time.Second)}, true},
		"renewed too long ago":    {coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: renewed(61 * time.Second)}, false},
		"stepped down just now":   {coordinationv1.LeaseSpec{HolderIdentity: &noHolder, RenewTime: renewed(0)}, true},
		"stepped down long ago":   {coordinationv1.LeaseSpec{HolderIdentity: &noHolder, RenewTime: renewed(61 * time.Second)}, false},
		"never held":              {coordinationv1.LeaseSpec{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: inplace.Lease}, Spec: test.spec}
			expectAlive(t, Hold{Reader: builder(t, lease).Build(), Namespace: "own"}, test.alive)
		})
	}
	expectAlive(t, Hold{Reader: builder(t).Build(), Namespace: "own"}, false)
}

func expectAlive(t *testing.T, hold Hold, want bool) {
	t.Helper()
	alive, reason, err := hold.Alive(context.Background())
	if err != nil || alive != want || (reason == "") != want {
		t.Errorf("alive %t, reason %q, %v; want alive %t", alive, reason, err, want)
	}
}

func expectNames[P client.Object](t *testing.T, objects []P, want ...string) {
	t.Helper()
	var got []string
	for _, object := range objects {
		got = append(got, object.GetName())
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
}
