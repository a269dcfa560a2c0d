package simulation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/daemonsets"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// daemonSet returns nil in a world with a Deployment.
func (w *world) daemonSet() *apps.DaemonSet { return w.daemonSets.objects["agent"] }

// daemonRollout returns what one reader knows of the DaemonSet.
func (w *world) daemonRollout(
	d *apps.DaemonSet, all []*apps.ControllerRevision, pods []*corev1.Pod,
) controllerrevisions.Rollout {
	r := controllerrevisions.Rollout{
		Kind:      daemonsets.Of(d),
		Revisions: all,
		Seen: engine.Snapshot{Pods: pods, Mode: w.mode, Settings: w.settings, Rules: fixture.AllInPlace,
			Fallback: w.fallback, Now: w.now},
	}
	r.Seen.Settings.Partition = inplace.PartitionOf(d.Annotations)
	w.pull.Observe(&r.Seen.Settings, &r.Seen.Nodes, &r.Seen.Pull)
	if revision := r.UpdateRevision(); revision != nil {
		r.Seen.DryRun = dryrun.Result{UpdateRevision: revision.UID, Pod: w.newPod(d.Spec.Template)}
	}
	return r
}

// daemons returns the live objects.
func (w *world) daemons() controllerrevisions.Rollout {
	return w.daemonRollout(w.daemonSet(), sorted(w.revisions.objects), sorted(w.pods.objects))
}

// daemonPlan returns the next plan for the DaemonSet. Before a pod is taken out of service, Stayput asks the API server whether the
// DaemonSet in the plan is the latest.
func (s *stayput) daemonPlan() steps.Plan {
	cached := s.daemonSets.objects["agent"]
	r := s.daemonRollout(cached, s.revisions.list(), s.pods.list())
	s.remembered.Observe(r.Seen.Pods, s.now)
	r.Seen.TakenOut, r.Seen.Endpoints = s.remembered.TakenOut, s.endpoints()
	r.Seen.Disruption = s.disruption(s.budgets.list())
	plan := r.Plan()
	if s.plannedOn = &r; !plan.Decision.Held {
		s.plannedOn = nil
	}
	current := s.daemonSet()
	latest := current.Generation == cached.Generation && inplace.PartitionOf(current.Annotations) == r.Seen.Settings.Partition
	if !latest && slices.ContainsFunc(plan.Steps, steps.TakesOut) {
		s.stale, plan.Steps = true, nil
	}
	return plan
}

// daemonHook is Stayput's webhook for writes of the DaemonSet controller. It has a cache of its own.
type daemonHook struct {
	*world
	sets *informer[*apps.DaemonSet]
	revs *informer[*apps.ControllerRevision]
	pods *informer[*corev1.Pod]
}

func newDaemonHook(w *world) *daemonHook {
	return &daemonHook{world: w, sets: w.daemonSets.informer(), revs: w.revisions.informer(), pods: w.pods.informer()}
}

func (h *daemonHook) deliver(watch, n int) {
	switch watch {
	case 0:
		h.sets.advance(n)
	case 1:
		h.revs.advance(n)
	case 2:
		h.pods.advance(n)
	}
}

// stays is refuseControlled in webhook/revised.go. For a pod that is out of service the cache is enough to hold its deletion. Otherwise all
// is read live, except pods on other nodes.
func (h *daemonHook) stays(pod *corev1.Pod) bool {
	cached := h.daemonRollout(h.sets.objects["agent"], h.revs.list(), h.pods.list())
	if readiness.Out(pod) && h.holds(cached, pod) {
		return true
	}
	live := h.daemons()
	elsewhere := func(other *corev1.Pod) bool { return other.Spec.NodeName != pod.Spec.NodeName }
	live.Seen.Pods = append(slices.DeleteFunc(live.Seen.Pods, elsewhere),
		slices.DeleteFunc(cached.Seen.Pods, func(p *corev1.Pod) bool { return !elsewhere(p) })...)
	return h.holds(live, pod)
}

func (h *daemonHook) holds(r controllerrevisions.Rollout, pod *corev1.Pod) bool {
	held, _ := h.since(r).HoldsDeletion(pod)
	return held
}

