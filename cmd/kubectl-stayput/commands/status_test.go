package commands

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

var isController = true

func ownedBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: &isController}}
}

// revision returns a ReplicaSet of the Deployment web.
func revision(name, image string, replicas int32, marks map[string]string) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name),
			OwnerReferences: ownedBy("Deployment", "web"), Labels: marks},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: template()},
	}
	rs.Spec.Template.Spec.Containers[0].Image = image
	return rs
}

// pod returns a pod of the ReplicaSet owner, whose container is ready or not.
func pod(name, owner, image string, ready bool) *corev1.Pod {
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name),
			OwnerReferences: ownedBy("ReplicaSet", owner), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "node-" + name, Containers: []corev1.Container{{Name: "app", Image: image}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: ready, Image: image, State: running}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: is}, {Type: corev1.ContainersReady, Status: is}}},
	}
}

// out returns the pod as the leader has just taken it out of service.
func out(pod *corev1.Pod) *corev1.Pod {
	pod.Status.Conditions[0] = readiness.TakenOutUntil(pod, time.Now().Add(time.Minute), time.Now())
	return pod
}

// recorded returns the decision as it is recorded for the Deployment's template.
func recorded(decision string, d *appsv1.Deployment) string {
	raw, _ := json.Marshal(d.Spec.Template)
	template, _ := apps.ParseTemplate(raw)
	return steps.Recorded(decision, template)
}

// partial returns a Deployment in the middle of an update, with all that belongs to it. Without marks, the update is not Stayput's.
func partial(mode string, marks map[string]string) map[string]runtime.Object {
	d := web()
	d.Spec.Template.Spec.Containers[0].Image = "app:2"
	d.Annotations = map[string]string{inplace.AnnotationDecision: recorded("in place: restarts app", d)}
	pods := "/api/v1/namespaces/shop/pods/"
	return map[string]runtime.Object{
		shopPath: shop(mode), webPath: d,
		inShop + "replicasets/old": revision("old", "app:1", 3, marks), inShop + "replicasets/new": revision("new", "app:2", 1, marks),
		pods + "a": pod("a", "new", "app:2", true), pods + "b": pod("b", "new", "app:2", false),
		pods + "c": out(pod("c", "old", "app:1", true)), pods + "d": pod("d", "old", "app:1", true),
		"/api/v1/namespaces/shop/events/e": &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
			ReportingController: report.RecorderName, Reason: report.EventStarted, Message: "Moving running pods",
			EventTime: metav1.NewMicroTime(time.Unix(0, 0))},
		"/api/v1/namespaces/shop/events/f": &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
			ReportingController: "deployment-controller", Reason: "ScalingReplicaSet"},
	}
}

// TestLastEditOfAnOutage: what is recorded is not shown as the decision on another edit.
func TestLastEditOfAnOutage(t *testing.T) {
	objects := partial("in-place", nil)
	objects[webPath].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image = "app:3"
	said, _ := serve(t, objects).run("status", "deploy/web", "-n", "shop")
	if !strings.Contains(said.out, "Last edit:  no manager was asked about it\n") {
		t.Errorf("%s%s", said.out, said.err)
	}
}

func TestStatusOfAnUpdate(t *testing.T) {
	s := serve(t, partial("in-place", map[string]string{"app": "web", inplace.LabelUpdating: "1767262800"}))
	said, code := s.run("status", "deploy/web", "-n", "shop")
	want := `Deployment shop/web
Mode:       in-place
Last edit:  in place: restarts app
Update:     in place, 1 of 4 pods updated

POD   NODE     REVISION   STATE      WAITS FOR
a     node-a   new        updated    -
b     node-b   new        updating   readiness of container app
c     node-c   old        updating   its drain
d     node-d   old        waiting    its turn

Events (UTC):
  00:00:00  InPlaceUpdateStarted: Moving running pods
`
	if said.out != want || code != 0 {
		t.Errorf("exit code %d, %s\n%s\ninstead of\n%s", code, said.err, said.out, want)
	}
}

// TestStatusSaysHowLong: a pod of each revision says how long its container takes to start. Three pods are left.
func TestStatusSaysHowLong(t *testing.T) {
	objects := partial("in-place", map[string]string{"app": "web", inplace.LabelUpdating: "1767262800"})
	for _, name := range []string{"a", "d"} {
		readyAfter(9*time.Second, objects["/api/v1/namespaces/shop/pods/"+name].(*corev1.Pod))
	}
	said, _ := serve(t, objects).run("status", "deploy/web", "-n", "shop")
	want := "Update:     in place, 1 of 4 pods updated; the rest takes about 27s: 3 × 9s to start, 1 at a time; " +
		"stops and drains (2s behind a Service) come on top\n"
	if !strings.Contains(said.out, want) {
		t.Errorf("%q is missing in:\n%s%s", want, said.out, said.err)
	}
}

