package controller

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stayput/stayput/controller/drain"
	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/controller/shutdown"
	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/internal/observe"
)

// withDaemons adds a DaemonSet of two pods whose template just got a new image. It has the name of the Deployment.
func (c *cluster) withDaemons() *cluster {
	c.T.Helper()
	objects := []client.Object{
		fixture.Decode[apps.DaemonSet](c.T, daemonSetJSON),
		fixture.Decode[apps.ControllerRevision](c.T, fmt.Sprintf(controllerRevisionJSON, "old", 1, "app:1")),
		fixture.Decode[apps.ControllerRevision](c.T, fmt.Sprintf(controllerRevisionJSON, "new", 2, "app:2")),
	}
	for _, name := range []string{"one", "two"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
		pod := fixture.Decode[corev1.Pod](c.T, fmt.Sprintf(fixture.PodJSON, "agent-"+name))
		pod.Labels = map[string]string{"app": "agent", "controller-revision-hash": "old"}
		pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name, pod.OwnerReferences[0].UID = "DaemonSet", "web", "agent"
		pod.Spec.NodeName = name
		objects = append(objects, pod)
	}
	for _, object := range objects {
		if err := c.Create(c.T.Context(), object); err != nil {
			c.T.Fatal(err)
		}
	}
	return c
}

const daemonSetJSON = `{
	"metadata": {"name": "web", "namespace": "shop", "uid": "agent", "generation": 2},
	"spec": {
		"selector": {"matchLabels": {"app": "agent"}}, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
		"template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "app", "image": "app:2"}]}}
	},
	"status": {"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 0, "numberAvailable": 2}
}`

const controllerRevisionJSON = `{
	"metadata": {
		"name": "web-%[1]s", "namespace": "shop", "uid": "agent-%[1]s", "labels": {"app": "agent", "controller-revision-hash": %[1]q},
		"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": "agent", "controller": true}]
	},
	"revision": %[2]d,
	"data": {"spec": {"template": {"$patch": "replace", "metadata": {"creationTimestamp": null, "labels": {"app": "agent"}},
		"spec": {"containers": [{"name": "app", "image": %[3]q, "resources": {}}]}}}}
}`

func (c *cluster) daemonReconciler() *Reconciler {
	live := c.Observer()
	return &Reconciler{
		cached: observe.DaemonSets.Source(live), live: observe.DaemonSets.Source(live),
		drains:     &drain.Drains{Cached: live, Live: live},
		namespaces: live,
		leadership: c.leadership(),
		hold:       c.hold(),
		writer:     write.Writer{Client: c, Live: c, Fallbacks: fixture.Fallbacks},
		Reporter:   report.New(observe.DaemonSets, c.Recorder, c.metrics),
	}
}

func (c *cluster) controllerRevision(name string) *apps.ControllerRevision {
	c.T.Helper()
	revision := &apps.ControllerRevision{}
	if err := c.Get(c.T.Context(), types.NamespacedName{Namespace: fixture.Web.Namespace, Name: name}, revision); err != nil {
		c.T.Fatal(err)
	}
	return revision
}

func TestReconcileDaemonSet(t *testing.T) {
	c := newCluster(t).withDaemons()
	r := c.daemonReconciler()
	c.start(r)
	c.reconcile(r)
	if !revisions.Updating(c.controllerRevision("web-new")) || revisions.Updating(c.controllerRevision("web-old")) {
		t.Error("want a mark on the update revision only")
	}
	fixture.WantTold(t, c.Recorder, "Normal "+report.EventStarted+" Moving running pods to ControllerRevision web-new")
	before, after := c.controllerRevision("web-old").Data, c.controllerRevision("web-new").Data
	if !json.Valid(after) || len(before) != len(after) {
		t.Errorf("the mark changed the data of the revision: %s", after)
	}
	c.reconcile(r)
	out := 0
	for _, name := range []string{"agent-one", "agent-two"} {
		pod := &corev1.Pod{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: fixture.Web.Namespace, Name: name}, pod); err != nil {
			t.Fatal(err)
		}
		if readiness.Out(pod) {
			out++
		}
	}
	if out != 1 {
		t.Errorf("%d pods are out of service, want 1", out)
	}
}

func TestReconcileFallsBackForADaemonSet(t *testing.T) {
	c := newCluster(t).withDaemons()
	c.Refuse = func(object client.Object, _ string) error {
		if _, isPod := object.(*corev1.Pod); isPod {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(), fixture.ErrText("policy no-patches"))
		}
		return nil
	}
	r := c.daemonReconciler()
	c.start(r)
	c.reconcile(r)
	fixture.Told(c.Recorder)
	if _, err := r.Reconcile(t.Context(), fixture.Request); err != nil {
		t.Fatal(err)
	}
	if revision := c.controllerRevision("web-new"); !c.fellBack("agent") || revisions.Updating(revision) {
		t.Errorf("fell back: %t; labels of the update revision are %v", c.fellBack("agent"), revision.Labels)
	}
	fixture.WantTold(t, c.Recorder, "Warning "+report.EventFellBack+" Left to the DaemonSet controller: ")
}

func TestUninstallFallsBackForDaemonSets(t *testing.T) {
	c := newCluster(t).withDaemons()
	if err := shutdown.Uninstall(t.Context(), c, observe.Reader{Reader: c}); err != nil {
		t.Fatal(err)
	}
	if !revisions.Nudged(c.controllerRevision("web-new")) {
		t.Error("the DaemonSet controller is not nudged")
	}
}

func TestRouterOfDaemonSets(t *testing.T) {
	c := newCluster(t).withDaemons()
	route := router{observe.Reader{Reader: c}, observe.DaemonSets}
	pod := &corev1.Pod{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: fixture.Web.Namespace, Name: "agent-one"}, pod); err != nil {
		t.Fatal(err)
	}
	other := c.Snapshot().Read.Seen.Pods[0]
	told := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&told.ObjectMeta, inplace.AnnotationRestarted, "waiting app: an update of the DaemonSet is in progress")
	marked := c.controllerRevision("web-new")
	marked.Labels[inplace.LabelUpdating] = "1"
	for _, labelled := range []bool{true, false} {
		if !labelled {
			c.unlabel()
		}
		for what, test := range map[string]struct{ enqueued, want bool }{
			"pod":                 {len(route.pod(t.Context(), pod)) == 1, labelled},
			"pod told to wait":    {len(route.pod(t.Context(), told)) == 1, true},
			"pod of a Deployment": {len(route.pod(t.Context(), other)) == 1, false},
			"node":                {len(route.node(t.Context(), &corev1.Node{})) == 1, labelled},
			"revision":            {len(route.revision(t.Context(), c.controllerRevision("web-new"))) == 1, labelled},
			"marked revision":     {len(route.revision(t.Context(), marked)) == 1, true},
			"namespace":           {len(route.namespace(t.Context(), c.namespace())) == 1, true},
		} {
			if test.enqueued != test.want {
				t.Errorf("%s, namespace labelled %t: enqueued is %t", what, labelled, test.enqueued)
			}
		}
	}
}
