//go:build e2e && bench

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const (
	// limitedPods is the number of pods of each of many Deployments. One of them may be unavailable, and there are no surge pods: these do not
	// count for limits.
	limitedPods = 3
	// mostRestarting is how many pods may restart at a time.
	mostRestarting = 10
)

// benchLimits gives many Deployments of simulated pods an image at once, without a limit of how many pods restart at a time, and with one.
func benchLimits(t *testing.T) {
	count, rounds := int(numberOf(t, "WORKLOADS", workloadsAtOnce)), roundsOr(t, benchRounds)
	roomFor(t, count*limitedPods)
	var all []column
	defer func() {
		present(t, fmt.Sprintf("%d Deployments of %d simulated pods, limits", count, limitedPods), all)
	}()
	for _, way := range []struct {
		name string
		most int // 0 is no limit
	}{{"no limit", 0}, {fmt.Sprintf("at most %d", mostRestarting), mostRestarting}} {
		t.Run(way.name, func(t *testing.T) {
			withFlags(t, []string{fmt.Sprintf("--max-restarting-pods=%d", way.most)})
			l := newLimited(t, count)
			l.fill()
			for round := range rounds {
				fmt.Printf("round %d of %d: images of %d Deployments, %s\n", round+1, rounds, count, way.name)
				l.update(fmt.Appendf(nil, `{"spec":{"template":%s}}`, patchOf(nextImage(round))))
			}
			all = append(all, l.column(way.name))
		})
	}
}

// limited are Deployments whose pods restart at once, or wait for one another.
type limited struct {
	*batch
	costs []limitedCost
}

// limitedCost is the cost of one edit of all Deployments.
type limitedCost struct {
	cost
	out         float64              // pods out of service at the worst moment
	unavailable float64              // seconds, of each pod
	waits       map[string][]float64 // of the Deployments of each namespace, in seconds
}

// newLimited has the namespaces edited one after another. So where the oldest edit always goes first, the last namespace waits longest.
func newLimited(t *testing.T, count int) *limited {
	t.Helper()
	l := &limited{batch: newBatch(t, labelled, count, limitedPods, rolling("1", "0"))}
	slices.Sort(l.homes)
	return l
}

// update edits all Deployments and records the cost.
func (l *limited) update(patch []byte) {
	l.Helper()
	before, _ := l.count()
	l.seen.mostOut()
	c, missed, from := limitedCost{waits: map[string][]float64{}}, l.seen.sofar(), time.Now()
	edits := l.patchAll(patch)
	l.await(edits)
	waits, _ := l.seen.waits(edits)
	for i, home := range l.homes {
		c.waits[home] = append(c.waits[home], waits[i])
	}
	c.seconds = lastOf(edits, waits).Sub(from).Seconds()
	after, _ := l.count()
	c.counters = after.since(before).per(float64(l.size()))
	c.out, c.unavailable = float64(l.seen.mostOut()), (l.seen.sofar()-missed)/float64(l.size())
	l.costs = append(l.costs, c)
}

func (l *limited) column(name string) column {
	median := func(of func(limitedCost) float64) float64 { return quantile(each(l.costs, of), 0.5) }
	figures := []figure{
		{"updates", float64(len(l.costs))},
		{"seconds until rolled out, p50", median(func(c limitedCost) float64 { return c.seconds })},
		{"seconds until rolled out, max", quantile(each(l.costs, func(c limitedCost) float64 { return c.seconds }), 1)},
		{"pods out of service at the worst moment", quantile(each(l.costs, func(c limitedCost) float64 { return c.out }), 1)},
		{"seconds a pod is not Ready, mean", median(func(c limitedCost) float64 { return c.unavailable })},
	}
	counted := counterFigures(l.costs, func(c limitedCost) counters { return c.counters })
	return column{name: name, figures: slices.Concat(figures, counted, l.waitFigures())}
}

// waitFigures returns how long one Deployment waits in each namespace, in the order in which the namespaces are edited.
func (l *limited) waitFigures() []figure {
	var figures []figure
	var medians []float64
	for i, home := range slices.Compact(slices.Clone(l.homes)) {
		var waits []float64
		for _, c := range l.costs {
			waits = append(waits, c.waits[home]...)
		}
		medians = append(medians, quantile(waits, 0.5))
		figures = append(figures,
			figure{fmt.Sprintf("seconds of one Deployment, namespace %d, p50", i+1), quantile(waits, 0.5)},
			figure{fmt.Sprintf("seconds of one Deployment, namespace %d, p99", i+1), quantile(waits, 0.99)})
	}
	return append(figures, figure{"p50 of the slowest namespace, per that of the quickest", quantile(medians, 1) / slices.Min(medians)})
}
