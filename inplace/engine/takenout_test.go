package engine_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestTakenOut has, second by second, the steps for pod p, and since which second it counts as taken out; -1 if it does not.
func TestTakenOut(t *testing.T) {
	p, q := &corev1.Pod{}, &corev1.Pod{}
	p.UID, q.UID = "p", "q"
	out, back := steps.SetReady{Pod: p, Out: true}, steps.SetReady{Pod: p}
	for name, c := range map[string]struct {
		made []steps.Step
		want int
	}{
		"nothing was made":          {nil, -1},
		"taken out":                 {[]steps.Step{out}, 0},
		"again":                     {[]steps.Step{out, out, out}, 0},
		"another pod":               {[]steps.Step{steps.SetReady{Pod: q, Out: true}}, -1},
		"and another pod":           {[]steps.Step{out, steps.PatchPod{Pod: q, Stops: true}}, 0},
		"put back":                  {[]steps.Step{out, back}, -1},
		"put back, and again":       {[]steps.Step{out, back, out}, 2},
		"patched":                   {[]steps.Step{out, steps.PatchPod{Pod: p, Stops: true}}, -1},
		"annotated for its restart": {[]steps.Step{out, steps.PatchPod{Pod: p}, out}, 0},
	} {
		var m engine.Memory
		for second, step := range c.made {
			m.Observe([]*corev1.Pod{p, q}, fixture.Start)
			m.Made(step, fixture.Start.Add(time.Duration(second)*time.Second))
		}
		at, has := m.TakenOut["p"]
		if has != (c.want >= 0) || has && !at.Equal(fixture.Start.Add(time.Duration(c.want)*time.Second)) {
			t.Errorf("%s: taken out %t at %s", name, has, at)
		}
		if m.Observe([]*corev1.Pod{q}, fixture.Start); m.TakenOut["p"] != (time.Time{}) {
			t.Errorf("%s: it is remembered when it is gone", name)
		}
	}
}

// TestStaysIn: a pod is drained before its containers stop unless that would leave a Service without endpoints, or is undone all the time.
func TestStaysIn(t *testing.T) {
	const drain = 10 * time.Second
	hooked := map[string]string{inplace.AnnotationPreRestartHooks: "lb"}
	patience := drain + podstate.DrainPatience
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		takenAgo time.Duration // how long ago it was taken out; 0 if it was not
		lastOf   string
		hooks    map[string]string
		want     string
		bypassed bool
	}{
		"it serves":         {},
		"the last endpoint": {lastOf: "web", want: "it is the last endpoint of Service web"},
		"the last endpoint, and a hook waits for its Ready": {change: func(pod *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.PreRestartHookPrefix+"lb", "")
		}, lastOf: "web", hooks: hooked},
		"the last endpoint, and the hook is done": {lastOf: "web", hooks: hooked, want: "it is the last endpoint of Service web"},
		"out":                                   {change: fixture.Out, takenAgo: time.Hour},
		"undone just now":                       {takenAgo: time.Second, bypassed: true},
		"undone by a report that is not ready":  {change: fixture.Unready, takenAgo: time.Second, bypassed: true},
		"undone, and almost tried for too long": {takenAgo: patience - 1, bypassed: true},
		"undone, and tried for as long as it is": {takenAgo: patience,
			want: "its kubelet puts it back into service, and no webhook is asked about that", bypassed: true},
		"undone, and hooks may hold it": {takenAgo: patience, hooks: hooked, bypassed: true},
		"undone, and hooks held it": {takenAgo: patience + time.Minute, hooks: hooked,
			want: "its kubelet puts it back into service, and no webhook is asked about that", bypassed: true},
	} {
		r := fixture.New(1, fixture.App{Image: "v2"})
		rs := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1)
		r.Deployment.Annotations = c.hooks
		r.Seen.Settings.Drain, r.Seen.Settings.PreRestartTimeout = drain, time.Minute
		pod := fixture.PodOf(r, "p", rs, c.change)
		r.Seen.Endpoints = podstate.Endpoints{pod.UID: {LastOf: c.lastOf}}
		if c.takenAgo > 0 {
			r.Seen.TakenOut = engine.TakenOut{pod.UID: fixture.Start.Add(-c.takenAgo)}
		}
		u := engine.NewUpdate(engine.Workload{Object: r.Deployment, Kind: "Deployment", Template: r.Deployment.Spec.Template, Replicas: 1},
			&r.Seen)
		s := u.StateOf(pod, podstate.PodRevision{Revision: rs.Name, Updated: true})
		if bypassed := u.Plan.Result.Bypassed; s.StaysIn != c.want || (bypassed != "") != c.bypassed {
			t.Errorf("%s: stays in because %q, and bypassed because %q", name, s.StaysIn, bypassed)
		}
	}
}

// TestTakeOut: a pod is out of service for as long as its drain may take, and a minute for another leader to go on.
func TestTakeOut(t *testing.T) {
	for name, c := range map[string]struct {
		hooks map[string]string
		want  time.Duration
	}{
		"without hooks": {nil, 100 * time.Second},
		"with hooks":    {map[string]string{inplace.AnnotationPreRestartHooks: "lb"}, 400 * time.Second},
	} {
		r := fixture.New(1, fixture.App{Image: "v2"})
		r.Deployment.Annotations = c.hooks
		r.Seen.Settings.Drain, r.Seen.Settings.PreRestartTimeout = 10*time.Second, 5*time.Minute
		pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2"}, 1))
		u := engine.NewUpdate(engine.Workload{Object: r.Deployment, Kind: "Deployment", Template: r.Deployment.Spec.Template, Replicas: 1},
			&r.Seen)
		s := u.StateOf(pod, podstate.PodRevision{})
		u.TakeOut(&s, "it restarts")
		step := u.Plan.Result.Steps[0].(steps.SetReady)
		if err := fixture.Apply(pod, step.Operations); err != nil {
			t.Fatal(err)
		}
		until := readiness.TakenOutUntil(pod, fixture.Start.Add(c.want), fixture.Start)
		if got := *apps.Condition(pod, corev1.PodReady); got.Message != until.Message {
			t.Errorf("%s: %q, want %q", name, got.Message, until.Message)
		}
	}
}
