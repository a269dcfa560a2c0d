package deployments_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// oneAndSurge is a Deployment of one pod, none of which may be unavailable, whose pod has the update revision. So the surge pod is to be
// removed. It belongs to the ReplicaSet with that hash: "b" is the new one.
func oneAndSurge(pod, surge func(*corev1.Pod), hash string) *deployments.Rollout {
	r := fixture.New(1, fixture.App{Image: "v2"})
	r.Seen.Settings.Surge = inplace.SurgeNeeded
	r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(0))
	a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 0), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
	fixture.PodOf(r, "pod", b, pod)
	owner := a
	if hash == "b" {
		owner = b
	}
	*owner.Spec.Replicas++
	owner.Status.Replicas++
	owner.Labels[inplace.LabelSurgeReplicas] = "1"
	a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	fixture.PodOf(r, "surge", owner, func(pod *corev1.Pod) {
		pod.Annotations, pod.Spec.NodeName = map[string]string{inplace.AnnotationSurgePod: "true"}, "node-1"
	}, surge)
	return r
}

// TestSurgePodIsRemoved: a surge pod that has a node stays until as many pods serve as must, also while it does not serve itself: it may
// serve again before the others do. A surge pod of an old ReplicaSet that does not serve goes: it proves nothing.
func TestSurgePodIsRemoved(t *testing.T) {
	unplaced := func(pod *corev1.Pod) {
		fixture.Unready(pod)
		pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
	}
	for name, test := range map[string]struct {
		rollout *deployments.Rollout
		goes    bool
	}{
		"both serve":                       {oneAndSurge(nil, nil, "b"), true},
		"only the surge pod serves":        {oneAndSurge(fixture.Out, nil, "b"), false},
		"only the other pod serves":        {oneAndSurge(nil, fixture.Unready, "b"), true},
		"its startup probe may fail":       {oneAndSurge(provedIn(time.Second), nil, "b"), false},
		"its startup probe has answered":   {oneAndSurge(provedIn(0), nil, "b"), true},
		"neither serves":                   {oneAndSurge(fixture.Out, fixture.Unready, "b"), false},
		"neither serves, it has no node":   {oneAndSurge(fixture.Out, unplaced, "b"), true},
		"neither serves, it is an old one": {oneAndSurge(fixture.Unready, fixture.Unready, "a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			planned := fixture.Brief(test.rollout.Plan().Steps)
			if goes := strings.Contains(planned, "move surge") || strings.Contains(planned, "out surge"); goes != test.goes {
				t.Errorf("the surge pod goes: %t, want %t: %s", goes, test.goes, planned)
			}
		})
	}
}

// relabelled makes the update one in which only labels change.
func relabelled(r *deployments.Rollout) {
	r.Deployment.Spec.Template = fixture.App{Image: "v1", Chart: "2"}.Template()
	r.ReplicaSets[1].Spec.Template = r.Deployment.Spec.Template
	r.Seen.DryRun = fixture.Admitted(r.UpdateRevision())
}

