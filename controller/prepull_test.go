package controller

import (
	"context"
	"strings"
	"testing"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/controller/shutdown"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/internal/observe"
)

// pulling switches pre-pulling on and gives each pod a node of its own.
func (c *cluster) pulling() *cluster {
	c.T.Helper()
	namespace := c.namespace()
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, inplace.AnnotationPrePullParallelism, "2")
	c.do(c.Update(c.T.Context(), namespace))
	pods := &corev1.PodList{}
	c.do(c.List(c.T.Context(), pods))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" {
			pod.Spec.NodeName = "node-of-" + pod.Name
			c.do(c.Update(c.T.Context(), pod))
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}
		c.do(client.IgnoreNotFound(c.Delete(c.T.Context(), node)))
		node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.4.2"}}}
		c.do(c.Create(c.T.Context(), node))
	}
	return c
}

func (c *cluster) do(err error) {
	c.T.Helper()
	if err != nil {
		c.T.Fatal(err)
	}
}

// reader returns a Reader whose pre-pull pods run an image of Stayput.
func (c *cluster) reader() observe.Reader {
	return observe.Reader{Reader: c, Waiter: prepull.WaitImage{Image: "stayput:1", Args: []string{"wait"}}}
}

func (c *cluster) pullingReconciler() *Reconciler { return c.reconciler(c.reader()) }

func (c *cluster) pullingDaemonReconciler() *Reconciler {
	r := c.daemonReconciler()
	r.cached, r.live = observe.DaemonSets.Source(c.reader()), observe.DaemonSets.Source(c.reader())
	return r
}

func (c *cluster) reconcileTimes(r *Reconciler, times int) {
	c.T.Helper()
	for range times {
		c.reconcile(r)
	}
}

func (c *cluster) prePullPods() []*corev1.Pod {
	c.T.Helper()
	list := &corev1.PodList{}
	c.do(c.List(c.T.Context(), list, client.HasLabels{inplace.LabelPrePull}))
	var prePullPods []*corev1.Pod
	for i := range list.Items {
		prePullPods = append(prePullPods, &list.Items[i])
	}
	return prePullPods
}

// tell sets the state of the container of every pre-pull pod.
func (c *cluster) tell(state corev1.ContainerState) {
	c.T.Helper()
	for _, prePullPod := range c.prePullPods() {
		prePullPod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "wait", State: state}}
		c.do(c.Status().Update(c.T.Context(), prePullPod))
	}
}

// out returns how many pods are out of service.
func (c *cluster) out() int {
	c.T.Helper()
	list := &corev1.PodList{}
	c.do(c.List(c.T.Context(), list))
	out := 0
	for i := range list.Items {
		if readiness.Out(&list.Items[i]) {
			out++
		}
	}
	return out
}

func (c *cluster) wantPrePullPods(prePullPods, out int) {
	c.T.Helper()
	if got := len(c.prePullPods()); got != prePullPods || c.out() != out {
		c.T.Fatalf("%d pre-pull pods and %d pods out of service, want %d and %d", got, c.out(), prePullPods, out)
	}
}

func TestPullsFirst(t *testing.T) {
	c := newCluster(t).pulling()
	r := c.pullingReconciler()
	c.reconcileTimes(r, 4)
	c.wantPrePullPods(2, 0)
	if created := testutil.ToFloat64(c.metrics.PrePullPods); created != 2 {
		t.Errorf("the metric counts %v pre-pull pods", created)
	}
	c.tell(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	c.reconcile(r)
	c.wantPrePullPods(2, 1)
	c.reconcile(r)
	c.wantPrePullPods(3, 1) // during the turn of the first pod, the last node pulls
}

func TestBadImageIsToldOnce(t *testing.T) {
	c := newCluster(t).pulling()
	r := c.pullingReconciler()
	c.reconcileTimes(r, 4)
	fixture.Told(c.Recorder)
	c.tell(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "app:2: not found"}})
	c.reconcileTimes(r, 2)
	c.tell(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
		Message: `Back-off pulling image "app:2": ErrImagePull: app:2: not found`}})
	c.reconcileTimes(r, 2)
	c.wantPrePullPods(2, 0)
	fixture.WantTold(t, c.Recorder, "Warning ImagePullFailed Image app:2 cannot be pulled: app:2: not found")
}

