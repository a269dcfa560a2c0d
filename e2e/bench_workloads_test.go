//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

const (
	podsOfEach      = 10  // of many Deployments
	podsPerNode     = 100 // of a simulated node, which has room for 110
	tenantPods      = 4
	tenantIsLate    = 2 * time.Second
	workloadsAtOnce = 100 // unless WORKLOADS says otherwise
	servedAtOnce    = 30  // of those behind Services
	workloadRounds  = 3
)

// manyEdit is an edit that all Deployments get.
type manyEdit struct {
	name  string
	patch func(round int) []byte
}

// manyEdits come one after another in each round.
var manyEdits = []manyEdit{
	{"label", func(round int) []byte {
		return fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"labels":{"round":"%d"}}}}}`, round)
	}},
	{"images", func(round int) []byte { return fmt.Appendf(nil, `{"spec":{"template":%s}}`, patchOf(nextImage(round))) }},
}

// benchWorkloads edits many Deployments of simulated pods at once, natively and in place, in turns. Meanwhile another tenant updates four
// real pods in place, and a client of a namespace without the label sends requests. The way "alone" has a single Deployment, in place, and
// the tenant updates its pods afterwards.
func benchWorkloads(t *testing.T) {
	count := int(numberOf(t, "WORKLOADS", workloadsAtOnce))
	editMany(t, fmt.Sprintf("%d Deployments of %d simulated pods", count, podsOfEach), count, false, manyEdits)
}

// benchServices gives Deployments behind a Service each an image. So their pods are drained, and EndpointSlices change with every batch, at
// the 20 requests a second of their controller.
func benchServices(t *testing.T) {
	name := fmt.Sprintf("%d Deployments of %d simulated pods, Services", servedAtOnce, podsOfEach)
	editMany(t, name, servedAtOnce, true, manyEdits[1:])
}

// editMany makes edits of so many Deployments, in each way.
func editMany(t *testing.T, title string, count int, services bool, edits []manyEdit) {
	rounds := roundsOr(t, workloadRounds)
	roomFor(t, (2*count+1)*podsOfEach)
	t.Run("images", warmAll)
	ways := []*many{
		newMany(t, "alone", asShipped(surging), 1),
		newMany(t, "native", unlabelled, count),
		newMany(t, "in place", asShipped(surging), count),
	}
	defer func() {
		for kind, edit := range edits {
			var all []column
			for _, way := range ways {
				all = append(all, way.column(kind))
			}
			present(t, title+", "+edit.name, all)
		}
	}()
	for _, way := range ways {
		way.fill()
		if services {
			way.expose()
		}
	}
	for round := range rounds {
		for kind, edit := range edits {
			for _, way := range ways {
				fmt.Printf("round %d of %d: %s of %d Deployments, %s\n", round+1, rounds, edit.name, len(way.homes), way.way)
				way.update(kind, edit.patch(round))
			}
		}
	}
}

// roomFor fails if so many pods, and a quarter more that native rollouts add, do not fit on the simulated nodes.
func roomFor(t *testing.T, pods int) {
	t.Helper()
	needed := pods*5/4/podsPerNode + 1
	if nodes := simulatedNodes(t); nodes < needed {
		t.Fatalf("SIMULATED_NODES=%d is too few for %d pods: SIMULATED_NODES=%d has room", nodes, pods, needed)
	}
}

// many are Deployments that are edited at once, beside another tenant's.
type many struct {
	*batch
	way    string
	tenant *scenario
	costs  [][]manyCost // of each kind of edit
	memory memory
}

// manyCost is the cost of one edit of all Deployments.
type manyCost struct {
	cost
	waits       []float64 // of each Deployment, in seconds
	unavailable float64   // seconds, of each pod
	tenant      float64   // seconds of the other tenant's update
	beside      *bystander
}

func newMany(t *testing.T, way string, labels map[string]string, count int) *many {
	t.Helper()
	all, tenant := newBatch(t, labels, count, podsOfEach), unjudged(t, asShipped(surging))
	return &many{batch: all, way: way, tenant: tenant, costs: make([][]manyCost, len(manyEdits))}
}

// update edits all Deployments and records the cost. The other tenant's update begins a moment later, or afterwards if there is only one
// Deployment.
func (m *many) update(kind int, patch []byte) {
	m.Helper()
	m.tenant.create(web(tenantPods))
	beside := newBystander(m.T, unlabelled)
	before, _ := m.count()
	c, missed, from := manyCost{beside: beside}, m.seen.sofar(), time.Now()
	beside.begin()
	edits := m.patchAll(patch)
	if len(m.homes) == 1 {
		m.await(edits)
	}
	time.Sleep(time.Until(from.Add(tenantIsLate)))
	c.tenant = updatesAlone(m.tenant)
	m.await(edits)
	beside.rest()
	c.waits, _ = m.seen.waits(edits)
	c.seconds = lastOf(edits, c.waits).Sub(from).Seconds()
	c.unavailable = (m.seen.sofar() - missed) / float64(m.size())
	after, memory := m.count()
	after.writes -= beside.writes
	c.counters, m.memory = after.since(before).per(float64(m.size()+tenantPods)), m.memory.most(memory)
	m.costs[kind] = append(m.costs[kind], c)
	m.tenant.kubectl("", "delete", ref("web"), "--cascade=foreground", "--timeout="+crowdPatience.String())
}

// updatesAlone gives the tenant's pods an image, and returns the seconds until they are rolled out.
func updatesAlone(tenant *scenario) float64 {
	tenant.Helper()
	s, from := &side{scenario: tenant, name: "web"}, time.Now()
	generation, err := s.patchTemplate(newImage("v2"))
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), crowdPatience)
	defer cancel()
	if err := s.recorder.until(ctx, func(w world) error { return toldSo(w, s.name, generation) }); err != nil {
		s.Fatalf("the other tenant's update is not over: %v", err)
	}
	return time.Since(from).Seconds()
}

// column returns the figures of one kind of edit. Writes and processor time are for each pod, the tenant's included.
func (m *many) column(kind int) column {
	var waits []float64
	beside := &bystander{}
	for _, c := range m.costs[kind] {
		waits = append(waits, c.waits...)
		beside.add(c.beside)
	}
	median := func(of func(manyCost) float64) float64 { return quantile(each(m.costs[kind], of), 0.5) }
	figures := []figure{
		{"updates", float64(len(m.costs[kind]))},
		{"seconds until rolled out, p50", median(func(c manyCost) float64 { return c.seconds })},
		{"seconds until rolled out, max", quantile(each(m.costs[kind], func(c manyCost) float64 { return c.seconds }), 1)},
		{"seconds of one Deployment, p50", quantile(waits, 0.5)},
		{"seconds of one Deployment, p99", quantile(waits, 0.99)},
		{"seconds a pod is not Ready, mean", median(func(c manyCost) float64 { return c.unavailable })},
		{"seconds of another tenant's update, p50", median(func(c manyCost) float64 { return c.tenant })},
		{"seconds of another tenant's update, max", quantile(each(m.costs[kind], func(c manyCost) float64 { return c.tenant }), 1)},
	}
	counted := counterFigures(m.costs[kind], func(c manyCost) counters { return c.counters })
	return column{name: m.way, figures: slices.Concat(figures, counted, m.memory.figures(), beside.figures())}
}
