package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// daemonWorld is a world with a DaemonSet.
type daemonWorld struct {
	*world
	// ordered: the user asks for orders of nodes and pods.
	ordered bool
}

// newDaemonWorld returns a world whose DaemonSet has not been rolled out yet.
func newDaemonWorld(t testing.TB, seed int64, tracing bool) *daemonWorld {
	w := emptyWorld(t, seed, tracing)
	w.sized, w.reads = seed%4 == 1, seed%7 > 3
	w.unserved, w.pull.Parallel = seed%4 == 0, int(seed%5%3)
	for i := range 1 + w.rng.Intn(5) {
		w.pull.Nodes = append(w.pull.Nodes, fixture.MountingNode(fmt.Sprint("n", i+1)))
	}
	put(w, w.daemonSets, w.randomDaemonSet())
	w.kubelet, w.stayput, w.endpointsController = newKubelet(w), newStayput(w), newEndpointsController(w)
	w.kubelet.hasty, w.kubelet.skew = true, skewOf(seed)
	w.hook = newDaemonHook(w)
	startDaemons(w)
	return &daemonWorld{world: w, ordered: seed%7 < 3}
}

func (w *world) randomDaemonSet() *apps.DaemonSet {
	d := &apps.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "shop", UID: "agent", Generation: 1,
		Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}}}
	unavailable := intstr.Parse([]string{"1", "1", "2", "50%", "100%"}[w.rng.Intn(5)])
	d.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable}}
	d.Spec.MinReadySeconds = []int32{0, 0, 0, 2}[w.rng.Intn(4)]
	d.Spec.RevisionHistoryLimit = new([]int32{10, 10, 0, 1}[w.rng.Intn(4)])
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template = w.randomDaemon().Template()
	return d
}

// randomDaemon returns an app that works.
func (w *world) randomDaemon() fixture.App {
	pick := func(values ...string) string { return values[w.rng.Intn(len(values))] }
	a := fixture.App{Image: pick("v1", "v2", "v3", "v3-retag"), Sidecar: pick("s1", "s1", "s2"), Chart: pick("", "c1", "c2"), Reads: w.reads}
	if w.sized {
		a.CPU, a.Renews = pick("100m", "200m", "300m"), w.renews
	}
	return a
}

// randomlyBroken returns an app that may not work.
func (w *world) randomlyBroken() fixture.App {
	a := w.randomDaemon()
	if w.rng.Intn(4) == 0 {
		a.Image = []string{"bad", "crash"}[w.rng.Intn(2)]
	}
	return a
}

// tick makes one random event happen.
func (w *daemonWorld) tick(chaos int) {
	w.now = w.now.Add(time.Duration(w.rng.Intn(20)) * time.Millisecond)
	w.tickEndpoints()
	w.tickBudgets()
	switch n := w.rng.Intn(100); {
	case n < 14:
		w.daemonSetController.deliver(w.rng.Intn(3), 1+w.rng.Intn(3))
	case n < 22:
		w.daemonSetController.run()
	case n < 32:
		w.kubelet.pods.advance(1 + w.rng.Intn(5))
	case n < 54:
		if pods := w.kubelet.pods.list(); len(pods) > 0 {
			w.kubelet.run(pods[w.rng.Intn(len(pods))].Name)
		}
		w.runPrePullPods()
	case n < 60:
		w.hook.deliver(w.rng.Intn(3), 1+w.rng.Intn(4))
	case n < 76:
		w.stayput.deliver([]int{2, 4, 5}[w.rng.Intn(3)], 1+w.rng.Intn(4))
	case n < 100-chaos:
		w.stayput.run()
	default:
		w.disturb()
	}
	w.check()
}

