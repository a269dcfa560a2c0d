package engine_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// update returns an update with three pods of the update revision, to which these are changes.
func update(changes ...func(*corev1.Pod)) *engine.Update {
	r := fixture.New(3, fixture.App{Image: "v2"})
	rs := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 3)
	u := engine.NewUpdate(r.Deployment, &r.Seen)
	for i, change := range changes {
		pod := fixture.PodOf(r, string("abc"[i]), rs, change)
		s := u.StateOf(pod, podstate.PodRevision{Revision: rs.Name, Updated: true}, 0)
		u.States = append(u.States, &s)
	}
	return &u
}

func TestFinish(t *testing.T) {
	surge := func(pod *corev1.Pod) { pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true"} }
	native := inplace.Reasons{{Code: inplace.CodeStrategy, Message: "no"}}
	for name, test := range map[string]struct {
		decided       steps.Decision
		changes       []func(*corev1.Pod)
		phase         steps.Phase
		moved, moving int32
	}{
		"nothing to do":     {steps.Decision{}, []func(*corev1.Pod){nil, nil, nil}, steps.PhaseIdle, 3, 0},
		"native":            {steps.Decision{Reasons: native}, []func(*corev1.Pod){nil, nil, nil}, steps.PhaseNative, 3, 0},
		"a gate is closed":  {steps.Decision{}, []func(*corev1.Pod){nil, fixture.Drained}, steps.PhaseUpdating, 1, 1},
		"in place":          {steps.Decision{Held: true}, []func(*corev1.Pod){nil, fixture.Drained, nil}, steps.PhaseUpdating, 2, 1},
		"surge pods aside":  {steps.Decision{Held: true}, []func(*corev1.Pod){nil, surge}, steps.PhaseUpdating, 1, 0},
		"without any pods":  {steps.Decision{Held: true}, nil, steps.PhaseUpdating, 0, 0},
		"native, and moved": {steps.Decision{Reasons: native}, []func(*corev1.Pod){fixture.Drained}, steps.PhaseNative, 0, 1},
	} {
		u := update(test.changes...)
		u.Decided = test.decided
		plan := u.Finish("Deployment", 3, fixture.Start, nil, func(progress string) { u.Phase(steps.PhaseUpdating, progress) })
		if p := plan.Progress; plan.Phase != test.phase || p.Moved != test.moved || p.Moving != test.moving || p.Replicas != 3 {
			t.Errorf("%s: phase %s, %+v", name, plan.Phase, p)
		}
	}
}

// TestLeaveToNative checks that a fallback is persisted only if pods are left, and never for an uninstallation.
func TestLeaveToNative(t *testing.T) {
	for name, test := range map[string]struct {
		left      bool
		code      string
		persisted int
	}{
		"pods are left":    {true, inplace.CodeRefused, 1},
		"no pods are left": {false, inplace.CodeRefused, 0},
		"uninstalled":      {true, inplace.CodeUninstalled, 0},
	} {
		u := update(fixture.Drained)
		u.LeaveToNative(fixture.NewDeployment(1, fixture.App{}), "hash", test.left, inplace.Reason{Code: test.code})
		persisted, opened := 0, 0
		for _, step := range u.Result.Steps {
			switch step := step.(type) {
			case steps.PersistFallback:
				persisted++
			case steps.SetGate:
				if step.Open {
					opened++
				}
			}
		}
		if persisted != test.persisted || opened != 1 || u.Decided.Held || u.Decided.Reasons[0].Code != test.code {
			t.Errorf("%s: persisted %d, opened %d gates, decided %+v", name, persisted, opened, u.Decided)
		}
	}
}
