package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/bynamespace"
)

// inProgress are the updates in progress of all kinds, as metrics. They are counted whenever they are read.
type inProgress struct {
	namespaces                 *bynamespace.Series
	reporters                  []*Reporter
	inFlight, stalled, refused *prometheus.Desc
	awaiting                   *prometheus.Desc
}

func newInProgress(namespaces *bynamespace.Series) *inProgress {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("stayput_"+name, help, append([]string{bynamespace.Label}, labels...), nil)
	}
	return &inProgress{
		namespaces: namespaces,
		inFlight:   gauge("updates_in_flight", "Workloads being updated in place."),
		stalled: gauge("updates_stalled",
			"Deployments whose update in place has made no progress for progressDeadlineSeconds, and workloads whose update waits instead "+
				"of falling back."),
		refused: gauge("updates_awaiting_budget",
			"Workloads whose update in place has waited for a PodDisruptionBudget for ten seconds or more."),
		awaiting: gauge("pods_awaiting_limit",
			"Pods that only a limit on how many pods restart at a time keeps in service, by the flag that sets it.", "limit"),
	}
}

// Describe implements prometheus.Collector.
func (p *inProgress) Describe(to chan<- *prometheus.Desc) {
	to <- p.inFlight
	to <- p.stalled
	to <- p.refused
	to <- p.awaiting
}

// Collect implements prometheus.Collector.
func (p *inProgress) Collect(to chan<- prometheus.Metric) {
	for namespace, n := range p.count() {
		to <- prometheus.MustNewConstMetric(p.inFlight, prometheus.GaugeValue, float64(n.inFlight), namespace)
		to <- prometheus.MustNewConstMetric(p.stalled, prometheus.GaugeValue, float64(n.stalled), namespace)
		to <- prometheus.MustNewConstMetric(p.refused, prometheus.GaugeValue, float64(n.refused), namespace)
		for _, flag := range concurrency.Flags {
			to <- prometheus.MustNewConstMetric(p.awaiting, prometheus.GaugeValue, float64(n.awaiting[flag]), namespace, flag)
		}
	}
}

// counts are the numbers of one namespace.
type counts struct {
	inFlight, stalled, refused int
	awaiting                   map[string]int // by flag
}

// count returns the numbers by namespace. An update in a namespace without series counts as elsewhere.
func (p *inProgress) count() map[string]*counts {
	by := map[string]*counts{}
	for _, namespace := range append(p.namespaces.Begun(), bynamespace.Elsewhere) {
		by[namespace] = &counts{awaiting: map[string]int{}}
	}
	for _, reporter := range p.reporters {
		reporter.each(func(namespace string, known *update) {
			n, has := by[namespace]
			if !has {
				n = by[bynamespace.Elsewhere]
			}
			n.inFlight++
			if known.still {
				n.stalled++
			}
			if known.refused {
				n.refused++
			}
			for _, flag := range concurrency.Flags {
				n.awaiting[flag] += known.awaiting[steps.FilterLimit+" "+flag]
			}
		})
	}
	return by
}

// each calls do with each update in progress.
func (r *Reporter) each(do func(namespace string, known *update)) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for workload, known := range r.Updates {
		do(workload.Namespace, known)
	}
}
