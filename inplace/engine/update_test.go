package engine_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
)

// TestWhatPodsWaitFor: users are told of the native controller only where it replaces the pod.
func TestWhatPodsWaitFor(t *testing.T) {
	const turn, replaced = "its turn", "its replacement by the Deployment controller"
	onlyNew := func(s *podstate.State) {
		s.Change = &edit.Change{Reasons: inplace.Reasons{{Code: inplace.CodeTemplateField, Message: "env changed"}}}
	}
	for name, test := range map[string]struct {
		change               func(*podstate.State)
		held, updating, kept bool
		want                 string
	}{
		"in place, not marked yet":                 {nil, true, false, false, turn},
		"in place":                                 {nil, true, true, false, turn},
		"native, and the mark is yet to go":        {nil, false, true, false, turn},
		"native":                                   {nil, false, false, false, replaced},
		"only a new pod can have it, in place":     {onlyNew, true, true, false, turn},
		"the user deletes pods, and it can be":     {nil, true, true, true, turn},
		"the user deletes pods, and it cannot be":  {onlyNew, true, true, true, replaced + ", after you delete it"},
		"the user deletes pods, and all is native": {nil, false, false, true, replaced + ", after you delete it"},
	} {
		u := toV2(nil, test.change)
		u.Decided.Held = test.held
		if test.kept {
			u.Workload.Kept = &inplace.Reason{Code: inplace.CodeOnDelete}
		}
		if got := u.PodProgress(test.updating)[0]; got.Awaits != test.want || got.Phase != podstate.Waiting {
			t.Errorf("%s: it is %s and waits for %q, want %q", name, got.Phase, got.Awaits, test.want)
		}
	}
}

// TestAwaits: where no pod may be replaced, an update that cannot go on in place waits. Where the native controller replaces none, or has
// begun before Stayput was asked, there is nothing to wait for.
func TestAwaits(t *testing.T) {
	refused, begun := inplace.Reason{Code: inplace.CodeRefused}, inplace.Reason{Code: inplace.CodeNativeRollout}
	for name, test := range map[string]struct {
		mode     inplace.Mode
		why      inplace.Reason
		decision string
		kept     *inplace.Reason
		waits    bool
	}{
		"a write is refused":                   {inplace.ModeInPlaceOnly, refused, "in place: restarts app", nil, true},
		"the same, and pods may be replaced":   {inplace.ModeInPlace, refused, "in place: restarts app", nil, false},
		"the same, and Stayput was not asked":  {inplace.ModeInPlaceOnly, refused, "", nil, true},
		"the same, and the user deletes pods":  {inplace.ModeInPlaceOnly, refused, "in place: restarts app", &refused, false},
		"a native rollout":                     {inplace.ModeInPlaceOnly, begun, "in place: restarts app", nil, true},
		"a native rollout, Stayput not asked":  {inplace.ModeInPlaceOnly, begun, "", nil, false},
		"a native rollout of a recreation":     {inplace.ModeInPlaceOnly, begun, "recreate: env changed", nil, false},
		"a native rollout, user deletes pods":  {inplace.ModeInPlaceOnly, begun, "in place: restarts app", &refused, false},
		"an update that fell back before that": {inplace.ModeInPlaceOnly, inplace.Reason{Code: inplace.CodeFellBack}, "", nil, false},
	} {
		u := toV2(func(r *deployments.Rollout) {
			r.Seen.Mode, r.Deployment.Annotations = test.mode, map[string]string{inplace.AnnotationDecision: test.decision}
		}, nil)
		u.Workload.Kept = test.kept
		if waits := u.Awaits(test.why); waits != test.waits {
			t.Errorf("%s: it waits: %t", name, waits)
		}
	}
}

// TestTheLastPodThatServes: if a plan takes out all others, the last one stays in service until its containers stop, or its Service has no
// endpoint meanwhile. Without a Service no client is sent to it, and hooks are told by its Ready.
func TestTheLastPodThatServes(t *testing.T) {
	const last = "it is the last pod that serves"
	listed := podstate.Endpoints{"b": {Listed: true}}
	hook := map[string]string{inplace.PreRestartHookPrefix + "lb": ""}
	for name, test := range map[string]struct {
		c         func(*corev1.Pod)
		endpoints podstate.Endpoints
		hooks     map[string]string
		want      string
	}{
		"another one serves":          {func(*corev1.Pod) {}, listed, nil, ""},
		"another one does not serve":  {fixture.Unready, listed, nil, last},
		"another one is out":          {fixture.Out, listed, nil, last},
		"no Service offers it":        {fixture.Out, nil, nil, ""},
		"a hook is told when it goes": {fixture.Out, listed, hook, ""},
	} {
		u := toV2(func(r *deployments.Rollout) {
			r.Deployment.Annotations = map[string]string{inplace.AnnotationPreRestartHooks: "lb"}
			test.c(r.Seen.Pods[2])
			r.Seen.Pods[1].Annotations, r.Seen.Endpoints = test.hooks, test.endpoints
		}, nil, nil, nil)
		u.TakeOut(u.States[0], "it restarts")
		if got := u.States[1].StaysIn; got != test.want {
			t.Errorf("%s: it stays in because %q, want %q", name, got, test.want)
		}
	}
}

// TestWhyFellBack: a fallback is of one template. The next edit is made in place again.
func TestWhyFellBack(t *testing.T) {
	u := toV2(nil, nil)
	for hash, fell := range map[string]bool{"": false, "another": false, u.Workload.Template.Hash(): true} {
		seen := engine.Snapshot{Fallback: revisions.Fallback{Hash: hash}}
		if why := seen.WhyFellBack(u.Workload); (why != nil) != fell {
			t.Errorf("fallback %q: %v", hash, why)
		}
	}
}
