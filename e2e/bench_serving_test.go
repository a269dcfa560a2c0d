//go:build e2e && bench

package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	servingRounds = 3 // one update each
	servingPods   = 6
	defaultDrain  = 2 // seconds
	gatePods      = 20
	bareRestarts  = 5
)

// column is one of several things that are compared.
type column struct {
	name    string
	figures []figure
}

// columns sets any number of them beside one another.
func columns(title string, all []column) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-40s", title)
	sides := make([][]figure, 0, len(all))
	for _, c := range all {
		fmt.Fprintf(&text, " %16s", c.name)
		sides = append(sides, c.figures)
	}
	for _, what := range rows(sides...) {
		fmt.Fprintf(&text, "\n%-40s", what)
		for _, side := range sides {
			fmt.Fprintf(&text, " %16s", shown(valueOf(side, what)))
		}
	}
	return text.String() + "\n"
}

// way is one way to update under load.
type way struct {
	name   string
	labels map[string]string
	knobs  []knob
	drain  float64 // seconds, NaN natively
	costs  []servingCost
	own    restartTimes // of the same container in a pod that nobody drains
}

// servingCost is what one update under load cost.
type servingCost struct {
	traffic
	took, created float64
	notReady      []float64
}

// benchServing updates the same Deployment under the same load in several ways, which take turns. Then it says how long a pod is
// not Ready beside the least that is possible: what the drain asks for and what the application takes to stop and to start.
func benchServing(t *testing.T) {
	ways := []*way{
		{name: "native", labels: unlabelled, drain: math.NaN()},
		{name: "native, preStop", labels: unlabelled, knobs: []knob{preStop}, drain: math.NaN()},
		{name: "drain 0", labels: with(labelled, drainLabel, "0")},
		{name: "in place", labels: labelled, drain: defaultDrain},
		{name: "in pl., preStop", labels: labelled, knobs: []knob{preStop}, drain: defaultDrain},
	}
	defer func() {
		title := fmt.Sprintf("%d updates of %d pods, %d requests/s", servingRounds, servingPods, loadRate)
		all := make([]column, 0, len(ways))
		for _, way := range ways {
			all = append(all, column{way.name, way.figures()})
		}
		fmt.Println(columns(title, all))
	}()
	for round := range servingRounds {
		for _, way := range ways {
			fmt.Printf("round %d of %d: %d pods under load, %s\n", round+1, servingRounds, servingPods, way.name)
			t.Run(fmt.Sprintf("%s %d", way.name, round+1), way.update)
		}
	}
	for _, way := range ways {
		t.Run("bare pod, "+way.name, way.restart)
	}
}

// update takes a namespace of its own each time, and so new pods: see side.begin.
func (w *way) update(t *testing.T) {
	s := newStage(t, asShipped(w.labels))
	s.create(web(servingPods, append([]knob{realistic}, w.knobs...)...))
	l := s.load(s.expose("web"))
	from := time.Now()
	s.setImage("web", "app=v2")
	s.completes("web")
	took := time.Since(from).Seconds()
	happened := s.since(from)
	count := s.unload(l)
	if count.lost > 0 {
		fmt.Println(count)
	}
	w.costs = append(w.costs, servingCost{traffic: count, took: took, created: births(happened), notReady: notReady(happened)})
	s.kubectl("", "delete", "deployment", "web", "--cascade=foreground", "--timeout="+patience.String())
}

// figures are those of all rounds; requests and pods are added up.
func (w *way) figures() []figure {
	var sent, lost, created float64
	var took, notReady []float64
	for _, c := range w.costs {
		sent, lost, created = sent+float64(c.sent), lost+float64(c.lost), created+c.created
		took, notReady = append(took, c.took), append(notReady, c.notReady...)
	}
	own := quantile(w.own.patchToReady, 0.5)
	return []figure{
		{"requests sent", sent},
		{"requests lost", lost},
		{"pods created", created},
		{"seconds until it is over, p50", quantile(took, 0.5)},
		{"seconds until it is over, max", quantile(took, 1)},
		{"seconds a pod is not Ready, p50", quantile(notReady, 0.5)},
		{"seconds a pod is not Ready, max", quantile(notReady, 1)},
		{"a. drain, s", w.drain},
		{"b. bare pod: patch to Ready, s, p50", own},
		{"   bare pod: not Ready, s, p50", quantile(w.own.notReady, 0.5)},
		{"a + b + 0.5: not Ready at most, p50", w.drain + own + 0.5},
	}
}

// restartTimes are how long the container of a pod without any owner takes to stop and to start again, in seconds.
type restartTimes struct{ patchToReady, notReady []float64 }

// restart gives a bare pod several images, one after the other, each only once: the kubelet remembers images that it has restarted.
func (w *way) restart(t *testing.T) {
	s := unjudged(t)
	like := web(1, append([]knob{realistic}, w.knobs...)...).Spec.Template
	_, err := clients.CoreV1().Pods(s.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bare", Labels: like.Labels}, Spec: like.Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.isReady("bare", 0)
	for number := range bareRestarts {
		from := time.Now()
		s.kubectl("", "set", "image", "pod/bare", "app="+appImage(fmt.Sprintf("v%d", number+2)))
		s.isReady("bare", int32(number+1))
		w.own.patchToReady = append(w.own.patchToReady, time.Since(from).Seconds())
		w.own.notReady = append(w.own.notReady, notReady(s.since(from))...)
	}
}

// unjudged is a stage for what breaks the promises on purpose, such as pods without an owner.
func unjudged(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, namespace: createNamespace(t, unlabelled)}
	t.Cleanup(func() { deleteNamespace(t, s.namespace) })
	s.recorder = record(t, s.namespace)
	t.Cleanup(s.recorder.stop)
	s.usable()
	return s
}

// isReady waits until a pod is Ready that has restarted so often.
func (s *stage) isReady(name string, restarted int32) {
	s.Helper()
	s.wait(name+" to be Ready", func(w world) error {
		for _, pod := range w.pods {
			if pod.Name == name && ready(pod) && restartsOf(pod)["app"] == restarted {
				return nil
			}
		}
		return fmt.Errorf("it is not, after %d restarts", restarted)
	})
}

// benchGate measures how long after its containers a new pod becomes Ready, with a readiness gate to be opened and without.
func benchGate(t *testing.T) {
	sides := []*column{{name: "labelled"}, {name: "unlabelled"}}
	defer func() {
		fmt.Println(columns(fmt.Sprintf("%d new pods: containers ready to Ready", gatePods), []column{*sides[0], *sides[1]}))
	}()
	for i, labels := range []map[string]string{labelled, unlabelled} {
		t.Run(sides[i].name, func(t *testing.T) {
			s := newStage(t, labels)
			from := time.Now()
			s.create(web(gatePods))
			delays := gateDelays(s.since(from))
			sides[i].figures = []figure{
				{"milliseconds, p50", 1000 * quantile(delays, 0.5)},
				{"milliseconds, p95", 1000 * quantile(delays, 0.95)},
				{"milliseconds, max", 1000 * quantile(delays, 1)},
			}
		})
	}
}
