// Package controllers records what Kubernetes' own controllers do. The answers are files of package inplace/simulation, whose models of
// those controllers must give the same ones. Its tests fail if a file is not what the controllers of this module's release answer.
//
//	go test ./controllers -args -record                          write the file, after cases or the release have changed
//	go test -modfile=go-v1.37.2.mod ./controllers                the controllers of another release
//	go test ./controllers -args -record -cases 50000             many more cases, for once
package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/history"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/features"
)

var (
	record = flag.Bool("record", false, "write the file")
	cases  = flag.Int("cases", 500, "how many cases the file has")
)

// situation is a StatefulSet db with its pods, and what its controller does in one go.
type situation struct {
	Policy   appsv1.PodManagementPolicyType   `json:"policy"`
	Start    int32                            `json:"start,omitempty"`
	Replicas int32                            `json:"replicas"`
	Strategy appsv1.StatefulSetUpdateStrategy `json:"strategy"`
	// Current is the revision of status.currentRevision, so many pods of which status.currentReplicas counts.
	Current string `json:"current"`
	Counted int32  `json:"counted"`
	// Pods are such as "5 old available": ordinal, revision (old, new or gone), and one of the states below.
	Pods []string `json:"pods,omitempty"`
	answer
}

// answer has pods by ordinal, those to create with their revision.
type answer struct {
	Creates []string `json:"creates,omitempty"`
	Deletes []string `json:"deletes,omitempty"`
	Status  string   `json:"status"`
}

// states of pods. Of a StatefulSet with minReadySeconds, a pod that has just become Ready is not available.
var states = map[string]func(pod *corev1.Pod){
	"available": func(pod *corev1.Pod) { running(pod, corev1.ConditionTrue, time.Hour) },
	"ready":     func(pod *corev1.Pod) { running(pod, corev1.ConditionTrue, 0) },
	"unready":   func(pod *corev1.Pod) { running(pod, corev1.ConditionFalse, time.Hour) },
	"pending":   func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending },
	"failed":    func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed },
	"succeeded": func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded },
	"terminating": func(pod *corev1.Pod) {
		running(pod, corev1.ConditionTrue, time.Hour)
		pod.DeletionTimestamp, pod.Finalizers = new(metav1.Now()), []string{"example.com/kept"}
	},
}

const minReadySeconds = 600

func running(pod *corev1.Pod, ready corev1.ConditionStatus, since time.Duration) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready,
		LastTransitionTime: metav1.NewTime(time.Now().Add(-since))}}
}

// randomly returns the case of that number.
func randomly(number int) situation {
	r := rand.New(rand.NewPCG(uint64(number), 0))
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	c := situation{Policy: appsv1.PodManagementPolicyType(one("OrderedReady", "Parallel")), Start: []int32{0, 0, 1, 5}[r.IntN(4)],
		Replicas: r.Int32N(6), Current: one("old", "old", "old", "new", "gone"), Counted: r.Int32N(6)}
	c.Strategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	rolling := &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32)}
	switch r.IntN(12) {
	case 0:
		c.Strategy.Type, rolling = appsv1.OnDeleteStatefulSetStrategyType, nil
	case 1:
		rolling = nil
	case 2, 3, 4, 5, 6:
		rolling.Partition = new(r.Int32N(8))
	}
	if most := one("", "1", "2", "3", "50%", "10%"); rolling != nil && most != "" {
		rolling.MaxUnavailable = new(intstr.Parse(most))
	}
	c.Strategy.RollingUpdate = rolling
	// In some cases all is well but for a pod or two; in others everything may be.
	healthy, revision := r.IntN(2) == 0, one("old", "new")
	for ordinal := range 12 {
		outside := ordinal < int(c.Start) || ordinal >= int(c.Start+c.Replicas)
		if outside && r.IntN(5) > 0 || r.IntN(12) == 0 {
			continue
		}
		of, state := one("old", "old", "new", "new", "gone"), "available"
		if healthy {
			of = one("old", "old", revision, revision, revision)
		}
		if !healthy && r.IntN(2) == 0 || r.IntN(10) == 0 {
			state = one("ready", "unready", "unready", "pending", "failed", "succeeded", "terminating", "terminating")
		}
		c.Pods = append(c.Pods, fmt.Sprint(ordinal, " ", of, " ", state))
	}
	return c
}

// TestStatefulSets: the file has what this release's controller answers. Releases differ by the feature MaxUnavailableStatefulSet.
func TestStatefulSets(t *testing.T) {
	name := "statefulsets.jsonl"
	if utilfeature.DefaultFeatureGate.Enabled(features.MaxUnavailableStatefulSet) {
		name = "statefulsets-maxunavailable.jsonl"
	}
	answered := make([]situation, *cases)
	for i := range answered {
		answered[i] = randomly(i)
	}
	ask(t, answered)
	var lines bytes.Buffer
	for _, c := range answered {
		if err := json.NewEncoder(&lines).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join("..", "..", "..", "inplace", "simulation", "testdata", name)
	if *record {
		if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	recorded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(recorded), "\n")
	for i, line := range strings.Split(lines.String(), "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("line %d of %s is not what the controller does:\n%s", i+1, name, line)
		}
	}
}

// cluster answers the controller's writes, and changes nothing.
type cluster struct {
	*fake.Clientset
	lock sync.Mutex
	// answers are by the name of the StatefulSet. Each is complete when its status has been written, which the controller does last.
	answers map[string]*answer
	missing int
	all     chan struct{}
}

