package allowance

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/steps"
)

// waitingLine has workloads wait for one place, and notes which are woken.
type waitingLine struct {
	*testing.T
	*Broker
	cached *shop
	woken  []string
}

// lineFor has pod a out of service. It is the only one that may be.
func lineFor(t *testing.T, others ...*corev1.Pod) *waitingLine {
	cached := &shop{pods: append([]*corev1.Pod{takenOut(pod("a"), "2")}, others...)}
	return &waitingLine{T: t, Broker: limited(1, cached), cached: cached}
}

// plans makes the plan of a workload with one pod, which has the workload's name, and returns whether the pod may restart.
func (l *waitingLine) plans(one *corev1.Pod) bool {
	l.Helper()
	rollout := workload(one.Name, one)
	rollout.Snapshot().Settings.DisruptionBudgets = false
	plan := steps.Plan{}
	wait := seen(l.T, l.Broker, rollout).Share.Wait(one, nil, time.Now())
	if wait != nil {
		plan.Waits = []steps.Wait{*wait}
	}
	if err := l.Planned(l.Context(), rollout, plan, func() { l.woken = append(l.woken, one.Name) }); err != nil {
		l.Fatal(err)
	}
	return wait == nil
}

func (l *waitingLine) wakes(why string, want ...string) {
	l.Helper()
	if !slices.Equal(l.woken, want) {
		l.Errorf("%s: %v are woken, want %v", why, l.woken, want)
	}
	l.woken = nil
}

// TestTheFirstIsNext: when a pod is back, the workload that has waited longest is woken, and no other gets the place: neither the one whose
// pod is back, nor one that waits behind it. Then it is at the end of the line.
func TestTheFirstIsNext(t *testing.T) {
	a, b, c := pod("a"), pod("b"), pod("c")
	l := lineFor(t, b, c)
	for _, one := range []*corev1.Pod{b, c, b} {
		if l.plans(one) {
			t.Errorf("%s may restart besides", one.Name)
		}
	}
	l.wakes("none is back")
	l.cached.show(a)
	if l.plans(c) || l.plans(a) {
		t.Error("another workload takes the place")
	}
	l.wakes("a is back", "b")
	if taken, _ := reserve(t, l.Broker, workload("c", c), taking(c)); len(taken) > 0 {
		t.Errorf("%v are taken before b", taken)
	}
	if !l.plans(b) {
		t.Error("b may not restart")
	}
	taken, settle := reserve(t, l.Broker, workload("b", b), taking(b))
	settle(written(b, takenOut(b, "2")))
	l.cached.show(takenOut(b, "2"))
	if len(taken) != 1 || l.plans(c) {
		t.Errorf("%v are taken, or two pods restart", taken)
	}
	l.wakes("b is out of service")
	l.cached.show(b)
	if l.plans(b) {
		t.Error("b may restart again before c")
	}
	l.wakes("b is back", "c")
}

// TestWhatIsGivenBackWakes: a place that was reserved and not used goes to the first that waits, at once.
func TestWhatIsGivenBackWakes(t *testing.T) {
	a, b := pod("a"), pod("b")
	l := lineFor(t, b)
	l.cached.show(a)
	_, settle := reserve(t, l.Broker, workload("a", a), taking(a))
	if l.plans(b) {
		t.Error("b may restart besides")
	}
	l.wakes("a is being written")
	settle(write.Outcome{Outdated: true})
	l.wakes("a was not written", "b")
}

// TestRoomSinceThePlan: a place that becomes free between the plan and what it says is not missed.
func TestRoomSinceThePlan(t *testing.T) {
	b := pod("b")
	l := lineFor(t, b)
	l.cached.show(pod("a"))
	late := steps.Plan{Waits: []steps.Wait{{Filter: steps.FilterLimit, Pod: b}}}
	if err := l.Planned(t.Context(), workload("b", b), late, func() { l.woken = append(l.woken, "b") }); err != nil {
		t.Fatal(err)
	}
	l.wakes("there is room", "b")
}

// TestAWorkloadThatLeavesItsPlaceFree: one whose plan takes nothing although it may is woken now and then, and not all the time.
func TestAWorkloadThatLeavesItsPlaceFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, woken := pod("b"), 0
		l := lineFor(t, b)
		l.cached.show(pod("a"))
		plan := steps.Plan{Waits: []steps.Wait{{Filter: steps.FilterLimit, Pod: b}}}
		for range 100 {
			if err := l.Planned(t.Context(), workload("b", b), plan, func() { woken++ }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(wakesEvery / 10)
		}
		if woken != 10 {
			t.Errorf("it is woken %d times in 10 s", woken)
		}
	})
}

// TestPlacesInTheLineAreLost: a workload that was woken and does not come, or that does not ask again, keeps nothing from others.
func TestPlacesInTheLineAreLost(t *testing.T) {
	for name, test := range map[string]struct {
		back bool
		wait time.Duration
		free bool
	}{
		"woken a moment ago": {true, collecting, false},
		"woken long ago":     {true, collecting + 1, true},
		"asked a while ago":  {false, remembered, false},
		"asked long ago":     {false, remembered + 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b, c := pod("a"), pod("b"), pod("c")
			l := lineFor(t, b, c)
			l.plans(b)
			if test.back {
				l.cached.show(a)
				seen(t, l.Broker, workload("a", a))
			}
			time.Sleep(test.wait)
			l.cached.show(a)
			if free := l.plans(c); free != test.free {
				t.Errorf("%s: another may restart: %t", name, free)
			}
		})
	}
}

// TestAPodThatNeedsNoRoomKeepsThePlace: a pod that does not serve restarts at once. Its workload waits on with the others.
func TestAPodThatNeedsNoRoomKeepsThePlace(t *testing.T) {
	b, c := pod("b"), pod("c")
	l := lineFor(t, b, c)
	l.plans(b)
	l.plans(c)
	unready := takenOut(b, "1")
	if taken, _ := reserve(t, l.Broker, workload("b", unready), taking(unready)); len(taken) != 1 {
		t.Errorf("%v are taken", taken)
	}
	l.cached.show(pod("a"))
	l.plans(pod("a"))
	l.wakes("a is back", "b")
}
