package main

import (
	"fmt"
	"math"
	"strings"
)

// The names of benches and figures in e2e/bench_*_test.go.
const (
	daemonSet    = "DaemonSet of 3 nodes, no Service"
	ordered      = "StatefulSet of 3 pods, OrderedReady, no Service"
	parallel     = "StatefulSet of 3 pods, Parallel, no Service"
	four         = "4 pods, no Service"
	fourServing  = "4 pods, Service, drain 0.5 s"
	twenty       = "20 pods, no Service"
	twentyServed = "20 pods, Service, drain 2 s"
	served       = "4 pods, Service, default strategy"
	lingering    = "2 pods that take 10 s to stop, Service"
	claimed      = "1 pod, ReadWriteOnce claim"
	onPorts      = "3 pods, hostPort"
	born         = "CREATE of a pod of a Deployment"
	serving      = "Updates under 200 requests/s"
	resized      = "12 pods resized, default strategy"
	resizedTight = "12 pods resized, 25 % without surge"

	limits = "100 Deployments of 3 simulated pods, limits"

	native    = "native"
	inPlace   = "in place"
	replacing = "in place, replace"
	floor     = "floor"
	vpa       = "VPA's way"

	seconds      = "seconds until rolled out, p50"
	writes       = "API writes per pod, without events"
	refused      = "API writes per pod, refused"
	held         = "native writes held per pod"
	deadlines    = "progress deadlines passed"
	milliseconds = "milliseconds of the managers' CPU per pod"
	memory       = "MiB of the larger manager"
	lost         = "requests lost"
	updates      = "updates"
	step         = "step: all, without drain, s, p50"

	alone       = "alone"
	bystanders  = "GET beside it, milliseconds, p99"
	meanUnready = "seconds a pod is not Ready, mean"
	otherTenant = "seconds of another tenant's update, p50"
	clusterCPU  = "milliseconds of the cluster's CPU per pod"
	etcdWrites  = "KiB that etcd writes per pod"

	noLimit = "no limit"
	limited = "at most 10"
	out     = "pods out of service at the worst moment"
	unfair  = "p50 of the slowest namespace, per that of the quickest"
)

func simulatedDeployment(pods int) string {
	return fmt.Sprintf("Deployment of %d simulated pods", pods)
}
func resting(pods int) string { return fmt.Sprintf("%d simulated pods at rest", pods) }
func workloads(count int, edit string) string {
	return fmt.Sprintf("%d Deployments of 10 simulated pods, %s", count, edit)
}

func simulatedDaemonSet(pods int) string { return fmt.Sprintf("DaemonSet of %d simulated pods", pods) }

// goal is a row of the table: the figures, and their limits.
type goal struct {
	what   string
	bounds []bound
	causes []cause // why it is missed, if it is, and if that is known
}

// bound is one figure and its limit.
type bound struct {
	of   func(figures) float64 // NaN if it was not measured
	most float64               // infinite if there is no goal, and the figure is only shown
	unit string
	from func(figures) string // the two parts of a ratio, nil for others
}

// none is the limit of a figure without a goal.
var none = math.Inf(1)

