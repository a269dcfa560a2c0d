package simulation

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
)

// pair is a controller of Kubernetes and its model, which see the same. Whenever the former has a turn, the model has it first, in a copy
// of the world, and both must leave the same world.
type pair struct {
	*world
	native interface {
		native
		waits() bool
	}
	model native
	// act has the model act on all that it has. It returns what has the model know what the controller did instead, if that is chance.
	act func() (learn func())
	// anyPod reports whether the answer to a deletion depends on the pod.
	anyPod func() bool
	// as is what both must leave the same.
	as func(*world) []string
}

func (p *pair) deliver(watch, n int) {
	p.native.deliver(watch, n)
	p.model.deliver(watch, n)
}

func (p *pair) resync() {
	p.native.resync()
	p.model.resync()
}

func (p *pair) run() {
	if !p.native.waits() {
		return
	}
	before := p.fork()
	learn := p.act()
	models, trace := p.as(p.world), p.trace[len(before.trace):]
	p.restore(before)
	compared++
	p.tracing = true
	p.native.run()
	learn()
	trace = append(slices.Clone(trace), p.trace[len(before.trace):]...)
	if natives := p.as(p.world); !slices.Equal(models, natives) && !p.isChance(trace) {
		p.violated("the model leaves %s\nthe controller leaves %s\nboth: %s", strings.Join(missing(models, natives), "\n  "),
			strings.Join(missing(natives, models), "\n  "), strings.Join(trace, "\n  "))
	}
}

// isChance reports whether pods are deleted, and others might as well have been for which the API server has another answer: the DaemonSet
// controller goes through nodes in any order, and the ReplicaSet controller ranks pods by more than the model does. Of the latter only pods
// that are gone or go, which the cache does not show, have another answer.
func (p *pair) isChance(trace []string) bool {
	return p.anyPod != nil && p.anyPod() && slices.ContainsFunc(trace, func(line string) bool {
		return strings.Contains(line, "denied: delete") || strings.HasSuffix(line, " deleted") || strings.Contains(line, "asks: DELETE pods")
	})
}

// compared counts the syncs.
var compared int

func missing(from, in []string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(s string) bool { return slices.Contains(in, s) })
}

// fork is what a controller can change of the world.
type fork struct {
	world
	stores []func()
	scaled map[string]bool
}

func (w *world) fork() fork {
	f := fork{world: *w, scaled: maps.Clone(w.stayput.scaled), stores: []func(){
		w.deployments.restorer(), w.sets.restorer(), w.pods.restorer(), w.daemonSets.restorer(), w.revisions.restorer()}}
	w.rules = w.rules.clone()
	w.heldSince, w.rng = maps.Clone(w.heldSince), rand.New(rand.NewSource(w.seed))
	w.pull.Nodes = slices.Clone(w.pull.Nodes)
	w.tracing, w.decisionAt = true, -1
	return f
}

func (w *world) restore(f fork) {
	hook := w.hook
	*w = f.world
	w.hook, w.stayput.scaled, w.decisionAt = hook, f.scaled, -1
	for _, restore := range f.stores {
		restore()
	}
}

func (j invariants) clone() invariants {
	j.out, j.gone, j.last, j.flapped = maps.Clone(j.out), maps.Clone(j.gone), maps.Clone(j.last), maps.Clone(j.flapped)
	return j
}

func (s *store[T]) restorer() func() {
	objects, log := maps.Clone(s.objects), slices.Clip(s.log)
	return func() { s.objects, s.log = objects, log }
}

// waits reports whether a worker waits for a turn.
func (p *process) waits() bool {
	p.settle()
	return len(p.turns) > 0
}

// left is what controllers of a Deployment have left.
func left(w *world) (all []string) {
	for _, rs := range sorted(w.sets.objects) {
		a := rs.Annotations
		all = append(all, fmt.Sprint(rs.Name, " replicas ", apps.Replicas(rs), " desired ", a[inplace.AnnotationDesired], " at most ",
			a[inplace.AnnotationMax], " revision ", a[inplace.AnnotationRevision], " generation ", rs.Generation, " status ",
			rs.Status.Replicas, rs.Status.ReadyReplicas, rs.Status.AvailableReplicas, rs.Status.ObservedGeneration, len(rs.Status.Conditions)))
	}
	all = append(all, podsLeft(w)...)
	for _, d := range sorted(w.deployments.objects) {
		s := d.Status
		text := fmt.Sprint("status ", s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas,
			s.ObservedGeneration)
		var conditions []string
		for _, condition := range s.Conditions {
			conditions = append(conditions, fmt.Sprint(" ", condition.Type, condition.Status, condition.Reason))
		}
		slices.Sort(conditions)
		all = append(all, text+strings.Join(conditions, ","))
	}
	return all
}

