package allowance

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/concurrency"
)

const (
	// remembered is for how long a workload keeps its place in the line that does not ask again. Those that wait ask more often.
	remembered = 30 * time.Second
	// collecting is for how long room is kept for a workload that was woken.
	collecting = 5 * time.Second
	// wakesEvery is how often a workload is woken at most: its plan may leave free what others leave for it, as while it waits for a volume.
	wakesEvery = time.Second
)

// line are the workloads of which a limit keeps pods in service. The first has waited longest.
type line []*waiting

type waiting struct {
	workload types.UID
	// pod is the one that is to restart first.
	pod concurrency.Pod
	// wake has the workload planned again; nil if it was called since the last plan.
	wake func()
	// woken is when it was called last. Until is when the place is lost.
	woken, until time.Time
}

// join puts the workload at the end of the line. If it waits already, it keeps its place.
func (l *line) join(workload types.UID, pod concurrency.Pod, wake func()) {
	at := slices.IndexFunc(*l, func(one *waiting) bool { return one.workload == workload })
	if at < 0 {
		at, *l = len(*l), append(*l, &waiting{workload: workload})
	}
	one := (*l)[at]
	one.pod, one.wake, one.until = pod, wake, time.Now().Add(remembered)
}

// leave drops the workload: it has got what it waited for. For more it waits again.
func (l *line) leave(workload types.UID) {
	*l = slices.DeleteFunc(*l, func(one *waiting) bool { return one.workload == workload })
}

// ahead counts one pod of each workload that is ahead of this one, as far as there is room, and wakes these workloads. A workload that does
// not wait is behind all.
func (l *line) ahead(share *concurrency.Share, workload types.UID, now time.Time) {
	*l = slices.DeleteFunc(*l, func(one *waiting) bool { return now.After(one.until) })
	for _, one := range *l {
		switch {
		case one.workload == workload:
			return
		case share.Exceeded(one.pod) != nil:
			continue
		case one.wake != nil && now.Sub(one.woken) >= wakesEvery:
			one.wake()
			one.wake, one.woken, one.until = nil, now, now.Add(collecting)
		}
		share.Count(one.pod)
	}
}
