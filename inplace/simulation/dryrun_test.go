package simulation

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

func TestDryRunComesFirst(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		asks   bool
	}{
		"known":                      {func(*deployments.Rollout) {}, false},
		"unknown":                    {func(r *deployments.Rollout) { r.Seen.DryRun = dryrun.Result{} }, true},
		"of another update revision": {func(r *deployments.Rollout) { r.Seen.DryRun.UpdateRevision = "a" }, true},
		"no update revision yet":     {func(r *deployments.Rollout) { r.ReplicaSets, r.Seen.DryRun = r.ReplicaSets[:1], dryrun.Result{} }, false},
		"paused":                     {func(r *deployments.Rollout) { r.Deployment.Spec.Paused, r.Seen.DryRun = true, dryrun.Result{} }, false},
		"native":                     {func(r *deployments.Rollout) { r.Seen.Mode, r.Seen.DryRun = inplace.ModeNone, dryrun.Result{} }, false},
		"a new leader in the middle": {func(r *deployments.Rollout) { r.Seen.DryRun = dryrun.Result{}; fixture.Out(r.Seen.Pods[0]) }, true},
		"a native rollout in progress": {func(r *deployments.Rollout) {
			r.ReplicaSets[1].Spec.Replicas, r.Seen.DryRun = new(int32(1)), dryrun.Result{}
		}, false},
		"paused in the middle": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Paused, r.Seen.DryRun = true, dryrun.Result{}
			markAll(r)
		}, true},
		"only marks are left to remove": {func(r *deployments.Rollout) {
			r.Deployment.Spec.Template, r.Seen.DryRun = fixture.App{Image: "v1"}.Template(), dryrun.Result{}
			markAll(r)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := fixture.ToV2()
			test.change(r)
			plan := r.Plan()
			if (plan.DryRun != nil) != test.asks {
				t.Fatalf("asks for %+v", plan.DryRun)
			}
			if test.asks && slices.ContainsFunc(plan.Steps, func(step steps.Step) bool {
				_, isStatus := step.(steps.PatchStatus)
				return !isStatus
			}) {
				t.Errorf("without an answer it does %v", plan.Steps)
			}
		})
	}
}

// markAll marks every ReplicaSet as updating.
func markAll(r *deployments.Rollout) {
	for _, rs := range r.ReplicaSets {
		rs.Labels[inplace.LabelUpdating] = inplace.FormatTime(fixture.Start)
	}
}

// TestPodsOnVirtualNodes: no kubelet restarts their containers, so the update is native.
func TestPodsOnVirtualNodes(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		code   string
	}{
		"a virtual one": {map[string]string{"type": "virtual-kubelet"}, inplace.CodeVirtualNode},
		"any other":     {map[string]string{"type": "large"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v2"})
			node := fixture.MountingNode("n1")
			node.Labels = test.labels
			r.Seen.Nodes = []*corev1.Node{node}
			oldRS := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1)
			fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 0)
			fixture.PodOf(r, "p", oldRS, func(pod *corev1.Pod) { pod.Spec.NodeName = "n1" })
			if got := strings.Join(r.Plan().Decision.Reasons.Codes(), " "); got != test.code {
				t.Errorf("a Deployment's is native for %q, want %q", got, test.code)
			}

			f := fixture.NewFleet(t, 1)
			f.Seen.Nodes[0].Labels = test.labels
			f.Edit(fixture.App{Image: "v2"})
			if got := strings.Join(f.Plan().Decision.Reasons.Codes(), " "); got != test.code {
				t.Errorf("a DaemonSet's is native for %q, want %q", got, test.code)
			}
		})
	}
}

// TestRewrittenImages: pods get the images that admission gives to new pods. All else is as usual.
func TestRewrittenImages(t *testing.T) {
	for name, newWorkload := range map[string]func(*testing.T) *lockstep{
		"two pods":          func(t *testing.T) *lockstep { return newLockstep(t, 2, nil) },
		"the last endpoint": func(t *testing.T) *lockstep { return lastEndpoint(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorkload(t)
			s.mirror = true
			before := sorted(s.pods.objects)
			for _, image := range []string{"v2", "v3"} {
				s.edit("sets the image", fixture.App{Image: image})
				s.rest()
				s.intact(before)
			}
			s.edit("sets a label", fixture.App{Image: "v3", Chart: "c2"})
			s.steps = nil
			s.rest()
			if out := slices.DeleteFunc(s.steps, func(step string) bool { return !strings.HasPrefix(step, "out") }); len(out) > 0 {
				t.Errorf("for a label: %v", out)
			}
			s.intact(before)
			for _, pod := range sorted(s.pods.objects) {
				if got := fixture.Images(pod); got != "app=mirror/v3" {
					t.Errorf("%s has %s", pod.Name, got)
				}
			}
		})
	}
}

// TestRewrittenImageGoesBack: a pod restarts while it serves, and the update is undone or falls back. The pod gets the image it had.
func TestRewrittenImageGoesBack(t *testing.T) {
	for name, ends := range map[string]func(*lockstep){
		"undone":            func(s *lockstep) { s.edit("undoes", fixture.App{Image: "v1", Sidecar: "s1"}) },
		"no longer managed": func(s *lockstep) { s.mode = inplace.ModeNative },
	} {
		t.Run(name, func(t *testing.T) {
			s := lastEndpoint(t, nil)
			s.mirror = true
			s.edit("sets the images", fixture.App{Image: "v1", Sidecar: "s1"})
			s.rest()
			s.steps = nil
			s.edit("sets one image", fixture.App{Image: "v2", Sidecar: "s1"})
			s.until(s.moved(1))
			if got := fixture.Images(sorted(s.pods.objects)[0]); got != "app=mirror/v2,side=mirror/s1" {
				t.Fatalf("in the middle the pod has %s", got)
			}
			first := sorted(s.pods.objects)[0].Name
			ends(s)
			s.steps = nil
			s.until(s.moved(1))
			if got := fixture.Images(s.pods.objects[first]); got != "app=mirror/v1,side=mirror/s1" {
				t.Errorf("the pod went back to %s", got)
			}
		})
	}
}

// TestRewrittenSidecar: a sidecar of the template gets the image that admission makes of the template's.
func TestRewrittenSidecar(t *testing.T) {
	s := newLockstep(t, 1, func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v1", Mesh: "m1"}.Template() })
	s.mirror = true
	before := sorted(s.pods.objects)
	s.edit("sets the sidecar's image", fixture.App{Image: "v1", Mesh: "m2"})
	s.rest()
	if got := fixture.Images(s.pods.objects[before[0].Name]); got != "app=mirror/v1,mesh=mirror/m2" {
		t.Errorf("the pod has %s", got)
	}
	s.intact(before)
}