// podsLeft leaves out names: which of pods that are the same is deleted, depends on their age and their node, too.
func podsLeft(w *world) (all []string) {
	for _, pod := range w.pods.objects {
		all = append(all, fmt.Sprint("a pod that lives ", readiness.Live(pod), ", cost ", pod.Annotations[corev1.PodDeletionCost], ", is ready ",
			apps.IsTrue(pod, corev1.PodReady), ", of ", pod.Labels[inplace.LabelTemplateHash]))
	}
	slices.Sort(all)
	return all
}

func comparedNatives(w *world) {
	endAll()
	deployments, native := newDeploymentController(w), nativeDeployments(w)
	w.deploymentController = &pair{world: w, native: native, model: deployments, as: left, act: func() func() {
		deployments.nudge(1)
		deployments.run()
		return func() {}
	}}
	sets, nativeSets := newReplicaSetController(w), nativeReplicaSets(w)
	w.replicaSetController = &pair{world: w, native: nativeSets, model: sets, as: left, anyPod: func() bool {
		return slices.ContainsFunc(sets.pods.list(), func(cached *corev1.Pod) bool {
			pod := w.pods.objects[cached.Name]
			return pod == nil || pod.DeletionTimestamp != nil && cached.DeletionTimestamp == nil
		})
	}, act: func() func() {
		var all []func()
		for _, key := range nativeSets.keys() {
			name := strings.TrimPrefix(key, "shop/")
			state := sets.of(name)
			all = append(all, w.learn(&state.deletions, func(pod *corev1.Pod) bool {
				cached := sets.pods.objects[pod.Name]
				return cached != nil && metav1.GetControllerOf(cached).Name == name
			}))
			state.dirty = sets.sync(name, state) != nil
			state.wrote = 0 // the controller has a turn only if its cache is as new as what it wrote
		}
		return func() {
			for _, learn := range all {
				learn()
			}
		}
	}}
	for _, each := range []*process{native.process, nativeSets.process} {
		each.atomic, each.some, each.inOrder = true, false, true
	}
}

// keys returns the keys that wait for a turn, in order.
func (p *process) keys() (keys []string) {
	for _, turn := range p.turns {
		keys = append(keys, turn.key)
	}
	slices.Sort(keys)
	return keys
}

// TestModelsOfDeployments compares the models of the Deployment and the ReplicaSet controller with these.
func TestModelsOfDeployments(t *testing.T) {
	compares(t, &startNatives, comparedNatives, func(seed int64, tracing bool) outcome {
		w := simulate(t, seed, tracing)
		return outcome{w.failed, w.describe(), w.trace}
	})
}

// compares runs the seeds with controllers that are started as pairs of a model and the controller itself.
func compares(t *testing.T, start *func(*world), pairs func(*world), run func(seed int64, tracing bool) outcome) {
	t.Helper()
	before := *start
	*start = pairs
	defer func() { *start = before }()
	runSeeds(t, run)
	t.Logf("%d syncs", compared)
}

// daemonsLeft is what the controller of a DaemonSet has left. Which of several pods it deletes is chance.
func daemonsLeft(w *world) (all []string) {
	lives, ends := 0, 0
	for _, pod := range w.pods.objects {
		if pod.DeletionTimestamp == nil {
			lives++
		} else {
			ends++
		}
	}
	all = append(all, fmt.Sprint(lives, " live, ", ends, " end"))
	for _, revision := range sorted(w.revisions.objects) {
		all = append(all, fmt.Sprint(revision.Name, " ", revision.Revision))
	}
	return all
}

func comparedDaemons(w *world) {
	endAll()
	model, native := newDaemonSetController(w), nativeDaemonSets(w)
	native.atomic, native.inOrder = true, true
	always := func() bool { return true }
	w.daemonSetController = &pair{world: w, native: native, model: model, as: daemonsLeft, anyPod: always, act: func() func() {
		learn := w.learn(&model.deletions, func(*corev1.Pod) bool { return true })
		model.nudge(1)
		model.run()
		return learn
	}}
}

// learn returns a function that has the model expect those deletions that were made since.
func (w *world) learn(deletions *map[string]bool, of func(*corev1.Pod) bool) func() {
	expected, before := maps.Clone(*deletions), maps.Clone(w.pods.objects)
	return func() {
		*deletions = expected
		for name, pod := range w.pods.objects {
			if was := before[name]; pod.DeletionTimestamp != nil && of(pod) && was != nil && was.DeletionTimestamp == nil {
				expected[name] = true
			}
		}
	}
}

// TestModelOfDaemonSets compares the model of the DaemonSet controller with it.
func TestModelOfDaemonSets(t *testing.T) {
	compares(t, &startDaemons, comparedDaemons, func(seed int64, tracing bool) outcome {
		w := simulateDaemons(t, seed, tracing)
		return outcome{w.failed, w.describe(), w.trace}
	})
}
