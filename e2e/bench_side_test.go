//go:build e2e && bench

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// side is one way to update a workload: a namespace with the workload, and the measurements in it.
type side struct {
	*scenario
	way    string
	edit   func(*side, podEdit) // returns when the update is over
	bare   bool                 // the bench itself edits the pods
	drain  time.Duration
	name   string // of the workload
	costs  []cost
	memory memory
	meter  *meter // nil if the cluster's bill is not asked for
	pods   float64
}

// begin creates the workload.
func (s *side) begin(r race, lane int) {
	s.Helper()
	if r.before != nil {
		r.before(s.scenario)
	}
	s.name = s.deploy(r.object(lane))
	if r.service {
		s.expose(s.name)
	}
}

// end deletes the workload and waits until its pods are gone.
func (s *side) end() {
	s.Helper()
	s.kubectl("", "delete", ref(s.name), "--cascade=foreground", "--timeout="+patience.String())
}

// cost is the cost of one update.
type cost struct {
	counters
	seconds   float64   // until the update is over
	created   float64   // pods
	deadlines float64   // how often the workload's progress deadline passed
	notReady  []float64 // of each pod that was not Ready, in seconds
	unready   float64   // number of pods not Ready at the worst moment
	fewer     float64   // how many fewer pods than before were Ready at the worst moment
	updated   []float64 // when each pod was updated and Ready, in seconds
	steps     []stepTimes
	bill      bill
}

// update edits the pods and records the cost, relative to the counters of before. It returns the counters of now.
func (s *side) update(e podEdit, before counters) counters {
	s.Helper()
	old := incarnations(s.workload(s.name).pods)
	pods := float64(len(old))
	s.pods = pods
	from, seconds, billed := s.carryOut(e)
	after, memory := s.count()
	happened := s.since(from)
	unready, fewer := worst(happened, slices.Collect(maps.Keys(old)))
	s.memory = s.memory.most(memory)
	s.costs = append(s.costs, cost{
		counters:  after.since(before).per(pods),
		seconds:   seconds,
		created:   births(happened),
		deadlines: deadlinesPassed(happened),
		notReady:  notReady(happened),
		unready:   unready,
		fewer:     fewer,
		updated:   arrivals(happened, from, e, old),
		steps:     stepsIn(happened, e, old),
		bill:      billed,
	})
	return after
}

// carryOut returns when the update began, how long it took, and what it has cost the cluster if that is asked for.
func (s *side) carryOut(e podEdit) (from time.Time, seconds float64, billed bill) {
	s.Helper()
	happens := func() {
		from = time.Now()
		s.edit(s, e)
		seconds = time.Since(from).Seconds()
		if !s.bare {
			s.completes(s.name)
		}
	}
	if s.meter == nil {
		happens()
		return from, seconds, billed
	}
	billed, err := s.meter.over(s.Context(), func() { happens(); time.Sleep(billedAfter) })
	if err != nil {
		s.Fatal(err)
	}
	return from, seconds, billed
}

// editTemplate waits until `kubectl rollout status` would say that the update is over. It runs neither that command nor `kubectl set
// image`, because starting kubectl takes as long as restarting a container.
func (s *side) editTemplate(e podEdit) {
	s.Helper()
	generation, err := s.patchTemplate(e)
	if err != nil {
		s.Fatal(err)
	}
	s.until(s.name+" to be rolled out", func(w world) error { return toldSo(w, s.name, generation) })
}

// patchTemplate returns the resulting generation.
func (s *side) patchTemplate(e podEdit) (int64, error) {
	patch := fmt.Appendf(nil, `{"spec":{"template":%s}}`, patchOf(e))
	apps, kind := clients.AppsV1(), types.StrategicMergePatchType
	if isDaemonSet(s.name) {
		ds, err := apps.DaemonSets(s.namespace).Patch(s.Context(), s.name[len(daemonSetPrefix):], kind, patch, metav1.PatchOptions{})
		return ds.GetGeneration(), err
	}
	if name, is := strings.CutPrefix(s.name, statefulSetPrefix); is {
		sts, err := apps.StatefulSets(s.namespace).Patch(s.Context(), name, kind, patch, metav1.PatchOptions{})
		return sts.GetGeneration(), err
	}
	d, err := apps.Deployments(s.namespace).Patch(s.Context(), s.name, kind, patch, metav1.PatchOptions{})
	return d.GetGeneration(), err
}

// toldSo returns nil when `kubectl rollout status` says that this generation, or a later one, is rolled out.
func toldSo(w world, name string, generation int64) error {
	now, err := w.workload(name)
	if err != nil {
		return err
	}
	done, why := false, ""
	switch object := now.Object.(type) {
	case *appsv1.Deployment:
		done, why = rolledOut(object)
	case *appsv1.DaemonSet:
		done, why = daemonsRolledOut(object)
	case *appsv1.StatefulSet:
		done, why = membersRolledOut(object)
	}
	if now.GetGeneration() < generation || !done {
		return fmt.Errorf("generation %d: %s", now.GetGeneration(), why)
	}
	return nil
}

