//go:build e2e && bench

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/e2e/load"
)

// configuredPods is the number of pods that use the ConfigMap.
const configuredPods = 20

// benchConfiguration changes a ConfigMap that a Deployment under load uses, in several ways, in turns. Each update has pods of its own:
// kubelets delay a container that restarts again and again.
func benchConfiguration(t *testing.T) {
	ways := reloads()
	defer func() {
		var all []column
		for _, way := range ways {
			if len(way.costs) > 0 {
				all = append(all, way.column())
			}
		}
		present(t, fmt.Sprintf("ConfigMap of %d pods changes, %d requests/s", configuredPods, loadRate), all)
	}()
	m := newMeter(t)
	rounds := roundsOr(t, benchRounds)
	for round := range rounds {
		for _, way := range ways {
			fmt.Printf("round %d of %d: a ConfigMap changes, %s\n", round+1, rounds, way.way)
			t.Run(fmt.Sprintf("%s %d", way.way, round+1), func(t *testing.T) { way.update(t, m) })
		}
	}
}

// reload is one way in which containers get a changed ConfigMap.
type reload struct {
	side
	labels  map[string]string
	ask     func(*stage) // asks for restarts on changes; nil if the user restarts
	traffic load.Traffic // of all updates
}

// reloads returns the ways. Reloader takes part if there is its program, $RELOADER.
func reloads() []*reload {
	byStayput := func(s *stage) {
		s.mayFollow()
		s.follows("web", "*", "configmap/conf")
	}
	all := []*reload{{side: side{way: "in place"}, labels: surging, ask: byStayput}}
	if os.Getenv("RELOADER") == "" {
		return append(all, &reload{side: side{way: "native, rollout restart"}})
	}
	return append(all,
		&reload{side: side{way: "native, Reloader"}, ask: byReloader},
		&reload{side: side{way: "in place, Reloader"}, labels: with(surging, restartLabel, "in-place"), ask: byReloader})
}

func byReloader(s *stage) {
	s.Helper()
	s.kubectl("", "annotate", "deployment/web", "configmap.reloader.stakater.com/reload=conf", "stayput.dev/restart-annotations="+reloadedFrom)
	s.reloader()
}

// update creates the workload, changes its ConfigMap under load, records the cost, and checks that all pods have the new value.
func (w *reload) update(t *testing.T, m *meter) {
	w.stage, w.edit, w.name, w.meter, w.pods = newStage(t, asShipped(w.labels)), w.change, "web", m, configuredPods
	w.kubectl("", "create", "configmap", "conf", "--from-literal=colour=red")
	w.create(web(configuredPods, realistic, configured))
	if w.ask != nil {
		w.ask(w.stage)
	}
	url, before := w.expose("web"), w.idle()
	l := w.load(url)
	from, seconds, billed := w.carryOut(nil)
	traffic := w.unload(l)
	after, resident := w.count()
	w.resident = max(w.resident, resident)
	w.costs = append(w.costs, cost{
		counters: after.since(before).per(configuredPods), seconds: seconds, created: births(w.since(from)), bill: billed,
	})
	if w.traffic.Sent, w.traffic.Lost = w.traffic.Sent+traffic.Sent, w.traffic.Lost+traffic.Lost; traffic.Lost > 0 {
		fmt.Println(traffic)
	}
	w.has("green")
	w.end()
}

// change changes the ConfigMap, and waits until `kubectl rollout status` would say that the update for it is over.
func (w *reload) change(s *side, _ podEdit) {
	s.Helper()
	before := s.workload(s.name).GetGeneration()
	_, err := clients.CoreV1().ConfigMaps(s.namespace).Patch(s.Context(), "conf", types.MergePatchType,
		[]byte(`{"data":{"colour":"green"}}`), metav1.PatchOptions{})
	if err == nil && w.ask == nil {
		err = s.restartTemplate()
	}
	if err != nil {
		s.Fatal(err)
	}
	s.until(s.name+" to be rolled out", func(now world) error { return toldSo(now, s.name, before+1) })
}

// restartTemplate makes the edit of `kubectl rollout restart`, without starting kubectl.
func (s *side) restartTemplate() error {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, time.Now().Format(time.RFC3339))
	_, err := clients.AppsV1().Deployments(s.namespace).Patch(s.Context(), s.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// has checks that all pods have this value.
func (w *reload) has(colour string) {
	w.Helper()
	for _, pod := range w.workload(w.name).pods {
		if shown := w.app(pod, "version"); shown != colour {
			w.Errorf("%s: pod %s has the value %q instead of %q", w.way, pod.Name, shown, colour)
		}
	}
}

func (w *reload) column() column {
	figures := []figure{
		{"updates", float64(len(w.costs))},
		{"seconds until rolled out, p50", w.median(func(c cost) float64 { return c.seconds })},
		{"seconds until rolled out, max", w.most(func(c cost) float64 { return c.seconds })},
		{"requests sent", float64(w.traffic.Sent)},
		{"requests lost", float64(w.traffic.Lost)},
		{"pods created", w.most(func(c cost) float64 { return c.created })},
		{"API writes per pod, without events", w.median(func(c cost) float64 { return c.writes })},
		{"API writes per pod, refused", w.median(func(c cost) float64 { return c.refused })},
		{"milliseconds of the managers' CPU per pod", 1000 * w.median(func(c cost) float64 { return c.cpu })},
		{"MiB of the larger manager", w.resident},
	}
	return column{name: w.way, figures: append(figures, w.billFigures()...)}
}