// disturb does what users and failures do.
func (w *daemonWorld) disturb() {
	switch n := w.rng.Intn(20); {
	case w.ordered && w.rng.Intn(3) == 0:
		w.reorder()
	case n < 6:
		w.editDaemons("edits", func(d *apps.DaemonSet) { d.Spec.Template = w.randomlyBroken().Template() })
	case n < 9:
		w.undo()
	case n < 12:
		partition := []string{"", "", "1", "50%", "100%"}[w.rng.Intn(5)]
		w.editDaemons("stages", func(d *apps.DaemonSet) { setPartition(d, partition) })
	case n < 13:
		w.restart()
	case n < 14:
		w.logf("our process restarts")
		lease := w.stayput.lease
		w.world.stayput = newStayput(w.world)
		w.stayput.lease = lease
	case n < 15:
		w.logf("the native controller restarts")
		startDaemons(w.world)
	case n < 16:
		w.logf("the other replica, which is asked, restarts")
		w.world.hook = newDaemonHook(w.world)
	case w.rules.loose:
		w.disturbLoosely()
	}
}

// reorder asks for another order, or labels a node or a pod.
func (w *daemonWorld) reorder() {
	annotations := []string{inplace.AnnotationCanaryNodes, inplace.AnnotationUpdateByTopology, inplace.AnnotationUpdateLast}
	switch pods := sorted(w.pods.objects); w.rng.Intn(3) {
	case 0:
		key := annotations[w.rng.Intn(3)]
		w.editDaemons("asks for an order by "+key, func(d *apps.DaemonSet) {
			if _, has := d.Annotations[key]; has {
				delete(d.Annotations, key)
				return
			}
			d.Annotations[key] = "chosen"
		})
	case 1:
		node := w.pull.Nodes[w.rng.Intn(len(w.pull.Nodes))]
		node.Labels = []map[string]string{nil, {"chosen": "a"}, {"chosen": "b"}}[w.rng.Intn(3)]
		w.logf("node %s has labels %v", node.Name, node.Labels)
		w.stayput.stale = true
	case 2:
		if len(pods) > 0 {
			w.choose(pods[w.rng.Intn(len(pods))].Name)
		}
	}
}

// choose labels the pod, or removes its label.
func (w *daemonWorld) choose(name string) {
	pod, err := alter(w.world, w.pods, name, "", func(pod *corev1.Pod) {
		if _, has := pod.Labels["chosen"]; has {
			delete(pod.Labels, "chosen")
			return
		}
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "chosen", "yes")
	})
	if err != nil {
		w.violated("label: %v", err)
	}
	w.logf("pod %s has labels %v", name, pod.Labels)
}

// restart is `kubectl rollout restart`.
func (w *daemonWorld) restart() {
	a := appOf(w.daemonSet().Spec.Template)
	a.Restarted = w.now.Format(time.RFC3339Nano)
	w.editDaemons("restarts", func(d *apps.DaemonSet) { d.Spec.Template = a.Template() })
}

func setPartition(d *apps.DaemonSet, partition string) {
	if delete(d.Annotations, inplace.AnnotationPartition); partition != "" {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.AnnotationPartition, partition)
	}
}

// undo is `kubectl rollout undo` to some revision.
func (w *daemonWorld) undo() {
	all := sorted(w.revisions.objects)
	if len(all) == 0 {
		return
	}
	template, err := all[w.rng.Intn(len(all))].Template()
	if err != nil {
		w.violated("undo: %v", err)
	}
	w.editDaemons("undoes", func(d *apps.DaemonSet) { d.Spec.Template = template })
}

