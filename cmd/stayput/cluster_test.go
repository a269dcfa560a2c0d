package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/internal/observe"
)

// keeping returns a CacheForm of a cluster whose only labelled namespace is shop.
func keeping(t testing.TB) *observe.CacheForm {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shop).Build()
	keep, err := observe.NewCacheForm(t.Context(), observe.Reader{Reader: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return keep
}

// transformOf returns the transform that the manager's cache applies to objects of that type.
func transformOf(t testing.TB, object client.Object) cache.TransformFunc {
	options := cacheOptions("stayput-system", keeping(t))
	for of, by := range options.ByObject {
		if reflect.TypeOf(of) == reflect.TypeOf(object) && by.Transform != nil {
			return by.Transform
		}
	}
	return options.DefaultTransform
}

// filler is about as much text as an API server accepts in one object.
var filler = strings.Repeat("x", 1<<20)

const templateJSON = `{"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
	{"name": "app", "image": "app:1", "env": [{"name": "A", "value": %q}]}]}}`

// manyLabels returns labels that are short, and a megabyte together.
func manyLabels() string {
	all := map[string]string{}
	for i := range 8000 {
		all[fmt.Sprintf("example.com/%060d", i)] = strings.Repeat("x", 63)
	}
	raw, _ := json.Marshal(all)
	return string(raw)
}

// owned returns the metadata of an object with that controller.
func owned(kind, name string) string {
	return fmt.Sprintf(`"ownerReferences": [{"apiVersion": "apps/v1", "kind": %q, "name": %q, "uid": "o", "controller": true}]`, kind, name)
}

// TestCacheIsBounded caches objects as large as any tenant can make them, in a namespace with the label and in one without.
func TestCacheIsBounded(t *testing.T) {
	template := fmt.Sprintf(`{"template": `+templateJSON+`}`, filler)
	annotations, labels := `"annotations": {"a": "`+filler+`"}`, `"labels": `+manyLabels()
	for name, test := range map[string]struct {
		into client.Object
		// metadata is the metadata besides the identity. body is the rest of the object.
		metadata, body string
	}{
		"Deployment":              {&apps.Deployment{}, "", `"spec": ` + template},
		"ReplicaSet":              {&apps.ReplicaSet{}, "", `"spec": ` + template},
		"DaemonSet":               {&apps.DaemonSet{}, "", `"spec": ` + template},
		"ControllerRevision":      {&apps.ControllerRevision{}, "", `"data": {"spec": ` + template + `}`},
		"revision of a DaemonSet": {&apps.ControllerRevision{}, owned("DaemonSet", "web"), `"data": {"spec": ` + template + `}`},
		"selector":                {&apps.ReplicaSet{}, "", `"spec": {"selector": {"matchLabels": ` + manyLabels() + `}}`},
		"labels":                  {&apps.ReplicaSet{}, labels, `"spec": {}`},
		"annotations":             {&apps.ReplicaSet{}, annotations, `"spec": {}`},
		"owner":                   {&apps.ReplicaSet{}, owned("Deployment", filler), `"spec": {}`},
		"outline's annotation":    {&apps.ReplicaSet{}, `"annotations": {"stayput.dev/outline": "1"}`, `"spec": ` + template},
		"Pod":                     {&corev1.Pod{}, "", `"spec": {"containers": [{"name": "app", "image": "app:1", "args": ["` + filler + `"]}]}`},
		"Pod, image":              {&corev1.Pod{}, "", `"spec": {"containers": [{"name": "app", "image": "` + filler + `"}]}`},
		"Pod, annotations":        {&corev1.Pod{}, annotations, `"spec": {}`},
		"Service":                 {&corev1.Service{}, labels, `"spec": {}`},
		"EndpointSlice":           {&discoveryv1.EndpointSlice{}, labels, `"endpoints": []`},
		"PodDisruptionBudget":     {&policyv1.PodDisruptionBudget{}, labels, `"spec": {}`},
		"PodDisruptionBudget, selector": {&policyv1.PodDisruptionBudget{}, "", `"spec": {"selector": {"matchLabels": ` + manyLabels() + `}},
			"status": {"conditions": [{"type": "DisruptionAllowed", "message": "` + filler + `"}]}`},
	} {
		for _, namespace := range []string{"shop", "elsewhere"} {
			t.Run(name+" in "+namespace, func(t *testing.T) {
				object, _ := test.into.DeepCopyObject().(client.Object)
				metadata := strings.TrimSuffix(fmt.Sprintf(`"namespace": %q, "name": "web", "uid": "u", `, namespace)+test.metadata, ", ")
				if err := json.Unmarshal([]byte(`{"metadata": {`+metadata+`}, `+test.body+`}`), object); err != nil {
					t.Fatal(err)
				}
				kept, err := transformOf(t, object)(object)
				if err != nil {
					t.Fatal(err)
				}
				raw, err := json.Marshal(kept)
				identity := kept.(client.Object)
				if err != nil || len(raw) > 2<<10 || identity.GetUID() != "u" || identity.GetNamespace() != namespace {
					t.Errorf("%d bytes are kept, %v", len(raw), err)
				}
			})
		}
	}
}

// TestOutlinesHoldNoMemory checks that outlines do not keep the memory of what was cut off.
func TestOutlinesHoldNoMemory(t *testing.T) {
	raw := []byte(fmt.Sprintf(`{"metadata": {"name": "web", "namespace": "elsewhere", "labels": {"stayput.dev/updating": "1"}},
		"spec": {"template": `+templateJSON+`}}`, filler))
	transform := transformOf(t, &apps.ReplicaSet{})
	before := heap()
	kept := make([]any, 100)
	for i := range kept {
		object := &apps.ReplicaSet{}
		if err := json.Unmarshal(raw, object); err != nil {
			t.Fatal(err)
		}
		kept[i], _ = transform(object)
	}
	if grown := heap() - before; grown > 10<<20 {
		t.Errorf("%d MiB are held by %d outlines", grown>>20, len(kept))
	}
	runtime.KeepAlive(kept)
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestCachedNodesNameTheirImages(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"app:1"}, SizeBytes: 1}}}}
	_, err := withImageNames(node)
	if images := node.Status.Images; err != nil || len(images) != 1 || images[0].Names[0] != "app:1" || images[0].SizeBytes != 0 {
		t.Errorf("images %v are kept: %v", images, err)
	}
}

