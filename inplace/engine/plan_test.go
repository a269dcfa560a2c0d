package engine_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// plan is a planner whose kind has nothing to say.
type plan struct {
	engine.Update
	impossible *inplace.Reason
	left, asks bool
	called     []string
}

func (p *plan) Base() *engine.Update { return &p.Update }
func (p *plan) CleanUp()             { p.called = append(p.called, "clean up") }
func (p *plan) Started() time.Time   { return fixture.Start }
func (p *plan) Budget() (podstate.Budget, string) {
	return podstate.Budget{Available: 1, Serving: 1}, ""
}

func (p *plan) Impossible() *inplace.Reason { return p.impossible }
func (p *plan) NeedsDryRun() bool           { return p.asks }
func (p *plan) LeftToDo() bool              { return p.left }
func (p *plan) FallBack(inplace.Reason)     { p.called = append(p.called, "fall back") }
func (p *plan) ProceedingPhase(string)      { p.Plan.Phase(steps.PhaseUpdating, "") }

func (p *plan) AskDryRun() {
	p.called = append(p.called, "ask")
}

func (p *plan) Proceed() *inplace.Reason {
	p.called = append(p.called, "proceed")
	return nil
}

// planOf returns the plan of an update with three pods of the update revision, to which these are changes.
func planOf(changes ...func(*corev1.Pod)) *plan {
	r := fixture.New(3, fixture.App{Image: "v2"})
	rs := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 3)
	p := &plan{Update: engine.NewUpdate(engine.Workload{Object: r.Deployment, Kind: "Deployment", Template: r.Deployment.Spec.Template,
		Replicas: 3}, &r.Seen)}
	for i, change := range changes {
		pod := fixture.PodOf(r, string("abc"[i]), rs, change)
		s := p.StateOf(pod, podstate.PodRevision{Revision: rs.Name, Updated: true})
		p.States = append(p.States, &s)
	}
	return p
}

func TestPlan(t *testing.T) {
	surge := func(pod *corev1.Pod) { pod.Annotations = map[string]string{inplace.AnnotationSurgePod: "true"} }
	no := inplace.Reason{Code: inplace.CodeStrategy, Message: "no"}
	native, held := steps.Decision{Reasons: inplace.Reasons{no}}, steps.Decision{Held: true}
	for name, test := range map[string]struct {
		decided       steps.Decision
		changes       []func(*corev1.Pod)
		change        func(*plan)
		called        string
		phase         steps.Phase
		moved, moving int32
	}{
		"nothing to do":     {steps.Decision{}, []func(*corev1.Pod){nil, nil, nil}, nil, "clean up", steps.PhaseIdle, 3, 0},
		"native":            {native, []func(*corev1.Pod){nil, nil, nil}, nil, "clean up", steps.PhaseNative, 3, 0},
		"native, and moved": {native, []func(*corev1.Pod){fixture.Out}, nil, "clean up", steps.PhaseNative, 0, 1},
		"a pod is out":      {steps.Decision{}, []func(*corev1.Pod){nil, fixture.Out}, nil, "clean up", steps.PhaseUpdating, 1, 1},
		"in place":          {held, []func(*corev1.Pod){nil, fixture.Out, nil}, nil, "proceed", steps.PhaseUpdating, 2, 1},
		"surge pods aside":  {held, []func(*corev1.Pod){nil, surge}, nil, "proceed", steps.PhaseUpdating, 1, 0},
		"only new pods can have what changes": {held, []func(*corev1.Pod){nil, nil}, func(p *plan) {
			p.States[1].Updated, p.States[1].Change = false, &edit.Change{Reasons: inplace.Reasons{no}}
		}, "proceed", steps.PhaseUpdating, 1, 0},
		"without any pods":  {held, nil, nil, "proceed", steps.PhaseUpdating, 0, 0},
		"impossible":        {held, []func(*corev1.Pod){nil}, func(p *plan) { p.impossible = &no }, "fall back", steps.PhaseNative, 1, 0},
		"without a dry run": {held, []func(*corev1.Pod){nil}, func(p *plan) { p.asks = true }, "ask", steps.PhaseWaiting, 1, 0},
	} {
		p := planOf(test.changes...)
		p.Decided = test.decided
		if test.change != nil {
			test.change(p)
		}
		result := engine.Plan(func(*inplace.Reason) engine.Planner { return p })
		if got := result.Progress; result.Phase != test.phase || got.Moved != test.moved || got.Moving != test.moving || got.Replicas != 3 {
			t.Errorf("%s: phase %s, %+v", name, result.Phase, got)
		}
		if called := strings.Join(p.called, ", "); called != test.called {
			t.Errorf("%s: called %s, want %s", name, called, test.called)
		}
	}
}

// TestFallBack checks that a fallback is persisted only if something is left to do, and never for an uninstallation.
func TestFallBack(t *testing.T) {
	for name, test := range map[string]struct {
		left      bool
		code      string
		persisted int
	}{
		"pods are left":    {true, inplace.CodeRefused, 1},
		"no pods are left": {false, inplace.CodeRefused, 0},
		"uninstalled":      {true, inplace.CodeUninstalled, 0},
	} {
		p := planOf(fixture.Out)
		p.left = test.left
		result := engine.FallBack(func(*inplace.Reason) engine.Planner { return p }, inplace.Reason{Code: test.code})
		persisted, back := 0, 0
		for _, step := range result.Steps {
			switch step := step.(type) {
			case steps.PersistFallback:
				persisted++
			case steps.SetReady:
				if !step.Out {
					back++
				}
			}
		}
		if decided := result.Decision; persisted != test.persisted || back != 1 || decided.Held || decided.Reasons[0].Code != test.code {
			t.Errorf("%s: persisted %d, put back %d, decided %+v", name, persisted, back, decided)
		}
	}
}
