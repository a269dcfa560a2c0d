package controller

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/report"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// dryRunServer answers dry runs and counts them.
type dryRunServer struct {
	*cluster
	asked int
	// pod is the pod of the last dry run.
	pod *unstructured.Unstructured
	err error
}

func (c *cluster) dryRunning(err error) *dryRunServer {
	server := &dryRunServer{cluster: c, err: err}
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{Create: server.create})
	return server
}

func (h *dryRunServer) create(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if dry := (&client.CreateOptions{}).ApplyOptions(options).DryRun; len(dry) == 0 {
		return to.Create(ctx, object, options...)
	}
	h.asked++
	h.pod = object.(*unstructured.Unstructured).DeepCopy()
	if h.err != nil {
		return h.err
	}
	return to.Create(ctx, object, options...)
}

// fellBack reports whether the update fell back.
func (h *dryRunServer) fellBack() bool { return h.cluster.fellBack(h.Snapshot().Read.Deployment.UID) }

func (h *dryRunServer) begun() bool { return revisions.Updating(h.ReplicaSet("web-new")) }

func forbidden(why string) error {
	return apierrors.NewForbidden(corev1.Resource("pods"), "web-new-", fixture.ErrText(why))
}

func TestDryRunsOnce(t *testing.T) {
	h := newCluster(t).dryRunning(nil)
	r := h.reconciler(nil)
	h.reconcileTimes(r, 4)
	if h.asked != 1 || !h.begun() {
		t.Errorf("asked %d times, begun %v", h.asked, h.begun())
	}
	hash := h.pod.GetLabels()["pod-template-hash"]
	if h.pod.GetGenerateName() != "web-new-" || h.pod.GetNamespace() != fixture.Web.Namespace || hash != "new" {
		t.Errorf("asked for %v", h.pod)
	}
	pods := &corev1.PodList{}
	h.do(h.List(t.Context(), pods))
	if len(pods.Items) != 3 {
		t.Errorf("there are %d pods: that of the dry run was stored", len(pods.Items))
	}
	if err := h.Delete(t.Context(), h.Snapshot().Read.Deployment); err != nil {
		t.Fatal(err)
	}
	h.reconcile(r)
	if r.remembers() {
		t.Error("a deleted Deployment is remembered")
	}
}

func TestDryRunsAgainForAnotherUpdate(t *testing.T) {
	h := newCluster(t).dryRunning(nil)
	r := h.reconciler(nil)
	h.reconcileTimes(r, 3)
	deployment := h.Snapshot().Read.Deployment
	forward := deployment.Spec.Template
	deployment.Spec.Template = h.ReplicaSet("web-old").Spec.Template
	h.do(h.Update(t.Context(), deployment))
	h.reconcileTimes(r, 4)
	if h.begun() {
		t.Fatal("the update is not over")
	}
	deployment = h.Snapshot().Read.Deployment
	deployment.Spec.Template = forward
	h.do(h.Update(t.Context(), deployment))
	h.err = forbidden("policy signed")
	h.reconcileTimes(r, 2)
	if !h.fellBack() {
		t.Error("what a policy allowed once is not asked again")
	}
}

func TestRefusedDryRun(t *testing.T) {
	h := newCluster(t).dryRunning(forbidden("policy signed"))
	h.reconcileTimes(h.reconciler(nil), 4)
	if h.out() > 0 || !h.fellBack() {
		t.Errorf("%d pods are out of service, fell back %v", h.out(), h.fellBack())
	}
	fixture.WantTold(t, h.Recorder,
		"Normal UpdateRecreatesPods Pods are recreated: no new pod is admitted: pods \"web-new-\" is forbidden: policy signed")
}

func TestDryRunThatSaysNothing(t *testing.T) {
	for name, err := range map[string]error{
		"quota":      forbidden("exceeded quota: full, requested: pods=1, used: pods=3, limited: pods=3"),
		"no quota":   forbidden("insufficient quota to consume: pods"),
		"new quota":  forbidden("status unknown for quota: full, resources: pods"),
		"no dry run": apierrors.NewBadRequest(`admission webhook "a.b.c" does not support dry run`),
		"no permission": apierrors.NewForbidden(corev1.Resource("pods"), "",
			fixture.ErrText(`User "stayput" cannot create resource "pods" in API group "" in the namespace "shop"`)),
	} {
		t.Run(name, func(t *testing.T) {
			h := newCluster(t).dryRunning(err)
			h.reconcileTimes(h.reconciler(nil), 5)
			if !h.begun() || h.asked != 1 {
				t.Errorf("begun %v, asked %d times", h.begun(), h.asked)
			}
			want := report.EventNoDryRun + " What admission changes in new pods is unknown: " + err.Error()
			if all := strings.Join(fixture.Told(h.Recorder), "\n"); strings.Count(all, want) != 1 {
				t.Errorf("events are %s", all)
			}
		})
	}
}

