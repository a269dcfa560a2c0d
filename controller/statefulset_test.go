package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stayput/stayput/controller/drain"
	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/internal/observe"
)

const statefulSetJSON = `{
	"metadata": {"name": "web", "namespace": "shop", "uid": "db", "generation": 2, "labels": {%s}},
	"spec": {
		"replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "serviceName": "db",
		"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
		"template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "app", "image": "app:2"}]}}
	},
	"status": {"observedGeneration": 2, "replicas": 2, "currentReplicas": 2, "currentRevision": "web-old", "updateRevision": "web-new"}
}`

// withMembers adds a StatefulSet of two pods whose template just got a new image. It has the name of the Deployment, and those labels.
func (c *cluster) withMembers(labels string) *cluster {
	c.T.Helper()
	objects := []client.Object{fixture.Decode[apps.StatefulSet](c.T, fmt.Sprintf(statefulSetJSON, labels)),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}
	for number, name := range []string{"old", "new"} {
		revision := fixture.Decode[apps.ControllerRevision](c.T,
			fmt.Sprintf(strings.ReplaceAll(controllerRevisionJSON, "agent", "db"), name, number+1, fmt.Sprint("app:", number+1)))
		revision.Labels = map[string]string{"app": "db", "controller.kubernetes.io/hash": name}
		revision.OwnerReferences[0].Kind, revision.OwnerReferences[0].UID = "StatefulSet", "db"
		objects = append(objects, revision)
	}
	for _, name := range []string{"web-0", "web-1"} {
		pod := fixture.Decode[corev1.Pod](c.T, fmt.Sprintf(fixture.PodJSON, name))
		pod.Labels = map[string]string{"app": "db", "controller-revision-hash": "web-old"}
		pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID = "StatefulSet", "web", "db"
		pod.Spec.NodeName = "one"
		objects = append(objects, pod)
	}
	for _, object := range objects {
		if err := c.Create(c.T.Context(), object); err != nil {
			c.T.Fatal(err)
		}
	}
	return c
}

func (c *cluster) memberReconciler() *Reconciler {
	live := c.Observer()
	return &Reconciler{
		kind:   observe.StatefulSets,
		cached: observe.StatefulSets.Source(live), live: observe.StatefulSets.Source(live),
		drains:     &drain.Drains{Cached: live, Live: live},
		namespaces: live,
		leadership: c.leadership(),
		hold:       c.hold(),
		writer:     write.Writer{Client: c, Live: c, Fallbacks: fixture.Fallbacks},
		Reporter:   report.New(observe.StatefulSets, c.Recorder, c.metrics),
	}
}

// member returns the label with the revision and the image of a pod.
func (c *cluster) member(name string) (revision, image string) {
	c.T.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(c.T.Context(), types.NamespacedName{Namespace: fixture.Web.Namespace, Name: name}, pod); err != nil {
		c.T.Fatal(err)
	}
	return pod.Labels["controller-revision-hash"], pod.Spec.Containers[0].Image
}

func TestReconcileStatefulSet(t *testing.T) {
	c := newCluster(t).withMembers(`"stayput.dev/update": "in-place"`)
	r := c.memberReconciler()
	c.start(r)
	c.reconcile(r)
	if !revisions.Updating(c.controllerRevision("web-new")) || revisions.Updating(c.controllerRevision("web-old")) {
		t.Error("want a mark on the update revision only")
	}
	fixture.WantTold(t, c.Recorder, "Normal "+report.EventStarted+" Moving running pods to ControllerRevision web-new")
	c.reconcile(r) // takes the highest pod out of service
	c.reconcile(r)
	if revision, image := c.member("web-1"); revision != "web-new" || image != "app:2" {
		t.Errorf("the highest pod is %s with %s", revision, image)
	}
	if revision, image := c.member("web-0"); revision != "web-old" || image != "app:1" {
		t.Errorf("the other pod is %s with %s", revision, image)
	}
}

// TestReconcileStatefulSetWithoutOptIn: the namespace's label does not suffice.
func TestReconcileStatefulSetWithoutOptIn(t *testing.T) {
	c := newCluster(t).withMembers("")
	r := c.memberReconciler()
	for range 3 {
		c.reconcile(r)
	}
	if revisions.Updating(c.controllerRevision("web-new")) {
		t.Error("the update revision is marked")
	}
	if revision, image := c.member("web-1"); revision != "web-old" || image != "app:1" {
		t.Errorf("the highest pod is %s with %s", revision, image)
	}
}