// ask has one controller answer all cases. Each StatefulSet has a name of its own, db and the case's number.
func ask(t *testing.T, all []situation) {
	t.Helper()
	c := &cluster{answers: map[string]*answer{}, missing: len(all), all: make(chan struct{})}
	var objects []runtime.Object
	for i, situation := range all {
		objects = append(objects, situation.objects(t, fmt.Sprint("db", i))...)
	}
	c.Clientset = fake.NewClientset(objects...)
	for verb, resource := range map[string]string{"create": "pods", "delete": "pods", "update": "statefulsets"} {
		c.PrependReactor(verb, resource, c.answer)
	}
	c.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), klog.Logger{}), time.Minute)
	defer cancel()
	informed := informers.NewSharedInformerFactory(c, 0)
	controller := statefulset.NewStatefulSetController(ctx, informed.Core().V1().Pods(), informed.Apps().V1().StatefulSets(),
		informed.Core().V1().PersistentVolumeClaims(), informed.Apps().V1().ControllerRevisions(), c)
	informed.Start(ctx.Done())
	informed.WaitForCacheSync(ctx.Done())
	go controller.Run(ctx, 2)
	select {
	case <-c.all:
	case <-ctx.Done():
		t.Fatalf("%d StatefulSets have no status", c.missing)
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	for i := range all {
		all[i].answer = *c.answers[fmt.Sprint("db", i)]
	}
}

// answer notes a write of the controller. The first status is that of its first round; what it does again is not noted.
func (c *cluster) answer(action clienttesting.Action) (bool, runtime.Object, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	switch {
	case action.GetVerb() == "create":
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		set, ordinal, _ := strings.Cut(pod.Name, "-")
		of := c.of(set)
		of.Creates = noted(of, of.Creates, ordinal+" "+nameOf(set, pod.Labels[appsv1.StatefulSetRevisionLabel]))
		return true, pod, nil
	case action.GetVerb() == "delete":
		set, ordinal, _ := strings.Cut(action.(clienttesting.DeleteAction).GetName(), "-")
		of := c.of(set)
		of.Deletes = noted(of, of.Deletes, ordinal)
		return true, nil, nil
	}
	set := action.(clienttesting.UpdateAction).GetObject().(*appsv1.StatefulSet)
	if of := c.of(set.Name); of.Status == "" {
		s := set.Status
		of.Status = fmt.Sprintf("replicas %d, ready %d, available %d, current %d, updated %d, %s is current", s.Replicas, s.ReadyReplicas,
			s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas, nameOf(set.Name, s.CurrentRevision))
		if c.missing--; c.missing == 0 {
			close(c.all)
		}
	}
	return true, set, nil
}

func (c *cluster) of(set string) *answer {
	if c.answers[set] == nil {
		c.answers[set] = &answer{}
	}
	return c.answers[set]
}

// noted returns the sorted list with one thing more, unless the controller's first round is over. With policy Parallel it creates and
// deletes pods in any order.
func noted(of *answer, list []string, one string) []string {
	if of.Status == "" {
		list = append(list, one)
		slices.Sort(list)
	}
	return list
}

// nameOf returns the revision, old or new, that has that name.
func nameOf(set, revision string) string { return strings.TrimPrefix(revision, set+"-") }

// objects returns the StatefulSet, its pods and its two revisions.
func (s situation) objects(t *testing.T, name string) []runtime.Object {
	t.Helper()
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(name), Generation: 2},
		Spec: appsv1.StatefulSetSpec{Replicas: &s.Replicas, PodManagementPolicy: s.Policy, UpdateStrategy: s.Strategy,
			Selector: &metav1.LabelSelector{MatchLabels: labels}, MinReadySeconds: minReadySeconds, RevisionHistoryLimit: new(int32(10)),
			Ordinals: &appsv1.StatefulSetOrdinals{Start: s.Start}}}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, CurrentRevision: name + "-" + s.Current, CurrentReplicas: s.Counted}
	objects := []runtime.Object{set}
	for number, revision := range []string{"old", "new"} {
		set.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: revision}}}}
		objects = append(objects, revisionOf(t, set, name+"-"+revision, int64(number+1)))
	}
	for _, p := range s.Pods {
		words := strings.Fields(p)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + words[0], Namespace: "shop",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}}}
		pod.UID = types.UID(pod.Name)
		pod.Labels = map[string]string{"app": name, appsv1.StatefulSetRevisionLabel: name + "-" + words[1],
			appsv1.StatefulSetPodNameLabel: pod.Name, appsv1.PodIndexLabel: words[0]}
		states[words[2]](pod)
		objects = append(objects, pod)
	}
	return objects
}

// revisionOf returns the revision of the StatefulSet's template, as the controller's getPatch and newRevision make it.
func revisionOf(t *testing.T, set *appsv1.StatefulSet, name string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	raw, err := runtime.Encode(scheme.Codecs.LegacyCodec(appsv1.SchemeGroupVersion), set)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		t.Fatal(err)
	}
	whole.Spec.Template["$patch"] = "replace"
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": whole.Spec.Template}})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := history.NewControllerRevision(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), set.Spec.Template.Labels,
		runtime.RawExtension{Raw: patch}, number, new(int32))
	if err != nil {
		t.Fatal(err)
	}
	revision.Name, revision.Namespace = name, set.Namespace
	return revision
}
