package concurrency

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Seen is what was observed of all workloads. The zero Seen has no limits, and so allows everything.
type Seen struct {
	Limits Limits
	// Restarting are the pods that Stayput has out of service, or takes out of service at this moment.
	Restarting []Pod
	// Requests are of workloads whose pods wait.
	Requests []Request
	// Latest says, by namespace, which permission was the last one for a pod there: permissions are numbered.
	Latest map[string]int
}

// Request is about pods of one workload that only limits keep in service.
type Request struct {
	Workload  types.UID
	Namespace string
	// Started is when the update began.
	Started time.Time
	// Pods are in the order in which they are to restart. Most is how many of them may.
	Pods []Pod
	Most int
}

// tally counts pods by group.
type tally struct {
	limits Limits
	groups map[group]int
}

func (s Seen) tally() tally {
	t := tally{s.Limits, map[group]int{}}
	for _, pod := range s.Restarting {
		t.add(pod)
	}
	return t
}

func (t tally) add(pod Pod) {
	for _, limit := range t.limits {
		t.groups[limit.groupOf(pod)]++
	}
}

// refusal returns which limit does not allow that the pod restarts besides those that are counted.
func (t tally) refusal(pod Pod) Refusal {
	for _, limit := range t.limits {
		if t.groups[limit.groupOf(pod)] >= limit.Most {
			return limit.refusal(pod)
		}
	}
	return Refusal{}
}

// full reports whether no pod may restart besides those that are counted, wherever it is.
func (t tally) full() bool {
	return slices.ContainsFunc(t.limits, func(limit Limit) bool {
		return limit.Flag == FlagTotal && t.groups[limit.groupOf(Pod{})] >= limit.Most
	})
}

// Permitted are pods that may restart now, by workload.
type Permitted map[types.UID][]Pod

// Has reports whether the pod is one of them.
func (p Permitted) Has(workload, pod types.UID) bool {
	return slices.ContainsFunc(p[workload], func(one Pod) bool { return one.UID == pod })
}

// Divide returns which of the pods that wait may restart now.
func (s Seen) Divide() Permitted {
	counted, permitted := s.tally(), Permitted{}
	turns := s.turns()
	for next := math.MaxInt32; len(turns) > 0 && !counted.full(); next++ {
		first := slices.MinFunc(turns, turn.compare)
		request, pod, found := first.fitting(counted, permitted)
		if !found {
			turns = slices.DeleteFunc(turns, func(t turn) bool { return t.namespace == first.namespace })
			continue
		}
		counted.add(pod)
		permitted[request.Workload] = append(permitted[request.Workload], pod)
		for i := range turns {
			if turns[i].namespace == first.namespace {
				turns[i].out, turns[i].latest = turns[i].out+1, next
			}
		}
	}
	return permitted
}

// turn is a namespace with pods that wait.
type turn struct {
	namespace string
	// out is how many of its pods are out of service, latest the number of its last permission.
	out, latest int
	// requests are those of its workloads, oldest update first.
	requests []Request
}

func (t turn) compare(other turn) int {
	return cmp.Or(cmp.Compare(t.out, other.out), cmp.Compare(t.latest, other.latest), compareRequests(t.requests[0], other.requests[0]))
}

func compareRequests(a, b Request) int {
	return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
}

// turns returns the namespaces with pods that wait.
func (s Seen) turns() []turn {
	out := map[string]int{}
	for _, pod := range s.Restarting {
		out[pod.Namespace]++
	}
	var turns []turn
	for _, request := range slices.SortedFunc(slices.Values(s.Requests), compareRequests) {
		at := slices.IndexFunc(turns, func(t turn) bool { return t.namespace == request.Namespace })
		if at < 0 {
			at = len(turns)
			turns = append(turns, turn{namespace: request.Namespace, out: out[request.Namespace], latest: s.Latest[request.Namespace]})
		}
		turns[at].requests = append(turns[at].requests, request)
	}
	return turns
}

// fitting returns the first pod of the namespace that no limit keeps from restarting.
func (t turn) fitting(counted tally, permitted Permitted) (Request, Pod, bool) {
	for _, request := range t.requests {
		if len(permitted[request.Workload]) >= request.Most {
			continue
		}
		for _, pod := range request.Pods {
			if !permitted.Has(request.Workload, pod.UID) && counted.refusal(pod) == (Refusal{}) {
				return request, pod, true
			}
		}
	}
	return Request{}, Pod{}, false
}

// Share is what limits leave for the pods of one workload. It counts those that a plan takes. A nil Share leaves all.
type Share struct {
	counted tally
	out     map[types.UID]bool
}

// ShareOf returns what is left for the workload. What others may have first is not.
func (s Seen) ShareOf(workload types.UID) *Share {
	if len(s.Limits) == 0 {
		return nil
	}
	share := &Share{s.tally(), map[types.UID]bool{}}
	for _, pod := range s.Restarting {
		share.out[pod.UID] = true
	}
	for other, pods := range s.Divide() {
		if other == workload {
			continue
		}
		for _, pod := range pods {
			share.counted.add(pod)
		}
	}
	return share
}

// Refusal returns why the pod may not be taken out of service now; the zero Refusal if it may, or is already.
func (s *Share) Refusal(pod *corev1.Pod, node *corev1.Node, now time.Time) Refusal {
	if s == nil || s.out[pod.UID] {
		return Refusal{}
	}
	refused := s.counted.refusal(PodOf(pod, node))
	if refused == (Refusal{}) || !needsPermission(pod, now) {
		return Refusal{}
	}
	return refused
}

// Take counts the pod as taken out of service.
func (s *Share) Take(pod *corev1.Pod, node *corev1.Node, now time.Time) {
	if s == nil || s.out[pod.UID] || !needsPermission(pod, now) {
		return
	}
	s.out[pod.UID] = true
	s.counted.add(PodOf(pod, node))
}