// TestRefusedDryRunQuotesThePod has policies that quote the pod which they refuse. A tenant decides what texts the pod
// has.
func TestRefusedDryRunQuotesThePod(t *testing.T) {
	const quotes = `it is forbidden: exceeded quota: full`
	webhook := func(reason metav1.StatusReason, message string) error { // ToStatusErr in k8s.io/apiserver/pkg/admission/plugin/webhook/errors
		code := map[metav1.StatusReason]int32{
			metav1.StatusReasonForbidden: http.StatusForbidden, metav1.StatusReasonBadRequest: http.StatusBadRequest}[reason]
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: reason, Message: `admission webhook "a.b.c" denied the request: ` + message}}
	}
	for name, err := range map[string]error{
		"policy quotes image":      forbidden("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: image " + quotes),
		"webhook quotes image":     webhook(metav1.StatusReasonForbidden, "image "+quotes),
		"webhook says pods":        webhook(metav1.StatusReasonForbidden, `pods "x" is forbidden: exceeded quota: full`),
		"webhook has two lines":    webhook(metav1.StatusReasonForbidden, "image\npods \"x\" is forbidden: exceeded quota: full"),
		"policy quotes permission": forbidden(`image x: is forbidden: User "u" cannot create resource "pods"`),
		"webhook quotes dry run":   webhook(metav1.StatusReasonBadRequest, `image "x" does not support dry run`),
		"webhook quotes a webhook": webhook(metav1.StatusReasonBadRequest, `admission webhook "x" does not support dry run`),
		"dry run in the middle":    apierrors.NewBadRequest(`image admission webhook "x" does not support dry run`),
	} {
		t.Run(name, func(t *testing.T) {
			h := newCluster(t).dryRunning(err)
			h.reconcileTimes(h.reconciler(nil), 5)
			if h.begun() || !h.fellBack() {
				t.Errorf("begun %v, fell back %v", h.begun(), h.fellBack())
			}
		})
	}
}

func TestDryRunWithoutAnswer(t *testing.T) {
	webhook := apierrors.NewInternalError(fixture.ErrText(`failed calling webhook "a.b.c": connection refused`))
	h := newCluster(t).dryRunning(webhook)
	r := h.reconciler(nil)
	h.reconcileTimes(r, 2)
	if result := h.reconcile(r); result.RequeueAfter != inplace.LookAgain || h.begun() || h.fellBack() || h.out() > 0 {
		t.Errorf("requeued after %s, begun %v, fell back %v, %d pods out of service", result.RequeueAfter, h.begun(), h.fellBack(), h.out())
	}
	known := &r.memories.recall(fixture.Web).DryRun
	known.At = known.At.Add(-2 * inplace.LeaderPatience)
	h.reconcile(r)
	if !h.fellBack() || h.out() > 0 {
		t.Errorf("fell back %v, %d pods out of service", h.fellBack(), h.out())
	}
	fixture.WantTold(t, h.Recorder, webhook.Error())
}

func TestDryRunAnsweredLate(t *testing.T) {
	h := newCluster(t).dryRunning(apierrors.NewTimeoutError("slow", 1))
	r := h.reconciler(nil)
	h.reconcileTimes(r, 3)
	h.err = nil
	h.reconcile(r)
	if !h.begun() {
		t.Error("the update does not begin")
	}
}

