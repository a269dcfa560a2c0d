package concurrency

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Seen is what was observed of all workloads. The zero Seen has no limits, and so allows everything.
type Seen struct {
	Limits Limits
	// Bound is how many pods may be out of service besides the limits, as Load says; 0 for any number. Each namespace has its part of it, also
	// where others have used it up.
	Bound int
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
	// Promised is how many of them were told that they may restart, and have not done so yet. Their turn is kept.
	Promised int
}

// tally counts pods by limit and group.
type tally struct {
	limits Limits
	groups []map[string]int
	// part is how many pods of a namespace may always be out of service, as far as Adaptive is concerned.
	part int
}

func (s Seen) tally() tally {
	t := tally{limits: s.Limits, part: s.part()}
	if s.Bound > 0 {
		t.limits = append(slices.Clip(s.Limits), Limit{Flag: Adaptive, Most: s.Bound})
	}
	for range t.limits {
		t.groups = append(t.groups, map[string]int{})
	}
	for _, pod := range s.Restarting {
		t.add(pod)
	}
	return t
}

// part returns the part of the bound that each namespace has, at least one pod.
func (s Seen) part() int {
	namespaces := map[string]bool{}
	for _, pod := range s.Restarting {
		namespaces[pod.Namespace] = true
	}
	for _, request := range s.Requests {
		namespaces[request.Namespace] = true
	}
	return max(1, s.Bound/max(1, len(namespaces)))
}

func (t tally) add(pod Pod) {
	for i, limit := range t.limits {
		if limit.Flag == Adaptive && pod.Slow {
			continue
		}
		t.groups[i][limit.groupOf(pod)]++
		if limit.Flag == Adaptive {
			t.groups[i][everyNamespace]++
		}
	}
}

// exceeded returns the limit that does not allow that the pod restarts besides those that are counted; nil if all do.
func (t tally) exceeded(pod Pod) *Limit {
	for i, limit := range t.limits {
		count := t.groups[i][limit.groupOf(pod)]
		if limit.Flag == Adaptive && (count < t.part || t.groups[i][everyNamespace] < limit.Most) {
			continue
		}
		if count >= limit.Most || limit.Flag == Adaptive {
			return &t.limits[i]
		}
	}
	return nil
}

// everyNamespace is the group of all pods where they are counted by namespace.
const everyNamespace = ""

// full reports whether no pod may restart besides those that are counted, wherever it is.
func (t tally) full() bool {
	for i, limit := range t.limits {
		if limit.Flag == FlagTotal && t.groups[i][""] >= limit.Most {
			return true
		}
	}
	return false
}

// Permitted are pods that may restart now, by workload.
type Permitted map[types.UID][]Pod

// Divide returns which of the pods that wait may restart now. What was promised comes first.
func (s Seen) Divide() Permitted {
	counted, waiting, permitted := s.tally(), s.turns(), Permitted{}
	permit := func(of *turn, only func(*queued) bool) bool {
		request, pod := of.next(counted, only)
		if request == nil {
			return false
		}
		counted.add(pod)
		permitted[request.Workload] = append(permitted[request.Workload], pod)
		return true
	}
	for _, one := range waiting {
		for permit(one, (*queued).promised) {
			one.out++
		}
	}
	heap.Init(&waiting)
	for number := math.MaxInt32; len(waiting) > 0 && !counted.full(); number++ {
		first := waiting[0]
		if !permit(first, (*queued).any) {
			heap.Pop(&waiting)
			continue
		}
		first.out, first.latest = first.out+1, number
		heap.Fix(&waiting, 0)
	}
	return permitted
}

// turn is a namespace with pods that wait.
type turn struct {
	// out is how many of its pods are out of service, latest the number of its last permission.
	out, latest int
	// requests are those of its workloads, oldest update first.
	requests []*queued
}

// queued is a request as far as it is divided.
type queued struct {
	Request
	permitted int
}

func (q *queued) any() bool      { return q.permitted < q.Most }
func (q *queued) promised() bool { return q.permitted < min(q.Promised, q.Most) }

// next returns the next pod of the namespace that no limit keeps from restarting, of a request for which more may; nil if there is none.
// A pod that a limit keeps is dropped: more pods are counted from now on, never fewer.
func (t *turn) next(counted tally, more func(*queued) bool) (*queued, Pod) {
	for _, one := range t.requests {
		for len(one.Pods) > 0 && more(one) {
			pod := one.Pods[0]
			one.Pods = one.Pods[1:]
			exceeded := counted.exceeded(pod)
			if exceeded == nil {
				one.permitted++
				return one, pod
			}
			if exceeded.Flag == Adaptive { // it keeps all pods of the namespace
				return nil, Pod{}
			}
		}
	}
	return nil, Pod{}
}

// turns are the namespaces with pods that wait, as a heap: the first is the one whose turn it is.
type turns []*turn

// Len implements heap.Interface.
func (t turns) Len() int { return len(t) }

// Less implements heap.Interface.
func (t turns) Less(i, j int) bool {
	a, b := t[i], t[j]
	if order := cmp.Or(cmp.Compare(a.out, b.out), cmp.Compare(a.latest, b.latest)); order != 0 {
		return order < 0
	}
	return compareRequests(a.requests[0].Request, b.requests[0].Request) < 0
}

// Swap implements heap.Interface.
func (t turns) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *turns) Push(one any) { *t = append(*t, one.(*turn)) }

// Pop implements heap.Interface.
func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

func compareRequests(a, b Request) int {
	return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
}

// turns returns the namespaces with pods that wait.
func (s Seen) turns() turns {
	out := map[string]int{}
	for _, pod := range s.Restarting {
		out[pod.Namespace]++
	}
	var all turns
	of := map[string]*turn{}
	for _, request := range slices.SortedFunc(slices.Values(s.Requests), compareRequests) {
		one := of[request.Namespace]
		if one == nil {
			one = &turn{out: out[request.Namespace], latest: s.Latest[request.Namespace]}
			of[request.Namespace], all = one, append(all, one)
		}
		one.requests = append(one.requests, &queued{Request: request})
	}
	return all
}

// Share is what limits leave for the pods of one workload. It counts those that a plan takes. A nil Share leaves all.
type Share struct {
	counted tally
	out     map[types.UID]bool
}

// ShareOf returns what is left for the workload. What others may have first is not.
func (s Seen) ShareOf(workload types.UID) *Share {
	if len(s.Limits) == 0 && s.Bound == 0 {
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
	seen := PodOf(pod, node)
	if exceeded := s.counted.exceeded(seen); exceeded != nil && needsPermission(pod, now) {
		return exceeded.refusal(seen)
	}
	return Refusal{}
}

// Take counts the pod as taken out of service.
func (s *Share) Take(pod *corev1.Pod, node *corev1.Node, now time.Time) {
	if s == nil || s.out[pod.UID] || !needsPermission(pod, now) {
		return
	}
	s.out[pod.UID] = true
	s.counted.add(PodOf(pod, node))
}
