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
			one = shut(one, "2")
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
	if share, err := r.Share(t.Context(), update("same", last)); err != nil || share.Refusal(last, nil, time.Now()).Flag != concurrency.Adaptive {
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
		settle(written(pods[0], shut(pods[0], "2")))
		_, settle = permit(t, r, update("two", pods[1]), pods[1])
		settle(write.Outcome{Outdated: true})
		cached.show(shut(pods[0], "2"))
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
	if kept, _, _ := r.Confirm(t.Context(), update("one", pods[0]), steps.Plan{}, closing(pods[0])); len(kept) != 1 {
		t.Error("it waits")
	}
}