// goals returns the goals of the project. No test fails if one is missed: the page says by how much.
func goals() []goal {
	all := []goal{
		{"one pod's step beyond drain and the application's own stop and start, p50 / p99", []bound{
			{of: beyond(0.5), most: 0.3, unit: "s"}, {of: beyond(0.99), most: 1, unit: "s"}}, nil},
		// The floor (0.54 s), a pre-pull pod that takes as long as a new pod (0.64 s), and a second for the beginning and the end are 1.13 times
		// the native 1.93 s.
		{"DaemonSet of three nodes, no Service: seconds", []bound{ratio(daemonSet, seconds, native, 1.2)}, []cause{pulling, ends}},
		{"4 pods, default strategy, no Service: seconds", against(four, none, 1.2), []cause{pulling, ends}},
		// The floor (4.1 s), pre-pull pods (1.3 s), a second, and a quarter of a second for each of four lots are 0.75 of the native 9.8 s. A lot
		// takes three writes, one after another: replicas go, pods move, replicas come.
		{"20 pods, 25 %, no Service: seconds", []bound{ratio(twenty, seconds, native, 0.75)}, []cause{pulling, ends, planning}},
		// A tenth more than the floor, besides 2.3 s for pre-pull pods, the beginning and the end.
		{"20 pods, 25 %, Service, drain 2 s: seconds", []bound{ratio(twentyServed, seconds, floor, 1.3)}, []cause{ends, planning}},
		// Four drains of two seconds alone take as long as a native rollout of an application that starts in 0.2 s.
		{"beside native, Service, drain 2 s: seconds of 20 pods, 25 %; of 4 pods, default strategy", []bound{
			ratio(twentyServed, seconds, native, none), ratio(served, seconds, native, none)}, nil},
		{"the same with `stayput.dev/surge: replace`", []bound{
			between(twentyServed, seconds, replacing, native, 1.15), between(served, seconds, replacing, native, 1.15)}, []cause{draining}},
		{"2 pods that take 10 s to stop, Service, drain 2 s: seconds", []bound{ratio(lingering, seconds, floor, 1.1)}, []cause{surged}},
		{"one replica with a ReadWriteOnce claim: deadlines passed; seconds",
			[]bound{plain(claimed, deadlines, 0, ""), ratio(claimed, seconds, floor, 1.3)}, []cause{ends}},
		{"three replicas with a hostPort: deadlines passed; seconds",
			[]bound{plain(onPorts, deadlines, 0, ""), ratio(onPorts, seconds, floor, 1.3)}, []cause{ends}},
		{"API writes without events, refused ones included, 20 pods, 25 %, no Service", []bound{plain(twenty, writes, 11, "")},
			[]cause{pulling, refusing}},
		// In eight seconds the Deployment controller tries six times at first, and then every 0.7 s (webhook/throttle.go). The ReplicaSet
		// controllers ask for one deletion in each of five lots. These are 27 for 20 pods.
		{"refused writes per pod, Deployment of 20, no Service", []bound{plain(twenty, refused, 1.4, "")}, []cause{refusing}},
		{"refused writes per pod, DaemonSet of three nodes", []bound{plain(daemonSet, refused, 1.5, "")}, []cause{refusing}},
		{"writes of the StatefulSet controller refused per pod, three pods, OrderedReady; Parallel",
			[]bound{plain(ordered, held, 2, ""), plain(parallel, held, 4, "")}, nil},
		{"DaemonSet, 1,000 nodes, 10 %: seconds; API writes", []bound{
			ratio(simulatedDaemonSet(1000), seconds, native, 1), ratio(simulatedDaemonSet(1000), writes, native, 0.9)}, []cause{refusing}},
		{"Deployment of 3,000, 10 %: seconds; API writes; refused ones per pod", []bound{
			ratio(simulatedDeployment(3000), seconds, native, none), ratio(simulatedDeployment(3000), writes, native, none),
			plain(simulatedDeployment(3000), refused, none, "")}, []cause{refusing}},
		{"managers' CPU per pod, Deployment of 3,000; beside one of 300", growing(simulatedDeployment, 300, 3000), []cause{planning}},
		{"managers' CPU per pod, DaemonSet of 1,000; beside one of 200", growing(simulatedDaemonSet, 200, 1000), []cause{planning}},
		{"memory of the larger manager, Deployment of 3,000", []bound{plain(simulatedDeployment(3000), memory, 90, "MiB")}, []cause{caches}},
	}
	for _, replicas := range []string{"1", "3", "6"} {
		all = append(all, goal{"requests lost, ten updates under 200/s, replicas: " + replicas,
			[]bound{{of: lostInTen(replicas + " " + inPlace)}}, nil})
	}
	for _, bench := range []string{twenty, daemonSet} {
		all = append(all, goal{"the whole cluster, " + bench + ": CPU per pod; bytes that etcd writes", []bound{
			ratio(bench, clusterCPU, native, 0.6), ratio(bench, etcdWrites, native, 0.7)}, []cause{pulling, billing}})
	}
	for _, count := range []int{100, 300} {
		all = append(all, atOnce(count)...)
	}
	all = append(all, withinLimits()...)
	return append(all, unchanged()...)
}

// withinLimits returns the goals of many Deployments of which ten pods may restart at a time.
func withinLimits() []goal {
	shown := func(what, unit string) bound { return of(limits, limited, what, none, unit) }
	return []goal{
		{"100 Deployments at once, at most 10 pods: pods out of service at the worst moment", []bound{of(limits, limited, out, 10, "")}, nil},
		{"100 Deployments at once, at most 10 pods: seconds; mean seconds a pod is not Ready; slowest namespace beside quickest", []bound{
			shown(seconds, "s"), shown(meanUnready, "s"), shown(unfair, "×")}, nil},
	}
}

// unchanged returns the goals of pods that no update changes.
func unchanged() []goal {
	return []goal{
		{"CREATE of a pod: p99 added in a labelled namespace; calls of webhooks in another one", []bound{
			of(born, "added", "milliseconds of CREATE, p99", 5, "ms"), of(born, "unlabelled", "calls of webhooks", 0, "")}, []cause{admitting}},
		{"memory of the larger manager, 3,000 pods at rest", []bound{of(resting(3000), "at rest", memory, 60, "MiB")}, []cause{caches}},
		{"memory of the larger manager, 10,000 pods, updated after a rest", []bound{
			of(resting(10000), "then updated", memory, 220, "MiB")}, []cause{caches}},
	}
}