func (w *daemonWorld) disturbLoosely() {
	switch n := w.rng.Intn(9); n {
	case 0:
		w.kubelet.crash()
	case 1:
		if pods := sorted(w.pods.objects); len(pods) > 0 {
			w.logf("another client deletes a pod")
			if err := w.terminate(pods[w.rng.Intn(len(pods))].Name); err != nil {
				w.violated("delete: %v", err)
			}
		}
	case 2:
		w.unreachable = w.rng.Intn(3) == 0
		w.unasked = w.rng.Intn(3) == 0
		w.logf("the webhooks are unreachable: %v, that for reports of kubelets: %v", w.unreachable, w.unasked)
	case 3:
		w.stayput.running, w.stayput.queue, w.stayput.stale = !w.stayput.running, nil, true
		w.abandoned = !w.stayput.running && w.rng.Intn(2) == 0
		w.logf("our process lives: %v; no other answers: %v", w.stayput.running, w.abandoned)
	case 4:
		w.pass()
	case 5:
		w.mode = map[inplace.Mode]inplace.Mode{inplace.ModeInPlace: inplace.ModeNone, inplace.ModeNone: inplace.ModeInPlace}[w.mode]
		w.stayput.stale = true
		w.logf("the label is changed: %q", w.mode)
	case 6:
		a := w.randomDaemon()
		a.Env = strconv.Itoa(w.rng.Intn(3))
		w.editDaemons("edits the environment", func(d *apps.DaemonSet) { d.Spec.Template = a.Template() })
	case 7:
		w.kubelet.short = w.sized && !w.kubelet.short
		w.logf("the nodes have no capacity for resizes: %v", w.kubelet.short)
	case 8:
		resource := []string{"controllerrevisions", "pods", "pods/status"}[w.rng.Intn(3)]
		w.answers[resource] = []error{nil, errRefused, errFailing}[w.rng.Intn(3)]
		w.logf("our writes to %s are answered: %v", resource, w.answers[resource])
	}
}

// check demands what must be true at every moment: a pod whose label names a revision has the images of that revision.
func (w *daemonWorld) check() {
	for _, pod := range w.pods.objects {
		revision := w.revisions.objects["agent-"+pod.Labels[inplace.LabelRevisionHash]]
		if revision == nil || !readiness.Live(pod) {
			continue
		}
		if template, err := revision.Template(); err != nil || !w.isAs(pod, template) {
			w.violated("%s says it is of %s, and has %s instead of %s", pod.Name, revision.Name, fixture.Images(pod),
				fixture.TemplateImages(template))
		}
	}
}

// calm lets all processes finish. It delivers all events.
func (w *daemonWorld) calm() {
	idle := 0
	for round := 0; idle < 60 && w.failed == ""; round++ {
		if round > 6000 {
			w.violated("it does not come to rest")
		}
		before := w.version
		w.round()
		if idle++; w.version != before {
			idle = 0
		} else if idle > 20 {
			w.now = w.now.Add(6 * time.Second)
		}
		if round > 1000 {
			w.now = w.now.Add(time.Second)
		}
	}
}

// round delivers all events, and lets all processes act on them.
func (w *daemonWorld) round() {
	for watch := range 6 {
		w.daemonSetController.deliver(watch, 100)
		w.hook.deliver(watch, 100)
		w.stayput.deliver(watch, 100)
	}
	w.runOthers()
	for range 1 + len(w.stayput.queue) {
		w.stayput.run()
	}
	w.check()
	w.now = w.now.Add(50 * time.Millisecond)
}

// runOthers lets all processes but Stayput act on the events they have received.
func (w *daemonWorld) runOthers() {
	w.kubelet.pods.advance(100)
	w.endpointsController.pods.advance(100)
	w.endpointsController.run()
	w.runBudgets()
	w.daemonSetController.run()
	for _, pod := range w.kubelet.pods.list() {
		w.kubelet.run(pod.Name)
	}
	w.runPrePullPods()
}

// finish removes all obstacles and demands the right end.
func (w *daemonWorld) finish() {
	clear(w.answers)
	w.unreachable, w.unasked, w.abandoned, w.mode, w.kubelet.short = false, false, false, inplace.ModeInPlace, false
	w.stayput.running, w.stayput.stale = true, true
	w.editDaemons("ends with something that works", func(d *apps.DaemonSet) {
		setPartition(d, "")
		if raw := fixture.RawOf(d.Spec.Template); strings.Contains(raw, "bad") || strings.Contains(raw, "crash") {
			d.Spec.Template = w.randomDaemon().Template()
		}
	})
	w.calm()
	w.checkEnd()
}

