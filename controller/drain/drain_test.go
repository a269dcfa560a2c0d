package drain

import (
	"context"
	"testing"
	"time"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

const drain = 2 * time.Second

// endpointsNow returns what the EndpointSlices say now.
func (c *cluster) endpointsNow() podstate.Endpoints {
	c.T.Helper()
	endpoints, err := observe.Reader{Reader: c}.Endpoints(c.T.Context(), fixture.Web.Namespace, c.Snapshot().Read.Seen.Pods)
	if err != nil {
		c.T.Fatal(err)
	}
	return endpoints
}

func (c *cluster) draining() engine.Rollout {
	rollout := c.Snapshot().Read
	rollout.Seen.Settings.Drain = drain
	return rollout
}

// unreadable is an API server that cannot be reached.
type unreadable struct{}

func (unreadable) Endpoints(context.Context, string, []*corev1.Pod) (podstate.Endpoints, error) {
	return nil, fixture.ErrText("away")
}

func (c *cluster) endpoint(d *Drains, remembered *engine.Memory) podstate.Endpoint {
	c.T.Helper()
	endpoints, err := d.Endpoints(c.T.Context(), remembered, c.draining())
	if err != nil {
		c.T.Fatal(err)
	}
	return endpoints["web-old-0"]
}

func TestDrainBeginsWhenThePodIsSeenToBeOut(t *testing.T) {
	c := &cluster{fixture.Draining(t)}
	d, remembered := &Drains{Cached: observe.Reader{Reader: c}, Live: observe.Reader{Reader: c}}, &engine.Memory{}
	if e := c.endpoint(d, remembered); !e.Listed || !e.OutSince.IsZero() {
		t.Fatalf("the pod is offered, got %+v", e)
	}
	c.Serving("web-old-0")
	first := c.endpoint(d, remembered)
	if first.Listed || time.Since(first.OutSince) > time.Minute {
		t.Fatalf("the pod is out of service, got %+v", first)
	}
	d.Live = unreadable{} // Endpoints must not read it again
	if second := c.endpoint(d, remembered); second != first {
		t.Errorf("the wait began anew: %+v, %+v", first, second)
	}
	c.Serving()
	if e := c.endpoint(d, remembered); !e.Listed || len(remembered.Drains) > 0 {
		t.Errorf("the pod is offered again, got %+v", e)
	}
}

func TestDrainIsForgotten(t *testing.T) {
	c := &cluster{fixture.Draining(t)}
	c.Serving("web-old-0")
	d, remembered := &Drains{Cached: observe.Reader{Reader: c}, Live: observe.Reader{Reader: c}}, &engine.Memory{}
	for name, change := range map[string]func(*engine.Snapshot){
		"it is in service":   func(s *engine.Snapshot) { s.Pods = s.Pods[1:] },
		"there is no drain":  func(s *engine.Snapshot) { s.Settings.Drain = 0 },
		"there are no pods":  func(s *engine.Snapshot) { s.Pods = nil },
		"the pod is another": func(s *engine.Snapshot) { s.Pods[0].UID = "another" },
	} {
		c.endpoint(d, remembered)
		seen := c.draining()
		change(seen.Snapshot())
		if _, err := d.Endpoints(t.Context(), remembered, seen); err != nil {
			t.Fatal(err)
		}
		if _, known := remembered.Drains["web-old-0"]; known {
			t.Errorf("%s, and the pod is remembered: %v", name, remembered.Drains)
		}
	}
}

// TestEndpointsAreReadWherePodsAreUpdated: before a pod is taken out of service, it is known whether it is the last endpoint of a Service.
// The API server is not asked for that.
func TestEndpointsAreReadWherePodsAreUpdated(t *testing.T) {
	marks := func(rollout *deployments.Rollout) { rollout.ReplicaSets[0].Labels[inplace.LabelUpdating] = "1" }
	for name, test := range map[string]struct {
		change func(*deployments.Rollout)
		read   bool
	}{
		"no update": {func(*deployments.Rollout) {}, false},
		"an update": {marks, true},
		"an update without a drain": {func(rollout *deployments.Rollout) {
			marks(rollout)
			rollout.Seen.Settings.Drain = 0
		}, true},
		"a pod asks for a restart": {func(rollout *deployments.Rollout) {
			rollout.Seen.Pods[1].Annotations = map[string]string{inplace.AnnotationRestartContainers: "app"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Serving("web-old-1", "web-old-2")
			rollout := c.Snapshot().Read
			rollout.Seen.Settings.Drain = drain
			test.change(rollout)
			d := &Drains{Cached: observe.Reader{Reader: c}, Live: unreadable{}}
			endpoints, err := d.Endpoints(t.Context(), &engine.Memory{}, rollout)
			if err != nil || (endpoints != nil) != test.read {
				t.Fatalf("read %v, %v", endpoints, err)
			}
			if last := endpoints["web-old-0"].LastOf; test.read && last != "web" || endpoints["web-old-1"].LastOf != "" {
				t.Errorf("read %+v", endpoints)
			}
		})
	}
}

func TestDrainDoesNotBeginOnTheCacheAlone(t *testing.T) {
	c := &cluster{fixture.Draining(t)}
	cached := fixture.Stopped{At: podstate.Endpoints{"web-old-0": {}}} // it does not show the pod as an endpoint yet
	if e := c.endpoint(&Drains{Cached: cached, Live: observe.Reader{Reader: c}}, &engine.Memory{}); !e.Listed {
		t.Errorf("the API server offers the pod, got %+v", e)
	}
	if e := c.endpoint(&Drains{Cached: cached, Live: unreadable{}}, &engine.Memory{}); e.Listed || !e.OutSince.IsZero() {
		t.Errorf("the API server cannot be reached, got %+v", e)
	}
}

// restart returns a step that restarts a container of the pod.
func restart(pod *corev1.Pod) steps.PatchPod {
	step := fixture.Label(pod)
	step.Drained = true
	return step
}

func TestConfirm(t *testing.T) {
	for name, test := range map[string]struct {
		out   time.Duration // for how long no slice has offered the pod, as far as that is remembered
		taken time.Duration // for how long the pod has been out of service
		slice []string      // the pods that the slice does not offer
		away  bool
		kept  bool
	}{
		"still out":                          {out: 3 * time.Second, slice: []string{"web-old-0"}, kept: true},
		"out, but not for long":              {out: time.Second, slice: []string{"web-old-0"}},
		"offered after all":                  {out: 3 * time.Second},
		"offered, for longer than the limit": {taken: time.Minute, kept: true},
		"the last one":                       {slice: []string{"web-old-0", "web-old-1", "web-old-2"}, kept: true},
		"no longer the last one":             {slice: []string{"web-old-0", "web-old-1"}},
		"unknown":                            {out: 3 * time.Second, away: true},
		"unknown, for too long":              {out: 3 * time.Second, taken: time.Minute, away: true, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.TakeOut("web-old-0", time.Now().Add(-test.taken))
			c.Serving(test.slice...)
			d, remembered := &Drains{Live: observe.Reader{Reader: c}}, &engine.Memory{}
			if test.out > 0 {
				remembered.Drains = engine.Drains{"web-old-0": time.Now().Add(-test.out)}
			}
			if test.away {
				d.Live = unreadable{}
			}
			seen := c.draining()
			steps := []steps.Step{fixture.Label(seen.Snapshot().Pods[1]), restart(seen.Snapshot().Pods[0]), fixture.Label(seen.Snapshot().Pods[2])}
			kept, confirmed := d.Confirm(t.Context(), remembered, seen, steps)
			if confirmed != test.kept || len(kept) != map[bool]int{true: 3, false: 2}[test.kept] {
				t.Errorf("confirmed is %t with %d of 3 steps", confirmed, len(kept))
			}
			if e := c.endpointsNow()["web-old-0"]; e.Listed && len(remembered.Drains) > 0 && !test.away {
				t.Error("the pod is offered, but remembered as out of service")
			}
		})
	}
}

func TestConfirmAsksNothingWithoutNeed(t *testing.T) {
	c := &cluster{fixture.Draining(t)}
	d := &Drains{Live: unreadable{}}
	seen := c.draining()
	kept, confirmed := d.Confirm(t.Context(), &engine.Memory{}, seen, []steps.Step{fixture.Label(seen.Snapshot().Pods[0])})
	if !confirmed || len(kept) != 1 {
		t.Error("a change of labels waits for endpoints")
	}
	seen.Snapshot().Settings.Drain = 0
	kept, confirmed = d.Confirm(t.Context(), &engine.Memory{}, seen, []steps.Step{restart(seen.Snapshot().Pods[0])})
	if !confirmed || len(kept) != 1 {
		t.Error("there is a wait although there is no drain")
	}
}

// TestDrainWhereNoClientIsSent has pods that no Service selects and no slice lists.
func TestDrainWhereNoClientIsSent(t *testing.T) {
	inTheCache := func(noClientSent bool) fixture.Stopped {
		return fixture.Stopped{At: podstate.Endpoints{"web-old-0": {NoClientSent: noClientSent}}}
	}
	for name, test := range map[string]struct {
		cached             fixture.Stopped
		listed             bool // by the API server
		planned, confirmed bool
	}{
		"both agree":                   {inTheCache(true), false, true, true},
		"only the API server lists it": {inTheCache(true), true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.TakeOut("web-old-0", time.Now())
			if test.listed {
				c.Serving("web-old-0")
			}
			d := &Drains{Cached: test.cached, Live: observe.Reader{Reader: c}}
			if e := c.endpoint(d, &engine.Memory{}); e.NoClientSent != test.planned {
				t.Errorf("planned on %+v", e)
			}
			seen := c.draining()
			_, confirmed := d.Confirm(t.Context(), &engine.Memory{}, seen, []steps.Step{restart(seen.Snapshot().Pods[0])})
			if confirmed != test.confirmed {
				t.Errorf("confirmed is %t", confirmed)
			}
		})
	}
}

// TestPreStopIsConfirmed checks that the wait is shorter by the time for which the container goes on serving after the
// patch.
func TestPreStopIsConfirmed(t *testing.T) {
	c := &cluster{fixture.Draining(t)}
	c.Serving("web-old-0")
	d := &Drains{Live: observe.Reader{Reader: c}}
	seen := c.draining()
	step := restart(seen.Snapshot().Pods[0])
	for servesOn, want := range map[time.Duration]bool{0: false, drain / 2: false, drain: true} {
		step.ServesOn = servesOn
		if _, confirmed := d.Confirm(t.Context(), &engine.Memory{}, seen, []steps.Step{step}); confirmed != want {
			t.Errorf("it goes on serving for %s: confirmed is %t", servesOn, confirmed)
		}
	}
}