// TestDryRunIsKeptAsFarAsItIsCompared has admission grow the pod to more than 1 MiB. Stayput compares running pods with
// a small part of it only.
func TestDryRunIsKeptAsFarAsItIsCompared(t *testing.T) {
	grown := func(list string, entry map[string]any, count int) func(pod *unstructured.Unstructured) error {
		return func(pod *unstructured.Unstructured) error {
			var all []any
			for i := range count {
				one := map[string]any{"name": fmt.Sprint("added-", i)}
				maps.Copy(one, entry)
				all = append(all, one)
			}
			if list != "env" {
				own, _, err := unstructured.NestedSlice(pod.Object, "spec", list)
				if err != nil {
					return err
				}
				return unstructured.SetNestedSlice(pod.Object, append(own, all...), "spec", list)
			}
			containers, _, err := unstructured.NestedSlice(pod.Object, "spec", "containers")
			if err != nil {
				return err
			}
			containers[0].(map[string]any)["env"] = all
			return unstructured.SetNestedSlice(pod.Object, containers, "spec", "containers")
		}
	}
	long := strings.Repeat("x", 1<<10)
	for name, test := range map[string]struct {
		admit  func(*unstructured.Unstructured) error
		begins bool
		says   string
	}{
		"volumes":    {admit: grown("volumes", map[string]any{"hostPath": map[string]any{"path": long}}, 1200), begins: true},
		"containers": {admit: grown("initContainers", map[string]any{"image": "app:1"}, 200), says: "containers, more than 100"},
		"variables":  {admit: grown("env", map[string]any{"value": long}, 10_000), says: "more than 64"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
					return test.admit(object.(*unstructured.Unstructured))
				}})
			r := c.reconciler(nil)
			c.reconcileTimes(r, 4)
			known := r.memories.recall(fixture.Web).DryRun.Pod
			switch begun := revisions.Updating(c.ReplicaSet("web-new")); {
			case begun != test.begins:
				t.Errorf("begun %v", begun)
			case begun && (known == nil || len(known.Spec.Volumes) > 0 || known.Size() > 2<<10):
				t.Errorf("kept of the pod: %v", known)
			case !begun:
				fixture.WantTold(t, c.Recorder, test.says)
			}
		})
	}
}

func TestDryRunOfADaemonPod(t *testing.T) {
	h := newCluster(t).withDaemons().dryRunning(forbidden("policy signed"))
	h.reconcileTimes(h.daemonReconciler(), 3)
	owner := metav1.GetControllerOf(h.pod)
	if owner == nil || owner.Kind != "DaemonSet" || h.pod.GetLabels()["controller-revision-hash"] != "new" {
		t.Errorf("asked for %v", h.pod)
	}
	if !h.cluster.fellBack("agent") {
		t.Error("the update did not fall back")
	}
}

// TestPatchThatAdmissionChangesIsNotMade has a policy that changes images in every write of a pod.
func TestPatchThatAdmissionChangesIsNotMade(t *testing.T) {
	c := newCluster(t)
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{Patch: func(ctx context.Context, to client.WithWatch,
		object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if dry := (&client.PatchOptions{}).ApplyOptions(options).DryRun; len(dry) == 0 {
			return to.Patch(ctx, object, patch, options...)
		}
		object.(*corev1.Pod).Spec.Containers = []corev1.Container{{Name: "app", Image: "mirror/app:2"}}
		return nil
	}})
	r := c.reconciler(nil)
	for range 10 {
		c.reconcile(r)
	}
	for _, pod := range c.Snapshot().Read.Seen.Pods {
		if image := pod.Spec.Containers[0].Image; image != "app:1" || readiness.Out(pod) {
			t.Errorf("pod %s has image %s, and is out of service: %t", pod.Name, image, readiness.Out(pod))
		}
	}
	fixture.WantTold(t, c.Recorder, report.EventStarted, "container app gets image mirror/app:2 instead of app:2")
}

func TestRewrittenImageIsPatched(t *testing.T) {
	c := newCluster(t)
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			pod := object.(*unstructured.Unstructured)
			return unstructured.SetNestedSlice(pod.Object, []any{map[string]any{"name": "app", "image": "mirror/app:2"}}, "spec", "containers")
		}})
	r := c.reconciler(nil)
	patched := 0
	for range 10 {
		c.reconcile(r)
	}
	for _, pod := range c.Snapshot().Read.Seen.Pods {
		switch image := pod.Spec.Containers[0].Image; image {
		case "mirror/app:2":
			patched++
		case "app:1":
		default:
			t.Errorf("pod %s has image %s", pod.Name, image)
		}
	}
	if patched != 1 {
		t.Errorf("%d pods have the image of the dry run, want that of the first turn", patched)
	}
}
