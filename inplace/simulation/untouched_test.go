package simulation

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// unreadable returns a template that panics when it is decoded.
func unreadable() apps.Template {
	var template apps.Template
	raw := reflect.ValueOf(&template).Elem().FieldByName("raw")
	*(*[]byte)(raw.Addr().UnsafePointer()) = []byte("{") // any parser fails at once
	return template
}

// TestUnmanagedTemplatesAreNotDecoded: Stayput does not decode the templates of workloads that it does not manage. Decoding these panics or
// fails.
func TestUnmanagedTemplatesAreNotDecoded(t *testing.T) {
	for _, mode := range []inplace.Mode{inplace.ModeNone, inplace.ModeNative} {
		r := fixture.New(2, fixture.App{Image: "v2"})
		r.Seen.Mode = mode
		old, same := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1), fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
		fixture.PodOf(r, "p", old)
		fixture.PodOf(r, "q", same)
		for _, template := range []*apps.Template{&r.Deployment.Spec.Template, &old.Spec.Template, &same.Spec.Template} {
			*template = unreadable()
		}
		if decision := r.Decision(); decision.Held || decision.UpdateRevision != nil || decision.Reasons.Codes()[0] != inplace.CodeMode {
			t.Errorf("%q: the decision is %+v", mode, decision)
		}
		if plan := r.Plan(); len(plan.Steps) > 0 || plan.Phase != steps.PhaseNative {
			t.Errorf("%q: the plan is %+v", mode, plan)
		}
		f := fixture.NewFleet(t, 1)
		f.Seen.Mode = mode
		f.DaemonSet.Spec.Template = unreadable()
		for _, revision := range f.Revisions {
			revision.Data = []byte(`{"spec": {"template": {"spec": 1}}}`)
		}
		if decision := f.Decision(); decision.Held || decision.UpdateRevision != nil || decision.Reasons.Codes()[0] != inplace.CodeMode {
			t.Errorf("%q: the decision on the DaemonSet is %+v", mode, decision)
		}
		if plan := f.Plan(); len(plan.Steps) > 0 || plan.Phase != steps.PhaseNative {
			t.Errorf("%q: the plan for the DaemonSet is %+v", mode, plan)
		}
		if holds, why := f.HoldsDeletion(f.Seen.Pods[0]); holds || why.Code != inplace.CodeMode {
			t.Errorf("%q: the deletion is held: %t, %+v", mode, holds, why)
		}
	}
}

// TestMarksAreRemovedFromUnmanaged leaves one mark of Stayput on a Deployment that is no longer managed.
func TestMarksAreRemovedFromUnmanaged(t *testing.T) {
	label := func(key string) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) { r.ReplicaSets[0].Labels[key] = "1" }
	}
	for name, leave := range map[string]func(*deployments.Rollout){
		"updating": label(inplace.LabelUpdating), "nudged": label(inplace.LabelRenewed),
		"surging":        label(inplace.LabelSurgeReplicas),
		"out of service": podIs(0, fixture.Out),
		"a pre-pull pod": func(r *deployments.Rollout) {
			r.Seen.Pull.PrePullPods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "pre-pull"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			r.Seen.Mode = inplace.ModeNone
			fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1))
			leave(r)
			if plan := r.Plan(); len(plan.Steps) != 1 {
				t.Errorf("%d steps: %+v", len(plan.Steps), plan.Steps)
			}
		})
	}
}