func (w *daemonWorld) checkEnd() {
	r := w.daemons()
	revision := r.UpdateRevision()
	switch {
	case w.failed != "":
		return
	case revision == nil:
		w.violated("no ControllerRevision has the DaemonSet's template")
		return
	case len(r.Seen.Pods) != len(w.pull.Nodes):
		w.violated("%d pods on %d nodes", len(r.Seen.Pods), len(w.pull.Nodes))
	}
	for _, pod := range r.Seen.Pods {
		w.checkApplied(pod, revision, w.daemonSet().Spec.Template)
	}
	for _, each := range r.Revisions {
		if each.Labels[inplace.LabelUpdating] != "" || w.fallback.Hash != "" {
			w.violated("%s is still marked: %v", each.Name, each.Labels)
		}
	}
	if len(w.pull.PrePullPods) > 0 {
		w.violated("%d pre-pull pods are left", len(w.pull.PrePullPods))
	}
}

func (w *daemonWorld) checkApplied(pod *corev1.Pod, revision *apps.ControllerRevision, template apps.Template) {
	switch {
	case pod.Labels[inplace.LabelRevisionHash] != revision.Labels[inplace.LabelRevisionHash] || pod.DeletionTimestamp != nil:
		w.violated("%s is not one of %s: %v", pod.Name, revision.Name, pod.Labels)
	case !w.isAs(pod, template) || !w.runsItsSpec(pod):
		w.violated("%s has %s, or does not run it", pod.Name, fixture.Images(pod))
	case fixture.Sizes(pod) != fixture.Sizes(&corev1.Pod{Spec: template.Typed().Spec}) || !w.kubelet.sized(pod):
		w.violated("%s has %s, or was not given it", pod.Name, fixture.Sizes(pod))
	case !apps.IsTrue(pod, corev1.PodReady):
		w.violated("%s is not ready", pod.Name)
	case len(readiness.MoveOf(pod).Resize) > 0:
		w.violated("%s is marked as partially patched for ever: %s", pod.Name, pod.Annotations[inplace.AnnotationMove])
	}
}

func (w *daemonWorld) describe() string {
	plan := w.daemons().Plan()
	text := fmt.Sprintf("held %v %s, %s: %s\n", plan.Decision.Held, plan.Decision.Reasons, plan.Phase, plan.Message)
	for _, each := range sorted(w.revisions.objects) {
		text += fmt.Sprintf("  %s: revision %d, %v\n", each.Name, each.Revision, each.Labels)
	}
	for _, pod := range sorted(w.pods.objects) {
		text += fmt.Sprintf("  %s: %s %s ready %v out %v %v %s\n", pod.Name, fixture.Images(pod), fixture.Sizes(pod),
			apps.IsTrue(pod, corev1.PodReady),
			readiness.Out(pod), pod.Labels, pod.Annotations[inplace.AnnotationMove])
	}
	return text
}

// simulateDaemons runs one seed.
func simulateDaemons(t testing.TB, seed int64, tracing bool) *daemonWorld {
	w := newDaemonWorld(t, seed, tracing)
	w.rules.loose = true // the first rollout creates pods
	w.calm()
	w.rules.loose = w.rng.Intn(2) == 0
	w.renews = w.rules.loose && seed%8 == 1
	w.logf("loose %v, at most %s unavailable, history %d", w.rules.loose,
		w.daemonSet().Spec.UpdateStrategy.RollingUpdate.MaxUnavailable,
		*w.daemonSet().Spec.RevisionHistoryLimit)
	for range 200 + w.rng.Intn(800) {
		if w.failed == "" {
			w.tick(2)
		}
	}
	w.finish()
	return w
}

// TestDaemonSimulation is TestSimulation for DaemonSets. It has the same models of kubelets, EndpointSlices and Stayput, together with the
// DaemonSet controller and the webhook that answers it.
func TestDaemonSimulation(t *testing.T) {
	runSeeds(t, func(seed int64, tracing bool) outcome {
		w := simulateDaemons(t, seed, tracing)
		return outcome{w.failed, w.describe(), w.trace}
	})
}