// TestCachedNodesTellWhatTheyHave checks that cached nodes have their allocatable CPU and memory: Stayput does not resize a pod whose new
// request is larger.
func TestCachedNodesTellWhatTheyHave(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"),
		corev1.ResourcePods: resource.MustParse("110")}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	asks := func(request corev1.ResourceName, amount string) edit.ContainerChanges {
		to := edit.AmountsOf(corev1.ResourceRequirements{Requests: corev1.ResourceList{request: resource.MustParse(amount)}})
		return edit.ContainerChanges{{Container: "app", Resources: edit.ResourceChange{To: to}}}
	}
	if _, err := withImageNames(node); err != nil {
		t.Fatal(err)
	}
	for _, request := range edit.Resizable {
		few, many := podstate.TooSmall(node, pod, asks(request, "1")), podstate.TooSmall(node, pod, asks(request, "1Ti"))
		if few != "" || many == "" {
			t.Errorf("%s: %q, %q", request, few, many)
		}
	}
	if len(node.Status.Allocatable) != 2 {
		t.Errorf("amounts are kept that Stayput does not read: %v", node.Status.Allocatable)
	}
}

// TestCacheTellsWhomClientsAreSentTo checks that cached Services and EndpointSlices still show that a pod is selected or listed.
func TestCacheTellsWhomClientsAreSentTo(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-a", UID: "u", Labels: map[string]string{"app": "web"}},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}}
	byHand := func(endpoint discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{endpoint}}
	}
	for name, object := range map[string]any{
		"selected":         &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}},
		"selected by much": &corev1.Service{Spec: corev1.ServiceSpec{Selector: labels(17)}},
		"listed as a pod": byHand(discoveryv1.Endpoint{
			TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: "u"}, Addresses: []string{"10.0.0.1"}}),
		"listed by address":  byHand(discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}}),
		"listed as a server": byHand(discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Server"}, Addresses: []string{"10.0.0.1"}}),
	} {
		var services []corev1.Service
		var slices []discoveryv1.EndpointSlice
		switch o := object.(type) {
		case *corev1.Service:
			kept, _ := withoutPorts(o)
			services = append(services, *kept.(*corev1.Service))
		case *discoveryv1.EndpointSlice:
			kept, _ := withoutAddresses(o)
			slices = append(slices, *kept.(*discoveryv1.EndpointSlice))
		}
		if !podstate.SentTo(pod, slices, services) {
			t.Errorf("%s: no client seems to be sent to the pod", name)
		}
	}
}

// TestLongBudgetsAllowNothing checks that a user who may create PodDisruptionBudgets cannot fill the managers' memory with them, and that
// one that is not kept whole is not ignored.
func TestLongBudgetsAllowNothing(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-a", UID: "u", Labels: labels(1)}, Status: corev1.PodStatus{
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	for count, want := range map[int]string{1: "", 1000: "too long"} {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels(count)}},
			Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 1}}
		kept, err := trimmedBudget(budget)
		if err != nil {
			t.Fatal(err)
		}
		seen := disruption.Seen{Budgets: []*policyv1.PodDisruptionBudget{kept.(*policyv1.PodDisruptionBudget)}, Pods: []*corev1.Pod{pod}}
		why := ""
		if wait := seen.Of(seen.Pods, time.Now()).Wait(pod, nil, time.Now()); wait != nil {
			why = wait.Why
		}
		if (why != "") != (want != "") || !strings.Contains(why, want) {
			t.Errorf("with %d labels: %q, want %q", count, why, want)
		}
	}
}

// labels returns as many labels as count.
func labels(count int) map[string]string {
	all := map[string]string{}
	for i := range count {
		all[fmt.Sprint("label-", i)] = "value"
	}
	return all
}

// TestLongSelectorsAreNotKept checks that a user who may create Services cannot fill the managers' memory with selectors.
func TestLongSelectorsAreNotKept(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels(1)}}
	for _, test := range []struct{ labels, kept int }{{0, 0}, {16, 16}, {17, 1}, {10_000, 1}} {
		service := &corev1.Service{Spec: corev1.ServiceSpec{Selector: labels(test.labels)}}
		if _, err := withoutPorts(service); err != nil || len(service.Spec.Selector) != test.kept {
			t.Errorf("%d of %d labels are kept: %v", len(service.Spec.Selector), test.labels, err)
		}
		if selects := test.labels > 16; podstate.ServiceSelects(service, pod) != selects {
			t.Errorf("a selector of %d labels: selects is %v", test.labels, !selects)
		}
	}
}

func TestCachedSlicesFollowPods(t *testing.T) {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "web-1", ResourceVersion: "7", Labels: map[string]string{
		discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", "app": "web"}}}
	slice.Endpoints = []discoveryv1.Endpoint{{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web-a"}}}
	_, err := withoutAddresses(slice)
	if err != nil || !podstate.SliceFollowsPods(slice) ||
		slice.Labels[discoveryv1.LabelServiceName] != "web" || len(slice.Endpoints) != 1 || slice.ResourceVersion != "7" {
		t.Errorf("kept %+v, %v", slice, err)
	}
}
