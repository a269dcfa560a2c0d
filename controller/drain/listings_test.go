package drain

import (
	"fmt"
	"testing"
	"time"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "k8s.io/api/discovery/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// worker returns a pod with a label. No client is sent to it unless a test says so.
func worker() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fixture.Web.Namespace, Name: "worker", UID: "w", Labels: map[string]string{"app": "worker"}}}
}

func selecting(app string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "work"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": app}}}
}

func listedIn(uids ...types.UID) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "work-1"}}
	for _, uid := range uids {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "worker", UID: uid}})
	}
	return slice
}

// TestNoClientSent asks at one time, after changes at other times. All times are in seconds since the watch began.
func TestNoClientSent(t *testing.T) {
	type change struct {
		at            float64
		before, after any
	}
	var many []types.UID
	for i := range mostGone {
		many = append(many, types.UID(fmt.Sprint(i)))
	}
	for name, test := range map[string]struct {
		changes []change
		at      float64
		want    bool
	}{
		"the watch has just begun":     {nil, 1.9, false},
		"watched as long as the drain": {nil, 2, true},
		"selected":                     {[]change{{0, nil, selecting("worker")}}, 100, false},
		"others are selected":          {[]change{{0, nil, selecting("shop")}}, 2, true},
		"the Service has just gone":    {[]change{{0, nil, selecting("worker")}, {99, selecting("worker"), nil}}, 100.9, false},
		"the Service is gone":          {[]change{{0, nil, selecting("worker")}, {99, selecting("worker"), nil}}, 101, true},
		"the event has the last state": {[]change{{99, toolscache.DeletedFinalStateUnknown{Obj: selecting("worker")}, nil}}, 100.9, false},
		"has just selected it":         {[]change{{0, nil, selecting("worker")}, {99, selecting("worker"), selecting("shop")}}, 100.9, false},
		"selects others for long":      {[]change{{0, nil, selecting("worker")}, {99, selecting("worker"), selecting("shop")}}, 101, true},
		"only something else changed":  {[]change{{0, nil, selecting("shop")}, {99, selecting("shop"), selecting("shop")}}, 100, true},
		"listed":                       {[]change{{0, nil, listedIn("w")}}, 100, false},
		"a namesake is listed":         {[]change{{0, nil, listedIn("earlier")}}, 2, true},
		"has just left the slice":      {[]change{{0, nil, listedIn("a", "w")}, {99, listedIn("a", "w"), listedIn("a")}}, 100.9, false},
		"left the slice":               {[]change{{0, nil, listedIn("a", "w")}, {99, listedIn("a", "w"), listedIn("a")}}, 101, true},
		"another has just left":        {[]change{{0, nil, listedIn("a")}, {99, listedIn("a"), listedIn()}}, 100, true},
		"the slice has just gone":      {[]change{{0, nil, listedIn("w")}, {99, listedIn("w"), nil}}, 100.9, false},
		"the slice is gone":            {[]change{{0, nil, listedIn("w")}, {99, listedIn("w"), nil}}, 101, true},
		"too much has just gone": {
			[]change{{0, nil, listedIn("w")}, {50, listedIn("w"), listedIn(many...)}, {99, listedIn(many...), nil}}, 100.9, false},
		"too much has gone, not lately": {
			[]change{{0, nil, listedIn("w")}, {50, listedIn("w"), listedIn(many...)}, {99, listedIn(many...), nil}}, 101, true},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
			seen := &Listings{}
			seen.begin(began)
			for _, change := range test.changes {
				if unavailable, ok := change.before.(toolscache.DeletedFinalStateUnknown); ok {
					change.before = unavailable.Obj
				}
				seen.see(change.before, change.after, at(change.at))
			}
			if got := seen.noClientSent(worker(), drain, at(test.at)); got != test.want {
				t.Errorf("no client is sent: %t, want %t", got, test.want)
			}
			seen.sweep(at(test.at))
			if got := seen.noClientSent(worker(), drain, at(test.at)); got != test.want {
				t.Errorf("no client is sent, after a sweep: %t, want %t", got, test.want)
			}
		})
	}
}

func TestNoCacheIsBelievedWithoutAWatch(t *testing.T) {
	for name, seen := range map[string]*Listings{"none": nil, "not begun": {}} {
		if seen.noClientSent(worker(), drain, time.Now()) {
			t.Errorf("%s: no client is sent, although nothing was watched", name)
		}
	}
}

func TestListingsForget(t *testing.T) {
	began := time.Now()
	seen := &Listings{}
	seen.begin(began)
	seen.see(nil, selecting("worker"), began)
	seen.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: selecting("worker")})
	if of := seen.namespaces[fixture.Web.Namespace]; len(of.gone) != 1 || len(of.there) != 0 {
		t.Fatalf("after a Service is gone there is %+v", of)
	}
	if seen.sweep(time.Now().Add(2 * inplace.LongestDrain)); len(seen.namespaces) != 0 {
		t.Errorf("%d empty namespaces are remembered", len(seen.namespaces))
	}
}

// TestDrainWhereNoClientIsSent has pods that no Service selects and no slice lists.
func TestDrainWhereNoClientIsSent(t *testing.T) {
	long := &Listings{}
	long.begin(time.Now().Add(-time.Minute))
	just := &Listings{}
	just.begin(time.Now())
	inTheCache := func(noClientSent bool) fixture.Stopped {
		return fixture.Stopped{At: podstate.Endpoints{"web-old-0": {NoClientSent: noClientSent}}}
	}
	for name, test := range map[string]struct {
		cached             fixture.Stopped
		seen               *Listings
		listed             bool // by the API server
		planned, confirmed bool
	}{
		"all agree":                    {inTheCache(true), long, false, true, true},
		"the watch has just begun":     {inTheCache(true), just, false, false, false},
		"there is no watch":            {inTheCache(true), nil, false, false, false},
		"only the API server lists it": {inTheCache(true), long, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.TakeOut("web-old-0", time.Now())
			if test.listed {
				c.Serving("web-old-0")
			}
			d := &Drains{Cached: test.cached, Live: observe.Reader{Reader: c}, Seen: test.seen}
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
