//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// members is the StatefulSet of each scenario.
const members = statefulSetPrefix + "db"

const kindsLabel = "stayput.dev/kinds"

// everyKind is the value of kindsLabel with which all workloads of the namespace are updated in place.
const everyKind = "deployments.daemonsets.statefulsets"

// stateful asks for updates of StatefulSets in place.
var stateful = with(labelled, kindsLabel, everyKind)

// statefulSets runs the scenarios of StatefulSets that can run in parallel. Those without another policy have OrderedReady, which is the
// default.
func statefulSets(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"set image":                membersUpdated,
		"undo of a crashing image": membersUndoCrashing,
		"native partition":         membersAtPartition,
		"leader last":              membersLeaderLast,
		"undo half-way":            membersUndoneHalfway,
		"two at a time":            membersTwoAtATime,
	})
	nightly(t, map[string]func(*testing.T){
		"bad image at the first deployment": membersBootstrapped,
		"without the opt-in":                membersUntouched,
		"in-place-only, lost revision":      membersOfALostRevision,
		"OnDelete, in place":                membersOnDeleteInPlace,
		"OnDelete, by an operator":          membersDeletedByAnOperator,
		"scaled half-way":                   membersScaled,
		"pods lost half-way":                membersLost,
		"waiting for minutes":               membersWaitForMinutes,
	})
}

// statefulSetOption changes a StatefulSet before it is created.
type statefulSetOption func(*appsv1.StatefulSet)

var policies = map[string]statefulSetOption{
	"OrderedReady": func(*appsv1.StatefulSet) {},
	"Parallel":     func(sts *appsv1.StatefulSet) { sts.Spec.PodManagementPolicy = appsv1.ParallelPodManagement },
}

// db returns a StatefulSet of the test application at v1.
func db(replicas int32, options ...statefulSetOption) *appsv1.StatefulSet {
	like := web(1, named("db"))
	sts := &appsv1.StatefulSet{
		ObjectMeta: like.ObjectMeta,
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, ServiceName: "db", Selector: like.Spec.Selector,
			Template: like.Spec.Template},
	}
	for _, set := range options {
		set(sts)
	}
	return sts
}

// ofTemplate applies an option for Deployments to a StatefulSet.
func ofTemplate(set option) statefulSetOption {
	return func(sts *appsv1.StatefulSet) {
		like := &appsv1.Deployment{ObjectMeta: sts.ObjectMeta,
			Spec: appsv1.DeploymentSpec{Selector: sts.Spec.Selector, Template: sts.Spec.Template}}
		set(like)
		sts.ObjectMeta, sts.Spec.Selector, sts.Spec.Template = like.ObjectMeta, like.Spec.Selector, like.Spec.Template
	}
}

func allOfTemplate(options []option) []statefulSetOption {
	var all []statefulSetOption
	for _, set := range options {
		all = append(all, ofTemplate(set))
	}
	return all
}

// submitOne creates a Deployment (kind 0), a DaemonSet (1) or a StatefulSet, Parallel (2) or OrderedReady, of two pods each where the kind
// lets us choose. It returns its name.
func (s *scenario) submitOne(kind int, name string, options []option) string {
	s.Helper()
	policy := policies["OrderedReady"]
	switch kind {
	case 0:
		d := web(2, options...)
		s.submit(d)
		return called(d)
	case 1:
		ds := agent(allTemplated(options)...)
		s.submitDaemonSet(ds)
		return called(ds)
	case 2:
		policy = policies["Parallel"]
	}
	sts := db(2, append(allOfTemplate(options), policy)...)
	sts.Spec.ServiceName = name
	s.submitStatefulSet(sts)
	return called(sts)
}

func toPartition(kept int32) statefulSetOption {
	return func(sts *appsv1.StatefulSet) {
		sts.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &kept}}
	}
}

// fromOrdinal has the ordinals begin there. A partition counts from there, too.
func fromOrdinal(start int32) statefulSetOption {
	return func(sts *appsv1.StatefulSet) { sts.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start} }
}

// newStatefulScenario is newScenario for StatefulSets. It also checks that nothing says of a pod that lives that it was deleted.
func newStatefulScenario(t *testing.T, labels map[string]string) *scenario {
	t.Helper()
	s := newScenario(t, labels)
	t.Cleanup(s.nativeDeletesAreTrue)
	return s
}

// newAskingScenario is newStatefulScenario where StatefulSets are updated in place.
func newAskingScenario(t *testing.T, labels map[string]string) *scenario {
	t.Helper()
	return newStatefulScenario(t, with(labels, kindsLabel, everyKind))
}

