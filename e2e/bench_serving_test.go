//go:build e2e && bench

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stayput/stayput/e2e/load"
)

// way is one way to update under load.
type way struct {
	name     string
	replicas int32
	labels   map[string]string
	options  []option
	policy   statefulSetOption // of a StatefulSet; nil is a Deployment
	rounds   int               // of benchRounds updates each
	costs    []servingCost
}

// deploy creates the workload. It returns its name, and that of the Service.
func (w *way) deploy(s *scenario) (name, app string) {
	s.Helper()
	options := append([]option{realistic}, w.options...)
	if w.policy == nil {
		s.create(web(w.replicas, options...))
		return "web", "web"
	}
	sts := db(w.replicas, w.policy)
	for _, set := range options {
		ofTemplate(set)(sts)
	}
	s.form(sts)
	return members, "db"
}

// servingCost is the cost of some updates under load.
type servingCost struct {
	load.Traffic
	took    []float64
	created float64
}

// benchServing updates Deployments under the same load in several ways, in turns. In place there are ten updates at each size.
func benchServing(t *testing.T) {
	underLoad(t, fmt.Sprintf("Updates under %d requests/s", loadRate), []*way{
		{name: "6 native", replicas: 6, labels: unlabelled, rounds: 1},
		{name: "6 native, preStop", replicas: 6, labels: unlabelled, options: []option{preStop}, rounds: 1},
		{name: "6 in place", replicas: 6, labels: surging, rounds: 2},
		{name: "3 in place", replicas: 3, labels: surging, rounds: 2},
		{name: "1 in place", replicas: 1, labels: surging, rounds: 2},
	})
}

// benchMembers does the same with StatefulSets of three pods.
func benchMembers(t *testing.T) {
	ordered, parallel, waits := policies["OrderedReady"], policies["Parallel"], []option{preStop}
	underLoad(t, fmt.Sprintf("StatefulSets under %d requests/s", loadRate), []*way{
		{name: "OrderedReady, native", replicas: 3, labels: unlabelled, policy: ordered, rounds: 2},
		{name: "OrderedReady, in place", replicas: 3, labels: stateful, policy: ordered, rounds: 2},
		{name: "OrderedReady, preStop, native", replicas: 3, labels: unlabelled, policy: ordered, options: waits, rounds: 2},
		{name: "OrderedReady, preStop, in place", replicas: 3, labels: stateful, policy: ordered, options: waits, rounds: 2},
		{name: "Parallel, native", replicas: 3, labels: unlabelled, policy: parallel, rounds: 2},
		{name: "Parallel, in place", replicas: 3, labels: stateful, policy: parallel, rounds: 2},
	})
}

// underLoad updates in several ways, in turns, and prints the cost of each.
func underLoad(t *testing.T, title string, ways []*way) {
	defer func() {
		var all []column
		for _, way := range ways {
			if len(way.costs) > 0 {
				all = append(all, column{name: way.name, figures: way.figures()})
			}
		}
		present(t, title, all)
	}()
	for round := range 2 {
		for _, way := range ways {
			if round < way.rounds {
				t.Run(fmt.Sprintf("%s %d", way.name, round+1), way.update)
			}
		}
	}
}

// update makes several updates under one load. It creates a namespace, and so new pods: see benchRounds.
func (w *way) update(t *testing.T) {
	s := newScenario(t, asShipped(w.labels))
	name, app := w.deploy(s)
	l := s.load(s.expose(app))
	began, cost := time.Now(), servingCost{}
	for number := range benchRounds {
		fmt.Printf("update %d of %d under load: %s\n", number+1, benchRounds, nameOf(t))
		from := time.Now()
		s.setImage(name, fmt.Sprintf("app=v%d", number+2))
		s.completes(name)
		cost.took = append(cost.took, time.Since(from).Seconds())
	}
	if cost.Traffic = s.unload(l); cost.Lost > 0 {
		fmt.Println(cost.Traffic)
	}
	cost.created = births(s.since(began))
	w.costs = append(w.costs, cost)
	s.kubectl("", "delete", ref(name), "--cascade=foreground", "--timeout="+patience.String())
}

// figures returns the figures of all rounds; requests and pods are summed.
func (w *way) figures() []figure {
	var sent, lost, created float64
	var took []float64
	for _, c := range w.costs {
		sent, lost, created = sent+float64(c.Sent), lost+float64(c.Lost), created+c.created
		took = append(took, c.took...)
	}
	return []figure{
		{"updates", float64(len(took))},
		{"requests sent", sent},
		{"requests lost", lost},
		{"pods created", created},
		{"seconds until it is over, p50", quantile(took, 0.5)},
		{"seconds until it is over, max", quantile(took, 1)},
	}
}