// atOnce returns the goals of edits of many Deployments at once.
func atOnce(count int) []goal {
	about := func(edit string, ofSeconds, ofWrites float64) goal {
		bench := workloads(count, edit)
		return goal{bench + ": seconds; API writes; refused ones per pod", []bound{
			ratio(bench, seconds, native, ofSeconds), ratio(bench, writes, native, ofWrites), plain(bench, refused, 1, "")}, []cause{queueing}}
	}
	label, images := workloads(count, "label"), workloads(count, "images")
	return []goal{
		about("label", 0.2, 0.6),
		about("images", 0.5, 1),
		// It waits for two requests of the Deployment controller for each of the others, whichever way they are updated, at 20 a second.
		{fmt.Sprintf("another tenant's update beside %d Deployments, beside that in native rollouts: seconds, label; images", count), []bound{
			ratio(label, otherTenant, native, 0.5), ratio(images, otherTenant, native, 0.5)}, []cause{queueing}},
		{fmt.Sprintf("another client's GET beside %d Deployments, p99: label; images", count), []bound{
			plain(label, bystanders, 80, "ms"), plain(images, bystanders, 80, "ms")}, []cause{saturating}},
		{images + ": mean seconds a pod is not Ready", []bound{ratio(images, meanUnready, alone, 2)}, []cause{queueing}},
	}
}

func plain(bench, what string, most float64, unit string) bound {
	return of(bench, inPlace, what, most, unit)
}

// of limits a figure of any way.
func of(bench, way, what string, most float64, unit string) bound {
	return bound{of: func(f figures) float64 { return f.value(bench, way, what) }, most: most, unit: unit}
}

// ratio limits the ratio of in place to another way.
func ratio(bench, what, other string, most float64) bound {
	return between(bench, what, inPlace, other, most)
}

// between limits the ratio of two ways.
func between(bench, what, way, other string, most float64) bound {
	both := func(f figures) (float64, float64) {
		return f.value(bench, way, what), f.value(bench, other, what)
	}
	return bound{
		of:   func(f figures) float64 { a, b := both(f); return a / b },
		most: most,
		unit: "× " + other,
		from: func(f figures) string { a, b := both(f); return fmt.Sprintf(" (%s : %s)", number(a), number(b)) },
	}
}

func against(bench string, ofNative, ofFloor float64) []bound {
	return []bound{ratio(bench, seconds, native, ofNative), ratio(bench, seconds, floor, ofFloor)}
}

// growing limits the processor time of each pod among many, and its ratio to that among few.
func growing(of func(int) string, few, many int) []bound {
	growth := func(f figures) float64 {
		return f.value(of(many), inPlace, milliseconds) / f.value(of(few), inPlace, milliseconds)
	}
	return []bound{plain(of(many), milliseconds, 12, "ms"), {of: growth, most: 1.2, unit: fmt.Sprintf("× that of %d", few)}}
}

// lostInTen is NaN for fewer than ten updates.
func lostInTen(way string) func(figures) float64 {
	return func(f figures) float64 {
		if f.value(serving, way, updates) < 10 {
			return math.NaN()
		}
		return f.value(serving, way, lost)
	}
}

// beyond returns the additional time of a pod's update beside the restart of a bare pod: the difference of the two medians, and so on,
// because kubelets delay one restart in twenty by a second, whatever its cause. These benches update one pod at a time, so the processors
// are idle.
func beyond(q float64) func(figures) float64 {
	return func(f figures) float64 {
		var own, all []float64
		for _, bench := range []string{daemonSet, four, fourServing} {
			own = append(own, f.way(bench, floor).Steps...)
			all = append(all, f.way(bench, inPlace).Steps...)
		}
		return quantile(all, q) - quantile(own, q)
	}
}

// target returns the limits of the goal.
func (g goal) target() string {
	if g.bounds[0].most == none {
		return "none"
	}
	return g.each(func(b bound) string {
		if b.most == 0 {
			return "0"
		}
		return "≤ " + number(b.most) + b.suffix()
	})
}

// isMissed marks a goal that is missed.
const isMissed = "**not met**"

// measured returns the figures of the goal.
func (g goal) measured(f figures) string {
	return g.each(func(b bound) string {
		if value := b.of(f); known(value) {
			return number(value) + b.suffix() + b.origin(f)
		}
		return "not measured"
	})
}

// verdict compares the figures with the limits.
func (g goal) verdict(f figures) string {
	verdict := "met"
	if g.bounds[0].most == none {
		verdict = ""
	}
	for _, b := range g.bounds {
		switch value := b.of(f); {
		case !known(value):
			return ""
		case value > b.most:
			verdict = isMissed
		}
	}
	return verdict
}

func (g goal) each(text func(bound) string) string {
	parts := make([]string, len(g.bounds))
	for i, b := range g.bounds {
		parts[i] = text(b)
	}
	return strings.Join(parts, "; ")
}

func (b bound) suffix() string {
	if b.unit == "" {
		return ""
	}
	return " " + b.unit
}

func (b bound) origin(f figures) string {
	if b.from == nil {
		return ""
	}
	return b.from(f)
}

func known(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

func number(value float64) string {
	if value == math.Trunc(value) || math.Abs(value) >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", value), "0"), ".")
}

// summary returns the table for users who have just run the bench.
func summary(f figures) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-86s %-32s %-48s\n", "goal", "at most", "measured")
	for _, g := range goals() {
		fmt.Fprintf(&text, "%-86s %-32s %-48s %s\n", g.what, g.target(), g.measured(f), strings.Trim(g.verdict(f), "*"))
	}
	return text.String()
}