// nativeDeletesAreTrue checks the events of the StatefulSet controller: as many deletions as there were, and no refusal but Stayput's.
func (s *scenario) nativeDeletesAreTrue() {
	found, err := clients.CoreV1().Events(s.namespace).List(context.Background(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=StatefulSet"})
	if err != nil {
		s.Error(err)
		return
	}
	refused := map[string]int{}
	for _, e := range found.Items {
		refused[e.InvolvedObject.Name] += timesOf([]corev1.Event{e}, "FailedDelete")
		switch {
		case e.Reason == "FailedDelete" && !strings.Contains(e.Message, heldDeletion):
			s.Errorf("the StatefulSet controller warns: %s", e.Message)
		case e.Reason == "SuccessfulDelete" && !ever(s.recorder, func(pod *corev1.Pod) bool {
			return !alive(pod) && strings.Contains(e.Message, pod.Name)
		}):
			s.Errorf("the StatefulSet controller says: %s", e.Message)
		}
	}
	s.Logf("refused DELETEs of pods, by StatefulSet: %v", refused)
}

// form creates the StatefulSet and waits until it is rolled out.
func (s *scenario) form(sts *appsv1.StatefulSet) {
	s.Helper()
	s.submitStatefulSet(sts)
	s.completes(members)
}

func (s *scenario) submitStatefulSet(sts *appsv1.StatefulSet) {
	s.Helper()
	if _, err := clients.AppsV1().StatefulSets(s.namespace).Create(s.Context(), sts, metav1.CreateOptions{}); err != nil {
		s.Fatalf("creating StatefulSet %s: %v", sts.Name, err)
	}
}

// inOrdinalOrder checks that pods got the image from the highest ordinal down.
func (s *scenario) inOrdinalOrder(tag string) {
	s.Helper()
	if order := s.orderOf(tag); !slices.IsSortedFunc(order, func(a, b int) int { return b - a }) {
		s.Errorf("pods get image %s in the order %v", tag, order)
	}
}

// orderOf returns the ordinals of the pods in the order in which they got the image.
func (s *scenario) orderOf(tag string) []int {
	var order []int
	for _, e := range s.recorder.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if is && !pulls(pod) && imagesOf(pod.Spec)["app"] == appImage(tag) && !slices.Contains(order, ordinalOf(pod)) {
			order = append(order, ordinalOf(pod))
		}
	}
	return order
}

// membersUpdated checks the names, UIDs, nodes and addresses of the pods; the judge checks that two of three are Ready at every moment.
func membersUpdated(t *testing.T) {
	s := newStatefulScenario(t, stateful)
	s.form(db(3))
	s.inPlace(members, once, func() { s.setImage(members, "app=v2") })
	s.inOrdinalOrder("v2")
	s.runs(members, "v2")
	s.history(members, "1", "2")
}

// membersUndoCrashing checks that the undo reaches the pod with the bad image. Natively the StatefulSet controller waits for that pod for
// ever (kubernetes#67250).
func membersUndoCrashing(t *testing.T) {
	s := newStatefulScenario(t, with(stateful, parallelismSetting, "0"))
	s.form(db(3))
	var undone time.Time
	s.inPlace(members, restarts{"app": anyNumber}, func() {
		s.setImage(members, "app=crash")
		s.fails(members, "CrashLoopBackOff")
		undone = time.Now()
		s.rollout("undo", members)
	})
	t.Logf("complete %s after the undo", time.Since(undone).Round(time.Second/10))
	s.runs(members, "v1")
	s.someNeverRestarted(members)
}

// membersBootstrapped: the first pod never runs, so the others are not created, until the image is edited.
func membersBootstrapped(t *testing.T) {
	s := newStatefulScenario(t, with(stateful, parallelismSetting, "0"))
	s.begin("bad at first", Rules{Created: exactly(3), Deleted: none, Outage: true})
	s.submitStatefulSet(db(3, ofTemplate(image("crash"))))
	s.fails(members, "CrashLoopBackOff")
	before := s.pods(members)
	s.setImage(members, "app=v1")
	s.completes(members)
	s.survived(members, before)
}

// member returns the pod of the StatefulSet with that ordinal.
func (s *scenario) member(name string, ordinal int) *corev1.Pod {
	s.Helper()
	for _, pod := range s.workload(name).pods {
		if ordinalOf(pod) == ordinal {
			return pod
		}
	}
	s.Fatalf("%s has no pod with ordinal %d", name, ordinal)
	return nil
}

func membersAtPartition(t *testing.T) {
	s := newStatefulScenario(t, stateful)
	s.form(db(3, toPartition(2), fromOrdinal(5)))
	before := s.pods(members)
	s.begin("in stages", inPlace)
	s.setImage(members, "app=v2")
	s.completes(members)
	s.haveImages(members, "v1", "v1", "v2")
	s.setPartition(members, 0)
	s.completes(members)
	s.kept(members, before, once)
	s.runs(members, "v2")
}

// membersUntouched: in a labelled namespace without the opt-in, a StatefulSet is updated as without Stayput, also where in-place-only
// rejects edits of other workloads.
func membersUntouched(t *testing.T) {
	s := newStatefulScenario(t, inPlaceOnly)
	s.form(db(2))
	s.recreatedUnder(recreatedMembers, members, func() {
		s.expectIn(s.setImage(members, "app=v2"), "Warning: stayput: not updated in place: it has no label "+updateLabel+" itself, and label "+
			kindsLabel)
	})
	s.recreatedUnder(recreatedMembers, members, func() { s.setEnv(members, "COLOUR=green") })
	sts := s.workload(members)
	if decision := sts.GetAnnotations()[decisionAnnotation]; decision != "" {
		t.Errorf("a decision is recorded: %s", decision)
	}
	s.neverOut(members)
}

// recreatedMembers is recreated, with an outage that is also possible natively: the controller takes the next pod as soon as the last one
// is Ready, which its kubelet may take back.
var recreatedMembers = Rules{Created: some, Deleted: some, Outage: true}

// membersOfALostRevision checks that pods whose ControllerRevision was deleted at a partition are not replaced, and that the update
// says so.
func membersOfALostRevision(t *testing.T) {
	s := newStatefulScenario(t, with(inPlaceOnly, kindsLabel, everyKind))
	s.form(db(3, toPartition(2)))
	before, old := s.pods(members), s.workload(members).pods[0].Labels[appsv1.ControllerRevisionHashLabelKey]
	s.begin("lost", inPlace)
	s.setImage(members, "app=v2")
	s.completes(members)
	s.kubectl("", "delete", "controllerrevision", old)
	s.setPartition(members, 0)
	s.reported("StatefulSet", "InPlaceUpdateWaits")
	s.kept(members, before, restarts{"app": {0, 1}})
	s.haveImages(members, "v1", "v1", "v2")
}

const toOnDelete = `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`

func membersOnDeleteInPlace(t *testing.T) {
	s := newStatefulScenario(t, stateful)
	s.form(db(3))
	s.patch(members, toOnDelete)
	s.inPlaceOnDelete(members, "StatefulSet")
	s.begin("deleted by hand", Rules{Created: exactly(1), Deleted: exactly(1), Outage: true})
	s.kubectl("", "delete", "pod", "db-1", "--timeout=2m")
	s.reaches(members, state{"done with the pod that was deleted", func(now podCounts) bool {
		return now == podCounts{done: 1, untouched: 2}
	}})
}

// membersDeletedByAnOperator deletes pods as operators do that use OnDelete. Stayput changes none of these pods. If it is asked to update
// them in place as well, it holds none of these deletions.
func membersDeletedByAnOperator(t *testing.T) {
	s := newStatefulScenario(t, stateful)
	s.form(db(3))
	s.patch(members, toOnDelete)
	s.begin("by an operator", Rules{Created: exactly(3), Deleted: exactly(3), Outage: true})
	s.expectIn(s.setImage(members, "app=v2"), "Warning:", "with strategy OnDelete the user decides")
	for ordinal := 2; ordinal >= 0; ordinal-- {
		s.kubectl("", "delete", "pod", fmt.Sprintf("db-%d", ordinal), "--timeout=1m")
		s.reaches(members, state{"done with the pods that were deleted", func(now podCounts) bool {
			return now == podCounts{done: 3 - ordinal, untouched: ordinal}
		}})
	}
	s.neverOut(members)
	s.kubectl("", "label", members, updateLabel+"=in-place")
	s.begin("by both", Rules{Created: exactly(1), Deleted: exactly(1), Outage: true})
	s.setImage(members, "app=v3")
	s.kubectl("", "delete", "pod", "db-0", "--timeout=1m")
	s.ends(members)
	s.wait(members+" to bear no mark", of(members, func(now workload) error { return now.unmarked() }))
	s.runs(members, "v3")
}

// inPlaceOnDelete checks a workload with strategy OnDelete that asks for updates in place: an image is updated, and a change that needs new
// pods changes no pod.
func (s *scenario) inPlaceOnDelete(name, kind string) {
	s.Helper()
	s.create(web(1, named("clock")))
	s.kubectl("", "label", name, updateLabel+"=in-place")
	before := s.pods(name)
	s.begin("in place", inPlace)
	s.expectIn(s.setImage(name, "app=v2"), "Warning:", "in place")
	s.ends(name) // kubectl rollout status does not support OnDelete
	s.wait(name+" to bear no mark", of(name, func(now workload) error { return now.unmarked() }))
	s.kept(name, before, once)
	s.begin("not in place", updatesOnly("clock"))
	s.expectIn(s.setEnv(name, "COLOUR=green"), "Warning:", "until you delete it")
	s.reported(kind, "UpdateRecreatesPods")
	s.tick("v2")
	s.kept(name, before, once)
}

// membersLeaderLast checks the order of pods when the highest ordinal leads, and that a selector that Stayput cannot read is refused.
func membersLeaderLast(t *testing.T) {
	s := newStatefulScenario(t, stateful)
	s.form(db(3))
	s.expectIn(s.refused("annotate", members, updateLastAnnotation+"=role="), updateLastAnnotation, "label selector")
	s.kubectl("", "annotate", members, updateLastAnnotation+"=role=leader")
	s.kubectl("", "label", "pod", "db-2", "role=leader")
	s.inPlace(members, once, func() { s.setImage(members, "app=v2") })
	if order := s.orderOf("v2"); !slices.Equal(order, []int{1, 0, 2}) {
		s.Errorf("pods get the image in the order %v", order)
	}
}

// updateLastAnnotation selects the pods that go last.
const updateLastAnnotation = "stayput.dev/update-last"