// keeps is keepsRevision in webhook/revised.go.
func (h *daemonHook) keeps(revision *apps.ControllerRevision) bool {
	cached := h.daemonRollout(h.sets.objects["agent"], h.revs.list(), h.pods.list())
	byCache, _ := h.since(cached).HoldsCleanup(revision)
	live, _ := h.since(h.daemons()).HoldsCleanup(revision)
	return byCache || live
}

func (h *daemonHook) since(r controllerrevisions.Rollout) controllerrevisions.Rollout {
	r.HeldSince = h.now
	if revision := r.UpdateRevision(); revision != nil && !revisions.Started(revision.Labels) {
		r.HeldSince = h.holdStart(revision)
	}
	return r
}

// daemonSetController is pkg/controller/daemon of Kubernetes 1.36, on caches that lag.
type daemonSetController struct {
	*world
	sets *informer[*apps.DaemonSet]
	revs *informer[*apps.ControllerRevision]
	pods *informer[*corev1.Pod]
	// dirty says that the key is in the queue. It is taken from due on, which failures have put off.
	dirty    bool
	due      time.Time
	failures int
	// creations and deletions are writes whose events it has not received yet. Until then it makes no others.
	creations, deletions map[string]bool
}

func newDaemonSetController(w *world) *daemonSetController {
	return &daemonSetController{world: w, sets: w.daemonSets.informer(), revs: w.revisions.informer(),
		pods: w.pods.informer(), dirty: true,
		creations: map[string]bool{}, deletions: map[string]bool{}}
}

func (c *daemonSetController) deliver(watch, n int) {
	switch watch {
	case 0:
		c.nudge(len(c.sets.advance(n)))
	case 1:
		c.nudge(len(c.revs.advance(n)))
	case 2:
		for _, event := range c.pods.advance(n) {
			c.nudge(1)
			delete(c.creations, event.name)
			if event.new == nil || event.new.DeletionTimestamp != nil {
				delete(c.deletions, event.name)
			}
		}
	}
}

func (c *daemonSetController) resync() { c.nudge(1) }

func (c *daemonSetController) nudge(events int) {
	if events > 0 {
		c.dirty, c.due = true, c.now
	}
}

func (c *daemonSetController) run() {
	if !c.dirty || c.now.Before(c.due) {
		return
	}
	c.dirty = false
	if err := c.sync(); err == nil {
		c.failures = 0
	} else {
		c.dirty, c.due = true, c.now.Add(min(1000*time.Second, 5*time.Millisecond<<min(c.failures, 20)))
		c.failures++
	}
}

// sync is syncDaemonSet and updateDaemonSet.
func (c *daemonSetController) sync() error {
	d := c.sets.objects["agent"]
	current, old, err := c.constructHistory(d)
	if err != nil || len(c.creations)+len(c.deletions) > 0 {
		return err
	}
	err = c.manage(d, current)
	if err == nil && len(c.creations)+len(c.deletions) == 0 {
		err = c.rollingUpdate(d, current.Labels[inplace.LabelRevisionHash])
	}
	if err != nil {
		return err
	}
	return c.cleanupHistory(d, old)
}

func (c *daemonSetController) constructHistory(d *apps.DaemonSet) (current *apps.ControllerRevision,
	old []*apps.ControllerRevision, err error) {
	latest := int64(0)
	for _, each := range c.revs.list() {
		template, err := each.Template()
		if err != nil {
			return nil, nil, err
		}
		if sameTemplate(template, d.Spec.Template) {
			current = each
			continue
		}
		old, latest = append(old, each), max(latest, each.Revision)
	}
	switch {
	case current == nil:
		current, err = c.snapshot(d, latest+1)
	case current.Revision <= latest:
		current, err = alter(c.world, c.revisions, current.Name, current.ResourceVersion,
			func(r *apps.ControllerRevision) { r.Revision = latest + 1 })
	}
	return current, old, err
}