// TestSurgePodsTakeThePlaceOfPods: each surge pod that serves lets one more pod restart, and none of those waits for surge pods. The last
// pods do not restart: they go.
func TestSurgePodsTakeThePlaceOfPods(t *testing.T) {
	none := func(r *deployments.Rollout) {
		r.Deployment.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0))
	}
	sick := func(r *deployments.Rollout) { fixture.Unready(r.Seen.Pods[0]) }
	unplaced := unscheduled(corev1.PodReasonUnschedulable, deployments.UnplaceableAfter)
	partly := func(r *deployments.Rollout) { // an update before this one has restarted its container
		mark := readiness.Move{Hash: "x", Back: map[string]string{"app": "v1"}}
		r.Seen.Pods[0].Annotations, r.Seen.Pods[0].Spec.Containers[0].Image = map[string]string{inplace.AnnotationMove: mark.String()}, "vx"
	}
	edited := func(r *deployments.Rollout) { r.Deployment.Spec.Template = fixture.App{Image: "v3"}.Template() }
	paused := func(r *deployments.Rollout) { r.Deployment.Spec.Paused = true }
	drained := func(r *deployments.Rollout) {
		fixture.Out(r.Seen.Pods[0])
		r.Seen.Settings.Drain, r.Seen.Endpoints = time.Second, podstate.Endpoints{r.Seen.Pods[0].UID: {Listed: true}}
	}
	for name, test := range map[string]struct {
		pods   []string
		surge  func(*corev1.Pod)
		change func(*deployments.Rollout)
		want   string
	}{
		"it serves":                             {[]string{"1", "2", "3"}, nil, nil, "status, out 1, out 2"},
		"it serves, and is for the only pod":    {[]string{"1"}, nil, nil, "status, move 1"},
		"it does not serve yet":                 {[]string{"1", "2", "3"}, fixture.Unready, nil, "status, out 1"},
		"one pod is left for it":                {[]string{"1"}, fixture.Unready, nil, "status"},
		"more pods are left than surge pods":    {[]string{"1", "2", "3", "4"}, nil, nil, "status, out 1, out 2"},
		"no node has room for it":               {[]string{"1"}, unplaced, nil, "status, move surge, out 1"},
		"the only pod does not serve":           {[]string{"1"}, nil, sick, "status, move surge, out 1"},
		"a part of the only pod is updated":     {[]string{"1"}, nil, partly, "status, move surge, out 1"},
		"only labels change":                    {[]string{"1"}, nil, relabelled, "status, 1 → 0"},
		"the user edits again":                  {[]string{"1"}, nil, edited, "move surge"},
		"the user pauses":                       {[]string{"1"}, nil, paused, "status"},
		"another pod is drained":                {[]string{"1", "2"}, nil, drained, "status"},
		"the user allows no surge pod any more": {[]string{"1"}, nil, none, "status, move surge, annotations, annotations, out 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(int32(len(test.pods)), fixture.App{Image: "v2"})
			r.Seen.Settings.Surge = inplace.SurgeReplace
			one := new(intstr.FromInt32(1))
			r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable, r.Deployment.Spec.Strategy.RollingUpdate.MaxSurge = one, one
			a := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, int32(len(test.pods)))
			b := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
			a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
			b.Labels[inplace.LabelSurgeReplicas] = "1"
			for _, pod := range test.pods {
				fixture.PodOf(r, pod, a)
			}
			fixture.PodOf(r, "surge", b, func(pod *corev1.Pod) {
				pod.Annotations, pod.Spec.NodeName = map[string]string{inplace.AnnotationSurgePod: "true"}, "node-1"
			}, test.surge)
			if test.change != nil {
				test.change(r)
			}
			if planned := fixture.Brief(r.Plan().Steps); planned != test.want {
				t.Errorf("planned %q, want %q", planned, test.want)
			}
		})
	}
}

// TestOnePodServesOn: where all pods may be unavailable, the last one of a plan serves until its containers stop, as natively.
func TestOnePodServesOn(t *testing.T) {
	r := fixture.New(3, fixture.App{Image: "v2"})
	r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(3))
	a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 3), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
	a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	r.Seen.Endpoints = podstate.Endpoints{}
	for _, pod := range []string{"1", "2", "3"} {
		r.Seen.Endpoints[fixture.PodOf(r, pod, a).UID] = podstate.Endpoint{Listed: true}
	}
	if planned, want := fixture.Brief(r.Plan().Steps), "status, move 3, out 1, out 2"; planned != want {
		t.Errorf("planned %q, want %q", planned, want)
	}
}

// removing makes the pod the first to be deleted.
func removing(pod *corev1.Pod) {
	pod.Annotations[corev1.PodDeletionCost] = readiness.LowestDeletionCost
}

