package allowance

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/write"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	// mostBehind is by how much the cache of the model lags. It is less than doubtful.
	mostBehind = 4 * time.Second
	// looksAgain and looksSoon are when a workload looks again after a plan, and after a write, that was refused.
	looksAgain, looksSoon = 10 * time.Second, 2 * time.Second
)

// model has workloads that take all of their pods out of service once, on a cache that lags, with leaders that come and go.
type model struct {
	*testing.T
	*rand.Rand
	most, version int
	cached        *shop
	// stored are the pods as the API server has them, written is when, by name. Done are those that have been out of service.
	stored  map[string]*corev1.Pod
	written map[string]time.Time
	done    map[string]bool
	leader  *Broker
	works   []*work
	// settles are what workers are still to say about their writes.
	settles []func()
}

// work is one workload.
type work struct {
	pods  []string
	looks time.Time
}

func newModel(t *testing.T, seed int64) *model {
	random := rand.New(rand.NewSource(seed))
	m := &model{T: t, Rand: random, most: 1 + random.Intn(3), cached: &shop{}, stored: map[string]*corev1.Pod{},
		written: map[string]time.Time{}, done: map[string]bool{}}
	for i := range 2 + random.Intn(5) {
		one := &work{}
		for j := range 1 + random.Intn(4) {
			name := fmt.Sprintf("%d-%d", i, j)
			m.stored[name] = pod(name)
			m.cached.pods = append(m.cached.pods, m.stored[name])
			one.pods = append(one.pods, name)
		}
		m.works = append(m.works, one)
	}
	m.lead()
	return m
}

// lead has another leader begin, with an empty memory. Nothing is written any more for the one before.
func (m *model) lead() {
	for _, settle := range m.settles {
		settle()
	}
	m.settles, m.leader = nil, limited(m.most, m.cached)
	m.leader.since = time.Time{}
}

// change has the API server store a version of a pod.
func (m *model) change(pod *corev1.Pod) {
	m.version++
	pod.ResourceVersion = strconv.Itoa(m.version + 1)
	m.stored[pod.Name], m.written[pod.Name] = pod, time.Now()
	out := 0
	for _, one := range m.stored {
		if readiness.Out(one) {
			out++
		}
	}
	if out > m.most {
		m.Fatalf("%d pods are out of service, and %d may be", out, m.most)
	}
}

// plan has a workload take those of its pods out of service that may be, on what the cache shows.
func (m *model) plan(of *work) {
	var pods []*corev1.Pod
	for _, each := range m.cached.pods {
		if slices.Contains(of.pods, each.Name) {
			pods = append(pods, each)
		}
	}
	rollout := workload(of.pods[0], pods...)
	rollout.Snapshot().Settings.DisruptionBudgets = false
	share, plan, todo := seen(m.T, m.leader, rollout).Share, steps.PlanBuilder{}, []steps.Step(nil)
	for _, each := range pods {
		switch {
		case m.done[each.Name], readiness.Out(each):
			continue
		case share.Wait(each, nil, time.Now()) == nil:
			share.Reserve(each, nil, time.Now())
			todo = append(todo, steps.SetReady{Pod: each, Out: true})
		default:
			plan.Wait(*share.Wait(each, nil, time.Now()))
		}
	}
	of.looks = time.Now().Add(looksAgain)
	if err := m.leader.Planned(m.Context(), rollout, plan.Result, func() { of.looks = time.Now() }); err != nil {
		m.Fatal(err)
	}
	kept, settle, all := m.leader.Reserve(m.Context(), rollout, todo)
	done := m.write(kept)
	m.settles = append(m.settles, func() { settle(done) })
	if !all || done.Outdated || done.Err != nil {
		of.looks = time.Now().Add(looksSoon)
	}
}

// write carries the steps out. Those on an old version are refused; of some it is not known what became of them.
func (m *model) write(todo []steps.Step) (done write.Outcome) {
	for _, step := range todo {
		before, fails := steps.Disrupted(step), m.Intn(8)
		if m.stored[before.Name].ResourceVersion != before.ResourceVersion {
			done.Outdated = true
			continue
		}
		if fails == 0 {
			done.Err = fixture.ErrText("timeout, and nothing was written")
			continue
		}
		after := takenOut(before, "")
		m.done[before.Name] = true
		if m.change(after); fails == 1 {
			done.Err = fixture.ErrText("timeout, and it was written")
			continue
		}
		done.Writes = append(done.Writes, write.Done{Step: step, Before: before, After: after})
	}
	return done
}

// once has something happen. The cache shows what is too old in any case.
func (m *model) once() {
	for _, each := range slices.Clone(m.cached.pods) {
		if newest := m.stored[each.Name]; newest != each && (m.Intn(4) == 0 || time.Since(m.written[each.Name]) >= mostBehind) {
			m.cached.show(newest)
			m.workOf(each.Name).looks = time.Now()
		}
	}
	for _, of := range m.works {
		if !of.looks.After(time.Now()) && m.Intn(2) == 0 {
			m.plan(of)
		}
	}
	m.settles = slices.DeleteFunc(m.settles, func(settle func()) bool {
		if m.Intn(2) == 0 {
			return false
		}
		settle()
		return true
	})
	for _, of := range m.works {
		for _, name := range of.pods {
			if one := m.stored[name]; readiness.Out(one) && m.Intn(10) == 0 {
				m.change(pod(name))
			}
		}
	}
}

func (m *model) workOf(name string) *work {
	return m.works[slices.IndexFunc(m.works, func(of *work) bool { return slices.Contains(of.pods, name) })]
}

// TestLimitsHoldAndAllFinish: whatever the cache shows, whatever becomes of writes, and whichever leader leads, never more pods are out of
// service than may be, and every workload gets its turns.
func TestLimitsHoldAndAllFinish(t *testing.T) {
	for seed := range int64(300) {
		synctest.Test(t, func(t *testing.T) {
			m, began := newModel(t, seed), time.Now()
			for len(m.done) < len(m.stored) {
				if m.once(); m.Intn(200) == 0 {
					m.lead()
				}
				time.Sleep(500 * time.Millisecond)
				if time.Since(began) > 30*time.Minute {
					t.Fatalf("seed %d: %d of %d pods have restarted", seed, len(m.done), len(m.stored))
				}
			}
		})
	}
}
