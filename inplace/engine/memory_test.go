package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

var start = time.Unix(1_000_000, 0)

func TestVersions(t *testing.T) {
	pod := func(version string) metav1.Object { return &metav1.ObjectMeta{UID: "p", ResourceVersion: version} }
	var v Versions
	if v.Known() || v.Lagging([]metav1.Object{pod("1")}) != nil || v.Known() {
		t.Error("an empty memory knows something")
	}
	v.Remember(pod("10"))
	for _, step := range []struct {
		cached string
		lags   bool
	}{{"9", true}, {"9", true}, {"10", false}, {"9", false}} { // a version that the cache has shown is forgotten
		if lags := v.Lagging([]metav1.Object{pod(step.cached)}) != nil; lags != step.lags {
			t.Errorf("cache at %s: lagging %t, want %t", step.cached, lags, step.lags)
		}
	}
	stranger := &metav1.ObjectMeta{UID: "q", ResourceVersion: "1"}
	v.Remember(pod("10"))
	if late := v.Lagging([]metav1.Object{stranger, pod("9")}); late == nil || late.GetUID() != "p" {
		t.Errorf("%v lags", late)
	}
	if v.Lagging([]metav1.Object{stranger, pod("nine")}) != nil {
		t.Error("a version that is no number lags")
	}
	v.Remember(pod("10"))
	if v.Lagging(nil) != nil || v.Lagging([]metav1.Object{pod("9")}) != nil || !v.Known() {
		t.Error("Lagging waits for an object that is gone")
	}
}

func TestDrains(t *testing.T) {
	later := start.Add(time.Second)
	before := Drains{"out": start, "back": start, "gone": start}
	noted := before.Noted(podstate.Endpoints{"out": {}, "back": {Listed: true}, "new": {}}, later)
	if len(noted) != 2 || noted["out"] != start || noted["new"] != later {
		t.Errorf("noted %v", noted)
	}
	for name, test := range map[string]struct {
		endpoint podstate.Endpoint
		uid      types.UID
		known    bool
	}{
		"it is offered":            {podstate.Endpoint{Listed: true}, "out", true},
		"it is out":                {podstate.Endpoint{}, "out", true},
		"it is out, since when?":   {podstate.Endpoint{}, "other", false},
		"it is the last":           {podstate.Endpoint{LastOf: "web"}, "other", true},
		"no client is sent to it":  {podstate.Endpoint{NoClientSent: true}, "other", true},
		"it is out, and no client": {podstate.Endpoint{NoClientSent: true}, "out", true},
	} {
		endpoints := podstate.Endpoints{test.uid: test.endpoint}
		left, known := Drains{"out": start}.Complete(endpoints)
		if known != test.known {
			t.Errorf("%s: known %t", name, known)
		}
		if out := test.uid == "out" && !test.endpoint.Listed; out != (len(left) == 1) || out != (endpoints[test.uid].OutSince.Equal(start)) {
			t.Errorf("%s: left %v, out since %s", name, left, endpoints[test.uid].OutSince)
		}
	}
}

func TestFailed(t *testing.T) {
	var m Memory
	for _, after := range []time.Duration{0, time.Second, FailingPatience - 1} {
		if m.Failed(start.Add(after)) {
			t.Errorf("it has failed for too long after %s", after)
		}
	}
	if !m.Failed(start.Add(FailingPatience)) {
		t.Error("it may fail for ever")
	}
	if m.Succeeded(); m.Failed(start.Add(FailingPatience)) {
		t.Error("a success is not noted")
	}
}

func TestLeftAlone(t *testing.T) {
	var m Memory
	if m.Looked(1, start); m.LeftAlone(start) > 0 {
		t.Error("a small workload is left alone")
	}
	m.Looked(400, start)
	if left := m.LeftAlone(start); left != steps.MinInterval(400) {
		t.Errorf("a large workload is left alone for %s", left)
	}
	if m.LeftAlone(start.Add(steps.MinInterval(400))) > 0 {
		t.Error("a large workload is left alone for ever")
	}
}

// TestDryRunIsOfOneUpdate checks that the result of a dry run ends with its update, and a refusal of an old revision after a
// minute.
func TestDryRunIsOfOneUpdate(t *testing.T) {
	m := Memory{DryRun: Asked{}.Since("a", start), RefusedOld: Asked{Result: dryrun.Result{Refused: "no"}, At: start}}
	if again := m.DryRun.Since("a", start.Add(time.Second)); again != m.DryRun {
		t.Errorf("asked for the same revision: %+v", again)
	}
	if other := m.DryRun.Since("b", start.Add(time.Second)); other.Revision != "b" || other.At.Equal(start) {
		t.Errorf("asked for another revision: %+v", other)
	}
	m.Observe(nil, start.Add(inplace.LeaderPatience))
	m.Planned(steps.Plan{Decision: steps.Decision{Held: true}}, start)
	if m.DryRun.Revision != "a" || m.RefusedOld.Refused != "no" {
		t.Errorf("forgotten during the update: %+v", m)
	}
	m.Observe(nil, start.Add(inplace.LeaderPatience+1))
	m.Planned(steps.Plan{}, start)
	if m.DryRun.Revision != "" || m.RefusedOld.Refused != "" {
		t.Errorf("remembered after the update: %+v", m)
	}
}