// TestSurgePodIsTakenOutUntilItIsDeleted: without a webhook its kubelet puts it back every 10 s. It may be deleted only while it is not
// Ready.
func TestSurgePodIsTakenOutUntilItIsDeleted(t *testing.T) {
	lowered := func(r *deployments.Rollout) *deployments.Rollout {
		b := r.UpdateRevision()
		*b.Spec.Replicas, b.Labels[inplace.LabelSurgeReplicas] = 1, ""
		return r
	}
	offered := func(r *deployments.Rollout) *deployments.Rollout {
		r.Seen.Endpoints, r.Seen.Settings.Drain = podstate.Endpoints{"surge": {Listed: true}}, time.Second
		return r
	}
	missing := func(r *deployments.Rollout) *deployments.Rollout {
		r.Deployment.Spec.Replicas, r.UpdateRevision().Spec.Replicas = new(int32(2)), new(int32(3))
		return r
	}
	placed := func(pod *corev1.Pod) { pod.Spec.NodeName = "node-2" }
	out := func(pod *corev1.Pod) { removing(pod); fixture.Out(pod) }
	sick := func(pod *corev1.Pod) { removing(pod); fixture.Unready(pod) }
	for name, test := range map[string]struct {
		rollout *deployments.Rollout
		want    string
		may     bool
	}{
		"it serves":                        {oneAndSurge(placed, nil, "b"), "move surge", false},
		"it is marked":                     {oneAndSurge(placed, removing, "b"), "out surge", false},
		"it is out":                        {oneAndSurge(placed, out, "b"), "2 → 1", true},
		"it is out, and yet to be drained": {offered(oneAndSurge(placed, out, "b")), "", true},
		"it is out, and a pod is missing":  {missing(oneAndSurge(placed, out, "b")), "annotations", true},
		"it does not serve":                {oneAndSurge(placed, sick, "b"), "out surge", true},
		"its replica is gone":              {lowered(oneAndSurge(placed, out, "b")), "marks", true},
		"its replica is gone, and it back": {lowered(oneAndSurge(placed, removing, "b")), "marks, out surge", false},
		"its replica is gone, and it sick": {lowered(oneAndSurge(placed, sick, "b")), "marks", true},
	} {
		t.Run(name, func(t *testing.T) {
			surge := podNamed(test.rollout.Seen.Pods, "surge")
			if may := deployments.MayBeDeleted(surge); may != test.may {
				t.Errorf("it may be deleted: %t", may)
			}
			if planned := withoutStatus(test.rollout); planned != test.want {
				t.Errorf("planned %q, want %q", planned, test.want)
			}
		})
	}
}

// TestSurgePodsAreAdded: no pod may be unavailable, and no surge pod is there yet.
func TestSurgePodsAreAdded(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		want   string
	}{
		"pods are to restart":          {func(*deployments.Rollout) {}, "0 → 1, marks"},
		"the user pauses the rollout":  {func(r *deployments.Rollout) { r.Deployment.Spec.Paused = true }, ""},
		"the user wants no surge pods": {func(r *deployments.Rollout) { r.Seen.Settings.Surge = inplace.SurgeNever }, "out p"},
		"the user edits again": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Template = fixture.App{Image: "v3"}.Template()
		}, ""},
		"one may have been created for a replica that is gone": {func(r *deployments.Rollout) {
			r.ReplicaSets[1].Labels[inplace.LabelSurgeReplicas] = "1"
		}, "marks"},
	} {
		r := surging(nil)
		b := r.ReplicaSets[1]
		r.Seen.Pods, b.Spec.Replicas, b.Status.Replicas = r.Seen.Pods[:2], new(int32), 0
		delete(b.Labels, inplace.LabelSurgeReplicas)
		test.change(r)
		if planned := withoutStatus(r); planned != test.want {
			t.Errorf("%s: planned %q, want %q", name, planned, test.want)
		}
	}
}

// TestPrecedes: whatever the deletion costs are, the ReplicaSet controller deletes pods without a node first, then those that have not
// started. Were another pod taken for one of these, it would be removed in place of the surge pod.
func TestPrecedes(t *testing.T) {
	podOf := func(node string, phase corev1.PodPhase) *deployments.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		return &deployments.Pod{State: podstate.State{Work: podstate.Work{MarkedPod: podstate.MarkedPod{Pod: pod}}}}
	}
	inOrder := []*deployments.Pod{podOf("", corev1.PodPending), podOf("n", corev1.PodPending), podOf("n", corev1.PodRunning)}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if a.Precedes(b) != (i < j) {
				t.Errorf("pod %d precedes pod %d: %t", i, j, i >= j)
			}
		}
	}
}

// TestSurgePodServesWhileOthersArrive: a pod that moves to the new ReplicaSet takes over the replica of a surge pod, which serves until
// another pod does.
func TestSurgePodServesWhileOthersArrive(t *testing.T) {
	r := oneAndSurge(fixture.Unready, removing, "b")
	b := r.UpdateRevision()
	r.Deployment.Spec.Replicas, b.Status.Replicas = new(int32(2)), 2
	arrived := func(pod *corev1.Pod) { pod.Annotations = map[string]string{inplace.AnnotationMove: `{"hash":"b"}`} }
	fixture.PodOf(r, "arrived", b, arrived, fixture.Out)
	if planned := fixture.Brief(r.Plan().Steps); strings.Contains(planned, "out surge") {
		t.Errorf("the only pod that serves goes: %s", planned)
	}
}

func podNamed(pods []*corev1.Pod, name string) *corev1.Pod {
	return pods[slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Name == name })]
}
