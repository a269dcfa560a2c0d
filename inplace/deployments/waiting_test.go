package deployments_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// causes are reasons for which an update falls back, as a plan meets them.
var causes = map[string]func(r *deployments.Rollout) steps.Plan{
	inplace.CodeNotAdmitted: func(r *deployments.Rollout) steps.Plan {
		r.Seen.DryRun.Pod, r.Seen.DryRun.Refused = nil, "no"
		return r.Plan()
	},
	inplace.CodeInjected: func(r *deployments.Rollout) steps.Plan {
		spec := &r.Seen.DryRun.Pod.Spec
		spec.Containers = append(spec.Containers, corev1.Container{Name: "mesh", Image: "m2"})
		return r.Plan()
	},
	inplace.CodeBypassed: func(r *deployments.Rollout) steps.Plan {
		newRS := r.UpdateRevision()
		newRS.Labels[inplace.LabelReplicas] = "1"
		newRS.Labels[inplace.LabelBypassed] = inplace.FormatTime(r.Seen.Now.Add(-30 * time.Second))
		return r.Plan()
	},
	inplace.CodeRefused: func(r *deployments.Rollout) steps.Plan {
		return r.FallBack(inplace.Reason{Code: inplace.CodeRefused, Message: "no"})
	},
	inplace.CodeFailing: func(r *deployments.Rollout) steps.Plan {
		return r.FallBack(inplace.Reason{Code: inplace.CodeFailing, Message: "no"})
	},
	"refused before": func(r *deployments.Rollout) steps.Plan {
		r.Seen.DryRun.Impossible = &inplace.Reason{Code: inplace.CodeRefused, Message: "no"}
		return r.Plan()
	},
	inplace.CodeContainers: func(r *deployments.Rollout) steps.Plan { // the list of annotations is another one, for example
		r.Deployment.Annotations[inplace.AnnotationDecision] = steps.Recorded("in place: restarts app", r.Deployment.Spec.Template)
		env := fixture.App{Image: "v1", Env: "new"}
		r.ReplicaSets[0].Spec.Template = env.Template()
		return r.Plan()
	},
}

// TestItWaitsInsteadOfFallingBack: two of four pods are updated when the window closes, the partition keeps all, or the mode becomes
// in-place-only. Then no reason to fall back ends the hold, or has any pod begin.
func TestItWaitsInsteadOfFallingBack(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(r *deployments.Rollout)
		phase        steps.Phase
		says, reason string
	}{
		"nothing keeps the pods": {func(*deployments.Rollout) {}, steps.PhaseNative, "", ""},
		"a closed window": {func(r *deployments.Rollout) { r.Seen.Settings.Partition.Closed = "the window" }, steps.PhaseWindow,
			"waiting for the window: 2 of 4 pods updated; pods may be replaced after that, unless you", deployments.ReasonWindow},
		"a partition": {func(r *deployments.Rollout) { r.Seen.Settings.Partition.Value = "100%" }, steps.PhasePartition,
			"waiting at partition 100%: 2 of 4 pods updated; pods may be", deployments.ReasonPartition},
		"in-place-only": {func(r *deployments.Rollout) { r.Seen.Mode = inplace.ModeInPlaceOnly }, steps.PhaseStalled,
			"waiting: no pod is replaced, because label stayput.dev/update is in-place-only; edit", deployments.ReasonUpdated},
	} {
		for code, cause := range causes {
			r := twoOfFour(nil, nil, nil, nil)
			r.Seen.Batches = nil
			for _, rs := range r.ReplicaSets {
				rs.Labels[inplace.LabelUpdating] = inplace.FormatTime(r.Seen.Now.Add(-revisions.RenewEvery))
			}
			test.change(r)
			plan := cause(r)
			persists := slices.ContainsFunc(plan.Steps, func(step steps.Step) bool { _, is := step.(steps.PersistFallback); return is })
			if waits := name != "nothing keeps the pods"; plan.Decision.Held != waits || persists && waits || plan.Obstacle.Any() != waits {
				t.Errorf("%s, %s: held %t, persists a fallback %t, %+v", name, code, plan.Decision.Held, persists, plan.Obstacle)
			}
			if plan.Phase != test.phase && code != inplace.CodeBypassed || strings.Contains(fixture.Brief(plan.Steps), "out ") {
				t.Errorf("%s, %s: %s %q, %q", name, code, plan.Phase, plan.Message, fixture.Brief(plan.Steps))
			}
			if test.says == "" || code == inplace.CodeBypassed { // first, the replicas are brought back
				continue
			}
			if !strings.Contains(fixture.Brief(plan.Steps), "renewed") || !strings.HasPrefix(plan.Message, test.says) {
				t.Errorf("%s, %s: %q, %q", name, code, plan.Message, fixture.Brief(plan.Steps))
			}
			status := r.Deployment.Status
			if next := written(plan); len(next.Conditions) > 0 {
				status = next
			}
			if c := apps.DeploymentCondition(status, "Progressing"); c.Reason != test.reason {
				t.Errorf("%s, %s: the status says %+v", name, code, c)
			}
		}
	}
}

// TestARefusalBeforeTheUpdateBeginsIsMarked: without the mark the hold would expire, and pods would be replaced.
func TestARefusalBeforeTheUpdateBeginsIsMarked(t *testing.T) {
	r, _ := fixture.ToV2()
	r.Seen.Settings.Partition.Closed = "the window"
	r.Seen.DryRun.Pod, r.Seen.DryRun.Refused = nil, "no"
	if got := fixture.Brief(r.Plan().Steps); !strings.Contains(got, "marks") {
		t.Errorf("the steps are %q", got)
	}
}

// TestOnlyWhatWasAcceptedWaits: an edit that needs new pods is native, also while a window is closed. So is a rollout that had begun
// natively when the namespace was labelled.
func TestOnlyWhatWasAcceptedWaits(t *testing.T) {
	for decision, waits := range map[string]bool{"": false, "recreate: no": false, "in place: restarts app": true} {
		r, _ := fixture.ToV2()
		r.Seen.Mode, r.Seen.Settings.Partition.Closed = inplace.ModeInPlaceOnly, "the window"
		r.Deployment.Spec.Template = fixture.App{Image: "v2", Env: "new"}.Template()
		r.Deployment.Annotations[inplace.AnnotationDecision] = steps.Recorded(decision, r.Deployment.Spec.Template)
		decided := r.Decision()
		if decided.Held != waits || decided.Waits != waits || len(decided.Reasons) == 0 {
			t.Errorf("after %q: %+v", decision, decided)
		}
		if edit := r.DecideEdit(fixture.App{Image: "v1"}.Template()); edit.InPlace() || !edit.Forbidden {
			t.Errorf("after %q, an edit that needs new pods is accepted: %s", decision, edit)
		}
		r.ReplicaSets[1].Spec.Template, r.ReplicaSets[1].Spec.Replicas = r.Deployment.Spec.Template, new(int32(1))
		if r.Decision().Held {
			t.Errorf("after %q, a native rollout is stopped half-way", decision)
		}
	}
}