// until waits for a condition that is known not to be met yet.
func (s *scenario) until(what string, condition func(world) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.recorder.until(ctx, condition); err != nil {
		s.Fatalf("waited in vain for %s: %v", what, err)
	}
}

// restless is how long a cluster may go on writing. A cluster with 1,000 new nodes writes for minutes.
const restless = 10 * time.Minute

// count reads the counters when there has been no write for a second, so that each write is counted for the right update.
func (s *scenario) count() (now counters, used memory) {
	s.Helper()
	var since time.Time
	s.within(restless, "a second without writes to the cluster", func(ctx context.Context) error {
		read, err := apiWrites(ctx)
		if err != nil {
			return err
		}
		if read != now {
			now, since = read, time.Now()
		}
		if time.Since(since) < time.Second {
			return errors.New("writes were counted less than a second ago")
		}
		return nil
	})
	own := managersUse(s.Context())
	now.held, now.cpu = own.held, own.cpu
	return now, own.memory
}

// listed waits until every node reports that it has these versions of the test application.
func (s *scenario) listed(tags []string) {
	s.Helper()
	s.eventually("every node to list the images", func(ctx context.Context) error {
		found, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "type!=simulated"})
		if err != nil {
			return err
		}
		for _, node := range found.Items {
			for _, tag := range tags {
				if !lists(node, appImage(tag)) {
					return fmt.Errorf("%s does not list %s", node.Name, tag)
				}
			}
		}
		return nil
	})
}

func lists(node corev1.Node, image string) bool {
	return slices.ContainsFunc(node.Status.Images, func(has corev1.ContainerImage) bool { return slices.Contains(has.Names, image) })
}

// column returns all measurements. Counts are the median of all updates, like the durations.
func (s *side) column() column {
	var notReady, beyond []float64
	for _, c := range s.costs {
		notReady = append(notReady, c.notReady...)
		for _, step := range c.steps {
			beyond = append(beyond, step.whole-s.drained().Seconds())
		}
	}
	figures := []figure{
		{"seconds until rolled out, p50", s.median(func(c cost) float64 { return c.seconds })},
		{"seconds until rolled out, max", s.most(func(c cost) float64 { return c.seconds })},
		{"pods created", s.most(func(c cost) float64 { return c.created })},
		{"progress deadlines passed", s.most(func(c cost) float64 { return c.deadlines })},
		{"seconds a pod is not Ready, p50", quantile(notReady, 0.5)},
		{"seconds a pod is not Ready, max", quantile(notReady, 1)},
		{"seconds that pods are not Ready, all pods", s.median(func(c cost) float64 { return sum(c.notReady) })},
		{"pods not Ready at the worst moment", s.median(func(c cost) float64 { return c.unready })},
		{"Ready pods fewer at the worst moment", s.median(func(c cost) float64 { return c.fewer })},
	}
	counted := counterFigures(s.costs, func(c cost) counters { return c.counters })
	figures = slices.Concat(figures, counted, s.memory.figures(), stepFigures(s.costs, s.drained()), s.billFigures())
	return column{name: s.way, figures: figures, updated: s.typical(), steps: beyond}
}

// drained returns the part of each pod's update that the user asked for. The bench waits before its own patches.
func (s *side) drained() time.Duration {
	if s.bare {
		return 0
	}
	return s.drain
}

func (s *side) median(of func(cost) float64) float64 { return quantile(each(s.costs, of), 0.5) }
func (s *side) most(of func(cost) float64) float64   { return quantile(each(s.costs, of), 1) }

func each[C any](costs []C, of func(C) float64) []float64 {
	values := make([]float64, len(costs))
	for i, c := range costs {
		values[i] = of(c)
	}
	return values
}

// typical returns when the pods were updated in the update of median duration.
func (s *side) typical() []float64 {
	median := s.median(func(c cost) float64 { return c.seconds })
	for _, c := range s.costs {
		if c.seconds == median {
			return c.updated
		}
	}
	return nil
}

// since returns the events from a moment on, without those of pre-pull pods.
func (s *scenario) since(moment time.Time) []event {
	return slices.DeleteFunc(s.recorder.inOrder(), func(e event) bool {
		pod, ok := e.object.(*corev1.Pod)
		return e.at.Before(moment) || ok && pulls(pod)
	})
}

func births(events []event) float64 {
	count := 0
	for _, e := range events {
		if _, pod := e.object.(*corev1.Pod); pod && e.what == watch.Added {
			count++
		}
	}
	return float64(count)
}

// deadlinesPassed counts the Deployments whose progress deadline passed at some moment.
func deadlinesPassed(events []event) float64 {
	passed := map[types.UID]bool{}
	for _, e := range events {
		if d, ok := e.object.(*appsv1.Deployment); ok && late(d) {
			passed[d.UID] = true
		}
	}
	return float64(len(passed))
}

func late(d *appsv1.Deployment) bool {
	condition := progressing(d)
	return condition != nil && condition.Reason == "ProgressDeadlineExceeded"
}
