package allowance

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/steps"
)

// unlimited returns where pods get their permission without limits, and so many pods of namespace shop, of which the first are out of
// service.
func unlimited(out, all int) (*Restarts, []*corev1.Pod) {
	var pods []*corev1.Pod
	for i := range all {
		one := pod(fmt.Sprint("p", i))
		if i < out {
			one = takenOut(one, "2")
		}
		pods = append(pods, one)
	}
	return &Restarts{Load: &Load{Tell: func(int, int) {}}, Cached: &shop{pods: pods}}, pods
}

// TestTheLoadBounds: without limits as many pods restart as the load allows. Another namespace has its part nevertheless, and a workload
// that is alone is not bound.
func TestTheLoadBounds(t *testing.T) {
	first := (&concurrency.Load{}).Bound()
	r, pods := unlimited(first, first+1)
	last := pods[first]
	if kept, _ := permit(t, r, update("same", last), last); len(kept) > 0 {
		t.Errorf("%v may restart beyond the bound", kept)
	}
	share, err := r.Share(t.Context(), update("same", last))
	if err != nil || share.Refusal(last, nil, time.Now()).Flag != concurrency.Adaptive {
		t.Errorf("its plan is not told so, %v", err)
	}
	other := pod("other")
	other.Namespace = "other"
	if kept, _ := permit(t, r, update("elsewhere", other), other); len(kept) != 1 {
		t.Error("another namespace has no part")
	}
	r, pods = unlimited(first, first+1)
	if kept, _ := permit(t, r, update("alone", pods...), pods[first]); len(kept) != 1 {
		t.Error("a workload that is alone is bound")
	}
}

// TestTheLoadIsMeasured: the leader knows for how long pods are out of service, unless they were not written. Where none is out, and some
// wait, it tells so.
func TestTheLoadIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, pods := unlimited(0, 2)
		told, cached, first := [2]int{}, r.Cached.(*shop), pods[0]
		r.Load.Tell = func(out, bound int) { told = [2]int{out, bound} }
		_, settle := permit(t, r, update("one", pods[0]), pods[0])
		settle(written(pods[0], takenOut(pods[0], "2")))
		_, settle = permit(t, r, update("two", pods[1]), pods[1])
		settle(write.Outcome{Outdated: true})
		cached.show(takenOut(pods[0], "2"))
		time.Sleep(3 * time.Second)
		if err := r.lookNow(t.Context()); err != nil || told[0] != 1 || told[1] == 0 {
			t.Errorf("told %v, %v", told, err)
		}
		back := first.DeepCopy()
		back.ResourceVersion = "3"
		cached.show(back)
		measured := r.Load.measured
		measured.CameBack(3 * time.Second)
		measured.Tick(0, false)
		if err := r.lookNow(t.Context()); err != nil || told != [2]int{0, measured.Bound()} || len(r.out) != 0 {
			t.Errorf("told %v, %d still count as out, %v", told, len(r.out), err)
		}
		if fmt.Sprint(r.Load.measured) != fmt.Sprint(measured) {
			t.Errorf("measured %+v, want %+v", r.Load.measured, measured)
		}
	})
}

// TestALeaderWithoutLimitsBeginsAtOnce: only limits must never be exceeded, so only they make a new leader wait.
func TestALeaderWithoutLimitsBeginsAtOnce(t *testing.T) {
	r, pods := unlimited(0, 1)
	if _, err := r.Share(t.Context(), update("one", pods[0])); err != nil {
		t.Fatal(err)
	}
	if kept, _, _ := r.Confirm(t.Context(), update("one", pods[0]), steps.Plan{}, taking(pods[0])); len(kept) != 1 {
		t.Error("it waits")
	}
}

// TestPodsThatStartSlowlyAreMeasured: where pods take longer than SlowAfter, that is known, as SlowAfter. Otherwise the bound would compare
// how late the leader is with pods of another update, which came back within seconds. Pods that do not come back tell nothing.
func TestPodsThatStartSlowlyAreMeasured(t *testing.T) {
	for long, want := range map[time.Duration]time.Duration{
		2 * time.Second:           2 * time.Second,
		90 * time.Second:          concurrency.SlowAfter,
		concurrency.Patience:      0,
		2 * concurrency.Patience:  0,
		concurrency.SlowAfter + 1: concurrency.SlowAfter,
	} {
		load, measured := &Load{}, concurrency.Load{}
		load.cameBack(long)
		if want > 0 {
			measured.CameBack(want)
		}
		if fmt.Sprint(load.measured) != fmt.Sprint(measured) {
			t.Errorf("%s: measured %+v, want %+v", long, load.measured, measured)
		}
	}
}

// TestPodsThatDoNotComeBackAreTold: a pod that is out of service for long leaves room for others, but the metric has it.
func TestPodsThatDoNotComeBackAreTold(t *testing.T) {
	r, pods := unlimited(2, 3)
	pods[0].Status.Conditions[0].LastTransitionTime.Time = time.Now().Add(-2 * concurrency.SlowAfter)
	told := 0
	r.Load.Tell = func(out, _ int) { told = out }
	if err := r.lookNow(t.Context()); err != nil || told != 2 {
		t.Errorf("%d pods are told, want 2, %v", told, err)
	}
}

// TestNamespacesAreForgotten: in a cluster where namespaces come and go, only those with the latest permissions are remembered.
func TestNamespacesAreForgotten(t *testing.T) {
	r := &Restarts{}
	for i := range 3 * mostLatest {
		r.note(permission{pod: concurrency.Pod{Namespace: fmt.Sprint(i)}})
	}
	if has := len(r.latest); has > 2*mostLatest {
		t.Errorf("%d are remembered", has)
	}
	if last := 3*mostLatest - 1; r.latest[fmt.Sprint(last)] != last+1 || r.latest[fmt.Sprint(last-mostLatest+1)] == 0 {
		t.Error("one of the latest is forgotten")
	}
}
