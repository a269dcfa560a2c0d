package engine

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// Reserver is what counts pods of all workloads: PodDisruptionBudgets, and limits. The leader asks it once more before it writes
// (controller/allowance).
type Reserver interface {
	// Wait returns why the pod, on that node, may not be taken out of service now; nil if it may.
	Wait(pod *corev1.Pod, node *corev1.Node, now time.Time) *steps.Wait
	// Reserve counts the pod as taken out of service.
	Reserve(pod *corev1.Pod, node *corev1.Node, now time.Time)
}

func budgets(u *Update) Reserver { return u.budgets }

func limits(u *Update) Reserver { return u.seen.Share }

// shared returns the filter of that Reserver.
func shared(by func(*Update) Reserver) func(*Pace, *podstate.State) *steps.Wait {
	return func(p *Pace, s *podstate.State) *steps.Wait {
		if !goesOut(s) {
			return nil
		}
		return by(p.Update).Wait(s.Pod, p.NodesByName[s.Pod.Spec.NodeName], p.seen.Now)
	}
}

// goesOut reports whether the pod is taken out of service: it is not out already, and does not get CPU and memory while it serves.
func goesOut(s *podstate.State) bool { return !s.Turn && (s.Surge || s.RestartsNext()) }

func reserve(by func(*Update) Reserver) func(*Pace, *podstate.State) {
	return func(p *Pace, s *podstate.State) {
		if goesOut(s) {
			by(p.Update).Reserve(s.Pod, p.NodesByName[s.Pod.Spec.NodeName], p.seen.Now)
		}
	}
}