// snapshot creates the revision of the template. Its name is a hash of the typed template, so two templates that differ only in their JSON
// have one revision.
func (c *daemonSetController) snapshot(d *apps.DaemonSet, revision int64) (*apps.ControllerRevision, error) {
	raw := fixture.RawOf(d.Spec.Template)
	hash := apps.TemplateHash(d.Spec.Template.Typed(), nil)
	if existing := c.revisions.objects["agent-"+hash]; existing != nil {
		return existing, nil
	}
	c.made++
	c.logf("native: revision %s of %s", hash, fixture.TemplateImages(d.Spec.Template))
	made := &apps.ControllerRevision{Revision: revision, ObjectMeta: metav1.ObjectMeta{Name: "agent-" + hash, Namespace: d.Namespace,
		UID: types.UID(fmt.Sprint(hash, "-", c.made)), Labels: map[string]string{inplace.LabelRevisionHash: hash},
		CreationTimestamp: c.stamp(),
		OwnerReferences:   []metav1.OwnerReference{*apps.ControllerRef(d)}},
		Data: json.RawMessage(`{"spec":{"template":{"$patch":"replace",` + strings.TrimPrefix(raw, "{") + `}}`)}
	return put(c.world, c.revisions, made), nil
}

// onNodes returns the pods by node. It leaves out pods that are terminal and being deleted.
func (c *daemonSetController) onNodes() map[string][]*corev1.Pod {
	there := map[string][]*corev1.Pod{}
	for _, pod := range c.pods.list() {
		if pod.DeletionTimestamp == nil || !readiness.Terminal(pod) {
			there[pod.Spec.NodeName] = append(there[pod.Spec.NodeName], pod)
		}
	}
	return there
}

// manage creates missing pods on nodes, and deletes surplus ones.
func (c *daemonSetController) manage(d *apps.DaemonSet, current *apps.ControllerRevision) error {
	there, failed := c.onNodes(), error(nil)
	for _, node := range c.pull.Nodes {
		if len(there[node.Name]) == 0 {
			c.create(d, node.Name, current.Labels[inplace.LabelRevisionHash])
		}
		live := slices.DeleteFunc(there[node.Name], func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		slices.SortStableFunc(live, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		for _, pod := range live[min(1, len(live)):] {
			failed = cmp.Or(c.delete(pod), failed)
		}
	}
	return failed
}

// rollingUpdate is rollingUpdate for maxSurge 0.
func (c *daemonSetController) rollingUpdate(d *apps.DaemonSet, hash string) (failed error) {
	most, unavailable := d.MaxUnavailable(len(c.pull.Nodes)), 0
	var replaced, candidates []*corev1.Pod
	there := c.onNodes()
	for _, at := range c.rng.Perm(len(c.pull.Nodes)) {
		recent, old, known := c.updatedOn(there[c.pull.Nodes[at].Name], d, hash)
		switch {
		case !known, (recent == nil) == (old == nil):
			unavailable++
		case recent != nil:
			if !c.available(d, recent) {
				unavailable++
			}
		case !c.available(d, old):
			replaced = append(replaced, old)
			unavailable++
		case unavailable < most:
			candidates = append(candidates, old)
		}
	}
	room := min(max(0, most-unavailable), len(candidates))
	for _, pod := range append(replaced, candidates[:room]...) {
		failed = cmp.Or(c.delete(pod), failed)
	}
	return failed
}

// updatedOn is findUpdatedPodsOnNode.
func (c *daemonSetController) updatedOn(pods []*corev1.Pod, d *apps.DaemonSet, hash string) (recent, old *corev1.Pod, known bool) {
	generation := d.Annotations[appsv1.DeprecatedTemplateGeneration]
	for _, pod := range pods {
		updated := pod.Labels[inplace.LabelRevisionHash] == hash || generation != "" && pod.Labels[inplace.LabelTemplateGeneration] == generation
		switch {
		case pod.DeletionTimestamp != nil:
		case updated && recent != nil, !updated && old != nil:
			return nil, nil, false
		case updated:
			recent = pod
		default:
			old = pod
		}
	}
	return recent, old, true
}

func (c *daemonSetController) available(d *apps.DaemonSet, pod *corev1.Pod) bool {
	is, wait := readiness.AvailableAt(pod, d.Spec.MinReadySeconds, c.now)
	if wait > 0 {
		c.dirty, c.due = true, c.now.Add(wait) // as in updateDaemonSetStatus
	}
	return is
}

// cleanupHistory keeps the revisions that labels of pods name.
func (c *daemonSetController) cleanupHistory(d *apps.DaemonSet, old []*apps.ControllerRevision) error {
	excess := len(old) - int(*d.Spec.RevisionHistoryLimit)
	named := map[string]bool{}
	for _, pod := range c.pods.list() {
		named[pod.Labels[inplace.LabelRevisionHash]] = true
	}
	slices.SortStableFunc(old, func(a, b *apps.ControllerRevision) int { return int(a.Revision - b.Revision) })
	for _, each := range old {
		if excess <= 0 || named[each.Labels[inplace.LabelRevisionHash]] {
			continue
		}
		if err := c.deleteRevision(each.Name); err != nil {
			return err
		}
		excess--
	}
	return nil
}

// deleteRevision is a DELETE of any stored version. It passes Stayput's webhook.
func (w *world) deleteRevision(name string) error {
	stored := w.revisions.objects[name]
	switch {
	case stored == nil:
		return errNotFound
	case w.holdAlive() && w.hook.keeps(stored):
		w.logf("denied: clean up %s", name)
		return errHeld
	}
	w.logf("native: clean up %s", name)
	remove(w, w.revisions, name)
	return nil
}

// create is a CREATE.
func (c *daemonSetController) create(d *apps.DaemonSet, node, hash string) {
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.Typed().ObjectMeta, Spec: d.Spec.Template.Typed().Spec}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, inplace.LabelRevisionHash, hash)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, inplace.LabelTemplateGeneration, d.Annotations[appsv1.DeprecatedTemplateGeneration])
	pod.OwnerReferences = []metav1.OwnerReference{*apps.ControllerRef(d)}
	c.postDaemon(pod, node)
	c.creations[pod.Name] = true
}