// TestStatusAtAPartition checks that a pod that was taken out of service, but not patched, is at the partition as well.
func TestStatusAtAPartition(t *testing.T) {
	objects := partial("in-place", map[string]string{"app": "web", inplace.LabelUpdating: "1767262800"})
	objects[webPath].(*appsv1.Deployment).Annotations = map[string]string{inplace.AnnotationPartition: "2"}
	said, code := serve(t, objects).run("status", "deploy/web", "-n", "shop")
	for _, part := range []string{"Update: in place, 1 of 4 pods updated, 2 at the partition",
		"d node-d old at partition the partition to be lowered or removed"} {
		if !strings.Contains(strings.Join(strings.Fields(said.out), " "), part) || code != 0 {
			t.Errorf("%q is missing in:\n%s%s", part, said.out, said.err)
		}
	}
}

// TestStatusWhereImagesArePulledOnly: pods c and d stay at the partition, and the node of d has the image. The user may not be allowed to
// list nodes.
func TestStatusWhereImagesArePulledOnly(t *testing.T) {
	objects := partial("in-place", map[string]string{"app": "web", inplace.LabelUpdating: "1767262800"})
	objects[webPath].(*appsv1.Deployment).Annotations = map[string]string{inplace.AnnotationPartition: "100%"}
	for _, name := range []string{"node-c", "node-d"} {
		objects["/api/v1/nodes/"+name] = &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	objects["/api/v1/nodes/node-d"].(*corev1.Node).Status.Images = []corev1.ContainerImage{{Names: []string{"docker.io/library/app:2"}}}
	for counts, forbidden := range map[string][]string{
		"1 of 4 pods updated, 2 at the partition; new images on 1 of 2 nodes\n": nil,
		"1 of 4 pods updated, 2 at the partition\n":                             {"/api/v1/nodes"},
	} {
		s := serve(t, objects)
		s.forbidden = forbidden
		if said, code := s.run("status", "deploy/web", "-n", "shop"); !strings.Contains(said.out, counts) || code != 0 {
			t.Errorf("%q is missing in:\n%s%s", counts, said.out, said.err)
		}
	}
}

// TestStatusInAnOrderOfNodes: pod c is drained on a canary node, and pod d serves on another node. The user may not be allowed to list
// nodes.
func TestStatusInAnOrderOfNodes(t *testing.T) {
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	}
	objects := partial("in-place", map[string]string{"app": "web", inplace.LabelUpdating: "1767262800"})
	objects[webPath].(*appsv1.Deployment).Annotations[inplace.AnnotationCanaryNodes] = "canary=yes"
	for name, labels := range map[string]map[string]string{"node-a": nil, "node-b": nil, "node-c": {"canary": "yes"}, "node-d": nil} {
		objects["/api/v1/nodes/"+name] = node(name, labels)
	}
	for awaits, forbidden := range map[string][]string{
		"pod c on node node-c (a canary node) to be updated and available": nil,
		"its turn": {"/api/v1/nodes"},
	} {
		s := serve(t, objects)
		s.forbidden = forbidden
		said, code := s.run("status", "deploy/web", "-n", "shop")
		if want := "d node-d old waiting " + awaits; !strings.Contains(strings.Join(strings.Fields(said.out), " "), want) || code != 0 {
			t.Errorf("%q is missing in:\n%s%s", want, said.out, said.err)
		}
	}
}

func TestStatusOfANativeOne(t *testing.T) {
	s := serve(t, partial("", map[string]string{"app": "web"}))
	said, _ := s.run("status", "deployments.apps", "web", "-n", "shop")
	for _, part := range []string{"Mode:       native", "the namespace has no label stayput.dev/update",
		"its replacement by the Deployment controller"} {
		if !strings.Contains(said.out, part) {
			t.Errorf("%q is missing in:\n%s%s", part, said.out, said.err)
		}
	}
}

// TestStatusWhereStayputLeftNothing checks that pods of a namespace without the label count as updated, too.
func TestStatusWhereStayputLeftNothing(t *testing.T) {
	objects := partial("", map[string]string{"app": "web"})
	for _, gone := range []string{"b", "c", "d"} {
		delete(objects, "/api/v1/namespaces/shop/pods/"+gone)
	}
	said, _ := serve(t, objects).run("status", "deploy/web", "-n", "shop")
	if !strings.Contains(said.out, "; 1 of 1 pods updated") {
		t.Errorf("it says:\n%s%s", said.out, said.err)
	}
}

func TestStatusIsWatchedUntilTheEnd(t *testing.T) {
	d := web()
	d.Status = appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 4, AvailableReplicas: 4}
	s := serve(t, map[string]runtime.Object{shopPath: shop("in-place"), webPath: d})
	if said, code := s.run("status", "deploy/web", "-n", "shop", "--watch"); code != 0 || !strings.Contains(said.out, "Update:     none") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

func TestStatusOfWhat(t *testing.T) {
	s := serve(t, stored("in-place"))
	for want, arguments := range map[string][]string{
		"no workload that Stayput updates":   {"status", "job/web"},
		"there is no StatefulSet shop/web":   {"status", "sts/web", "-n", "shop"},
		"say deployment/NAME":                {"status", "deploy"},
		"there is no DaemonSet shop/another": {"status", "ds/another", "-n", "shop"},
	} {
		if said, code := s.run(arguments...); code != 1 || !strings.Contains(said.err, want) {
			t.Errorf("%v: exit code %d: %s", arguments, code, said)
		}
	}
}