func TestBatchesEnd(t *testing.T) {
	var m Memory
	if m.Observe(nil, start); m.Batches == nil {
		t.Error("a new leader defers nothing")
	}
	m.Planned(steps.Plan{Deferred: []steps.Deferral{steps.DeferMove}}, start)
	m.Observe(nil, start.Add(time.Second))
	m.Planned(steps.Plan{Deferred: []steps.Deferral{steps.DeferMove}}, start.Add(time.Second))
	if since := m.Batches[steps.DeferMove]; since != start {
		t.Errorf("deferred since %s", since)
	}
	if m.Planned(steps.Plan{}, start); len(m.Batches) != 0 {
		t.Errorf("still deferred: %v", m.Batches)
	}
}

// TestTakenOutIsOfOneUpdate: the next update drains each pod for as long as any other, whatever happened to it in this one.
func TestTakenOutIsOfOneUpdate(t *testing.T) {
	plan := func(revision types.UID) steps.Plan {
		return steps.Plan{Decision: steps.Decision{Held: true, UpdateRevision: &metav1.ObjectMeta{UID: revision}}}
	}
	var m Memory
	m.Planned(plan("a"), start)
	m.TakenOut = TakenOut{"p": start}
	m.Planned(plan("a"), start)
	m.Planned(steps.Plan{}, start) // the update revision does not exist for a while
	if len(m.TakenOut) != 1 {
		t.Error("it is forgotten during the update")
	}
	if m.Planned(plan("b"), start); len(m.TakenOut) != 0 {
		t.Error("the next update remembers it")
	}
}

// TestWaits: why the update waits is known to the next plans, and is looked at anew later. Without an update revision it is about nothing.
func TestWaits(t *testing.T) {
	var m Memory
	waits := steps.Plan{Obstacle: inplace.Obstacle{Reason: inplace.Reason{Code: inplace.CodeRefused}}}
	if m.Waits(waits, start); m.DryRun != (Asked{}) {
		t.Errorf("without an update revision, %+v is remembered", m.DryRun)
	}
	waits.Decision.UpdateRevision = &metav1.ObjectMeta{UID: "b"}
	m.Waits(waits, start)
	for after, known := range map[time.Duration]bool{0: true, inplace.Remembered: true} {
		if got := m.NewPods(inplace.Partition{}, start.Add(after)); (got.Impossible != nil) != known || (got.UpdateRevision == "b") != known {
			t.Errorf("after %s it is known that %+v", after, got)
		}
	}
	if got := m.NewPods(inplace.Partition{}, start.Add(inplace.Remembered+1)); got.Impossible != nil {
		t.Errorf("it is known for ever that %+v", got)
	}
}

// TestFallbackIsKnownBeforeTheCacheShowsIt: otherwise the next plan would hold the update again.
func TestFallbackIsKnownBeforeTheCacheShowsIt(t *testing.T) {
	fallback, none := revisions.Fallback{Hash: "h", Code: "Refused"}, revisions.Fallback{}
	var m Memory
	if got := m.KnownFallback(fallback); got != fallback {
		t.Errorf("a new leader takes %v for the fallback", got)
	}
	m.Made(steps.PersistFallback{Fallback: fallback}, start)
	if got := m.KnownFallback(none); got != fallback {
		t.Errorf("after a fallback it takes %v for it", got)
	}
	m.Made(steps.ForgetFallback{}, start)
	if got := m.KnownFallback(fallback); got != none {
		t.Errorf("after it is forgotten it takes %v for it", got)
	}
}

// TestAnAnswerCountsForAStage: an update may wait for days, and policies change meanwhile.
func TestAnAnswerCountsForAStage(t *testing.T) {
	one, closed := inplace.Partition{Value: "1"}, inplace.Partition{Value: "1", Closed: "the window"}
	yes, no := dryrun.Result{UpdateRevision: "b"}, dryrun.Result{UpdateRevision: "b", Refused: "no"}
	impossible := dryrun.Result{UpdateRevision: "b", Impossible: &inplace.Reason{Code: inplace.CodeRefused}}
	for name, test := range map[string]struct {
		answer dryrun.Result
		at     inplace.Partition
		later  time.Duration
		counts bool
	}{
		"at once":                        {yes, one, 0, true},
		"hours later":                    {yes, one, 20 * time.Hour, true},
		"a day later":                    {yes, one, 25 * time.Hour, false},
		"at another partition":           {yes, inplace.Partition{Value: "0"}, 0, false},
		"when the window closes":         {yes, closed, 0, false},
		"just a day later":               {yes, one, AskedFor, true},
		"a refusal, minutes later":       {no, one, 9 * time.Minute, true},
		"a refusal, just too late":       {no, one, inplace.Remembered, true},
		"a refusal, later":               {no, one, 11 * time.Minute, false},
		"a refused write, minutes later": {impossible, one, 9 * time.Minute, true},
		"a refused write, later":         {impossible, one, 11 * time.Minute, false},
	} {
		m := Memory{}
		m.NewPods(one, start)
		m.DryRun = m.DryRun.Since("b", start)
		m.DryRun.Result, m.Tried = test.answer, "b"
		known := m.NewPods(test.at, start.Add(test.later))
		if (known.UpdateRevision != "") != test.counts || (m.Tried != "") != test.counts {
			t.Errorf("%s: known is %+v, tried %q", name, known, m.Tried)
		}
	}
}