// postDaemon stores a pod of the DaemonSet, on that node.
func (w *world) postDaemon(pod *corev1.Pod, node string) {
	w.made++
	pod.Name, pod.Namespace, pod.Generation, pod.CreationTimestamp = fmt.Sprintf("agent-%s-%03d", node, w.made), "shop", 1, w.stamp()
	pod.UID, pod.Spec, pod.Status.Phase = types.UID(pod.Name), w.admit(pod.Spec), corev1.PodPending
	pod.Spec.NodeName = node
	w.logf("native: create %s of %s", pod.Name, pod.Labels[inplace.LabelRevisionHash])
	put(w, w.pods, pod)
}

// delete deletes a pod. A pod that is gone is no error.
func (c *daemonSetController) delete(cached *corev1.Pod) error {
	err := c.deleteDaemon(cached.Name)
	if errors.Is(err, errNotFound) {
		return nil
	}
	if err == nil {
		c.deletions[cached.Name] = true
	}
	return err
}

// deleteDaemon is a DELETE of a pod of the DaemonSet, which passes Stayput's webhook. What that answers is in refuseControlled in
// webhook/revised.go.
func (w *world) deleteDaemon(name string) error {
	pod := w.pods.objects[name]
	switch {
	case pod == nil || pod.DeletionTimestamp != nil:
		return errNotFound
	case w.holdAlive() && w.hook.stays(pod):
		w.logf("denied: delete %s", name)
		if readiness.Out(pod) {
			return errNotFound
		}
		return errHeld
	}
	w.rules.daemonDeleted(w, pod)
	w.logf("native: delete %s", name)
	return w.terminate(name)
}

// daemonDeleted demands that no pod is deleted that can be updated in place. In a strict world every pod can.
func (j *invariants) daemonDeleted(w *world, pod *corev1.Pod) {
	if _, why := w.daemons().HoldsDeletion(pod); !j.loose && w.mode.Manages() {
		w.violated("%s is deleted: %s %s", pod.Name, why.Code, why.Message)
	}
}

// editDaemons is a change by a user. The API server increments the template's generation.
func (w *world) editDaemons(does string, change func(*apps.DaemonSet)) {
	d, err := alter(w, w.daemonSets, "agent", "", func(d *apps.DaemonSet) {
		before := fixture.RawOf(d.Spec.Template)
		if change(d); fixture.RawOf(d.Spec.Template) != before {
			d.Generation++
			counted, _ := strconv.Atoi(d.Annotations[appsv1.DeprecatedTemplateGeneration])
			d.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.Itoa(counted + 1)
		}
	})
	if err != nil {
		w.violated("the user %s: %v", does, err)
	}
	w.logf("the user %s: %s partition %q", does, fixture.TemplateImages(d.Spec.Template), d.Annotations[inplace.AnnotationPartition])
}