func TestUndoDeletesPrePullPods(t *testing.T) {
	c := newCluster(t).pulling()
	r := c.pullingReconciler()
	c.reconcileTimes(r, 4)
	deployment := c.Snapshot().Read.Deployment
	deployment.Spec.Template = c.ReplicaSet("web-old").Spec.Template
	c.do(c.Update(t.Context(), deployment))
	c.reconcileTimes(r, 2)
	c.wantPrePullPods(0, 0)
}

// refusing fails the creation of pods.
func (c *cluster) refusing(with error) *cluster {
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*corev1.Pod); ok {
				return with
			}
			return to.Create(ctx, object, options...)
		}})
	return c
}

func TestGoesOnWithoutPrePullPods(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", fixture.ErrText("exceeded quota: q"))
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "full"}}
	quota.Status.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("4")}
	quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}
	for name, test := range map[string]struct {
		change func(*cluster)
		note   string
	}{
		"refused":   {func(c *cluster) { c.refusing(forbidden) }, "exceeded quota: q"},
		"quota":     {func(c *cluster) { c.do(c.Create(c.T.Context(), quota.DeepCopy())) }, "ResourceQuota full admits no more pods"},
		"old nodes": {func(c *cluster) { c.age() }, `kubelet "v1.34.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t).pulling()
			test.change(c)
			r := c.pullingReconciler()
			c.reconcileTimes(r, 6)
			c.wantPrePullPods(0, 1)
			told := strings.Join(fixture.Told(c.Recorder), "\n")
			if strings.Count(told, "PrePullSkipped") != 1 || !strings.Contains(told, test.note) {
				t.Errorf("events are %q", told)
			}
		})
	}
}

// age gives the nodes kubelets that are too old to mount images.
func (c *cluster) age() {
	nodes := &corev1.NodeList{}
	c.do(c.List(c.T.Context(), nodes))
	for i := range nodes.Items {
		nodes.Items[i].Status.NodeInfo.KubeletVersion = "v1.34.0"
		c.do(c.Status().Update(c.T.Context(), &nodes.Items[i]))
	}
}

func TestAPrePullPodThatFailsForNowIsTriedAgain(t *testing.T) {
	c := newCluster(t).pulling().refusing(apierrors.NewInternalError(fixture.ErrText("webhook")))
	r := c.pullingReconciler()
	var err error
	for range 4 {
		_, err = r.Reconcile(t.Context(), fixture.Request)
	}
	if err == nil || !strings.Contains(err.Error(), "webhook") {
		t.Errorf("error %v, want that of the pre-pull pod", err)
	}
	c.wantPrePullPods(0, 0)
	if !revisions.Updating(c.ReplicaSet("web-new")) {
		t.Error("the other steps were not made")
	}
}

func TestDaemonSetPullsFirst(t *testing.T) {
	c := newCluster(t).withDaemons().pulling()
	for _, pod := range c.Snapshot().Read.Seen.Pods { // the DaemonSet would need pods on their nodes
		c.do(c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}))
	}
	r := c.pullingDaemonReconciler()
	c.reconcileTimes(r, 4)
	c.wantPrePullPods(2, 0)
	for _, prePullPod := range c.prePullPods() {
		if owner := metav1.GetControllerOf(prePullPod); owner.Kind != "ControllerRevision" || owner.Name != "web-new" {
			t.Errorf("%s is controlled by %+v", prePullPod.Name, owner)
		}
		enqueued := router{c.reader(), observe.DaemonSets}.pod(t.Context(), prePullPod)
		if len(enqueued) != 1 || enqueued[0] != (reconcile.Request{NamespacedName: fixture.Web}) {
			t.Errorf("the pre-pull pod enqueues %v", enqueued)
		}
		if enqueued := (router{c.reader(), observe.Deployments}).pod(t.Context(), prePullPod); len(enqueued) > 0 {
			t.Errorf("the pre-pull pod of a DaemonSet enqueues Deployments %v", enqueued)
		}
	}
	rollout, err := observe.DaemonSets.Rollout(t.Context(), c.reader(), fixture.Web)
	if err != nil || len(rollout.Seen.Pods) != 2 || len(rollout.Seen.Pull.PrePullPods) != 2 {
		t.Fatalf("pods %v, pre-pull pods %v, %v", rollout.Seen.Pods, rollout.Seen.Pull.PrePullPods, err)
	}
	c.tell(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	c.reconcile(r)
	c.wantPrePullPods(2, 1)
}

func TestPrePullPodsEnqueueTheirDeploymentAnywhere(t *testing.T) {
	c := newCluster(t).pulling()
	c.reconcileTimes(c.pullingReconciler(), 4)
	c.unlabel()
	for _, prePullPod := range c.prePullPods() {
		enqueued := router{c.reader(), observe.Deployments}.pod(t.Context(), prePullPod)
		if len(enqueued) != 1 || enqueued[0] != fixture.Request {
			t.Errorf("the pre-pull pod enqueues %v", enqueued)
		}
	}
}

func TestUninstallDeletesPrePullPods(t *testing.T) {
	c := newCluster(t).pulling()
	c.reconcileTimes(c.pullingReconciler(), 4)
	c.wantPrePullPods(2, 0)
	// An orphan: its workload is gone.
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "orphan", UID: types.UID("orphan"),
		Labels: map[string]string{inplace.LabelPrePull: "gone"}}}
	c.do(c.Create(t.Context(), orphan))
	c.do(shutdown.Uninstall(t.Context(), c, c.reader()))
	c.wantPrePullPods(0, 0)
}

// TestStrangerHasThePrePullPodsName has a pod that Stayput has not created. It has the name of the first pre-pull pod.
// The pre-pull pod of another node is created meanwhile.
func TestStrangerHasThePrePullPodsName(t *testing.T) {
	for name, disguise := range map[string]func(stranger, prePullPod *corev1.Pod){
		"no label or owner": func(*corev1.Pod, *corev1.Pod) {},
		"with the label":    func(stranger, prePullPod *corev1.Pod) { stranger.Labels = prePullPod.Labels },
		"with the owner":    func(stranger, prePullPod *corev1.Pod) { stranger.OwnerReferences = prePullPod.OwnerReferences },
		"of another workload": func(stranger, prePullPod *corev1.Pod) {
			stranger.Labels, stranger.OwnerReferences = prePullPod.Labels, []metav1.OwnerReference{*prePullPod.OwnerReferences[0].DeepCopy()}
			stranger.OwnerReferences[0].UID = "another"
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t).pulling()
			c.reconcileTimes(c.pullingReconciler(), 4)
			prePullPod := c.prePullPods()[0]
			for _, made := range c.prePullPods() {
				c.do(c.Delete(t.Context(), made))
			}
			fixture.Told(c.Recorder)
			stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: prePullPod.Namespace, Name: prePullPod.Name}}
			disguise(stranger, prePullPod)
			c.do(c.Create(t.Context(), stranger))
			c.reconcileTimes(c.pullingReconciler(), 4)
			if c.out() != 1 {
				t.Errorf("%d pods are out of service, want 1: the update waits for the stranger", c.out())
			}
			notes := strings.Join(fixture.Told(c.Recorder), "\n")
			if !strings.Contains(notes, report.EventNotPulled) || !strings.Contains(notes, "already exists") {
				t.Errorf("the events are %q", notes)
			}
		})
	}
}
