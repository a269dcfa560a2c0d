package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/internal/sample"
)

// deploymentController is pkg/controller/deployment of Kubernetes 1.36, on caches that lag.
type deploymentController struct {
	*world
	deployments *informer[*apps.Deployment]
	sets        *informer[*apps.ReplicaSet]
	pods        *informer[*corev1.Pod]
	// dirty says that the key is in the queue. It is taken from due on. After 15 failures it is dropped.
	dirty    bool
	failures int
	due      time.Time
}

func newDeploymentController(w *world) *deploymentController {
	return &deploymentController{world: w, deployments: w.deployments.informer(), sets: w.sets.informer(),
		pods: w.pods.informer(), dirty: true}
}

func (c *deploymentController) deliver(watch, n int) {
	switch watch {
	case 0:
		c.nudge(len(c.deployments.advance(n)))
	case 1:
		c.nudge(len(c.sets.advance(n)))
	case 2:
		for _, event := range c.pods.advance(n) {
			if event.new == nil {
				c.nudge(1) // deletePod: Recreate waits for it
			}
		}
	}
}

func (c *deploymentController) nudge(events int) {
	if events > 0 {
		c.dirty, c.due = true, c.now
	}
}

func (c *deploymentController) run() {
	if !c.dirty || c.now.Before(c.due) {
		return
	}
	c.dirty, c.due = false, time.Time{}
	err := c.sync()
	switch {
	// where webhooks refuse many writes, they give a cause after which the controller waits for the next event
	case err == nil, errors.Is(err, errHeld) && c.seed%2 == 0:
		c.failures = 0
	case c.failures < 15:
		c.failures++
		c.dirty, c.due = true, c.now.Add(5*time.Millisecond<<c.failures)
	default:
		c.logf("the Deployment controller drops the key: %v", err)
		c.failures = 0
	}
}

func (c *deploymentController) sync() error {
	d := c.deployments.objects["web"]
	sets := c.sets.list()
	sort.Slice(sets, func(i, j int) bool { return older(sets[i], sets[j]) })
	scaling := slices.ContainsFunc(sets, func(rs *apps.ReplicaSet) bool {
		return apps.Replicas(rs) > 0 && rs.Annotations[inplace.AnnotationDesired] != strconv.Itoa(int(apps.Desired(d)))
	})
	if err := c.checkPaused(d); err != nil {
		return err
	}
	switch {
	case d.Spec.Paused || scaling:
		return c.syncScale(d, sets)
	case !d.Rolls():
		return c.recreate(d, sets)
	}
	return c.rolling(d, sets)
}

// checkPaused is checkPausedConditions. After it has written, its copy is outdated, as in the original.
func (c *deploymentController) checkPaused(d *apps.Deployment) error {
	progressing := apps.DeploymentCondition(d.Status, appsv1.DeploymentProgressing)
	if !deployments.HasDeadline(d) || progressing != nil && progressing.Reason == deployments.ReasonTimedOut {
		return nil
	}
	reason, is := deployments.ReasonPaused, progressing != nil && progressing.Reason == deployments.ReasonPaused
	if !d.Spec.Paused {
		reason = deployments.ReasonResumed
	}
	if d.Spec.Paused == is {
		return nil
	}
	return c.writeStatus(d, func(status *appsv1.DeploymentStatus) {
		deployments.SetCondition(status, deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, reason, "", c.now))
	})
}

func older(a, b *apps.ReplicaSet) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// split is getAllReplicaSetsAndSyncRevision.
func (c *deploymentController) split(d *apps.Deployment, sets []*apps.ReplicaSet, create bool) (newRS *apps.ReplicaSet,
	old []*apps.ReplicaSet, err error) {
	latest := int64(0)
	for _, rs := range sets {
		if newRS == nil && sameTemplate(rs.Spec.Template, d.Spec.Template) {
			newRS = rs
			continue
		}
		old = append(old, rs)
		revision, _ := strconv.ParseInt(rs.Annotations[inplace.AnnotationRevision], 10, 64)
		latest = max(latest, revision)
	}
	if newRS == nil && create {
		return nil, old, c.create(d, old, latest+1)
	}
	if newRS == nil {
		return nil, old, nil
	}
	annotations := maps.Clone(newRS.Annotations)
	maps.Copy(annotations, copied(d.Annotations))
	if revision, _ := strconv.ParseInt(newRS.Annotations[inplace.AnnotationRevision], 10, 64); revision <= latest {
		annotations[inplace.AnnotationRevision] = strconv.FormatInt(latest+1, 10)
	}
	if !maps.Equal(annotations, newRS.Annotations) {
		newRS, err = c.updateReplicaSet(newRS, func(rs *apps.ReplicaSet) { rs.Annotations = annotations })
	}
	return newRS, old, err
}

// copied returns the annotations that the Deployment controller copies from a Deployment to its ReplicaSets, and that an undo copies back.
func copied(annotations map[string]string) map[string]string {
	copies := maps.Clone(annotations)
	maps.DeleteFunc(copies, func(key, _ string) bool { return !deployments.Copied(key) })
	return copies
}

var sameTemplates = map[[2]string]bool{}

// sameTemplate is EqualIgnoreHash with a cache.
func sameTemplate(a, b apps.Template) bool {
	key := [2]string{fixture.RawOf(a), fixture.RawOf(b)}
	same, known := sameTemplates[key]
	if !known {
		same = sample.NativeEqual(new(a.Typed()), new(b.Typed()))
		sameTemplates[key] = same
	}
	return same
}

func (c *deploymentController) create(d *apps.Deployment, old []*apps.ReplicaSet, revision int64) error {
	typed := d.Spec.Template.Typed()
	hasher := fnv.New32a()
	fmt.Fprint(hasher, fixture.RawOf(d.Spec.Template))
	hash := fmt.Sprintf("%08x", hasher.Sum32())
	typed.Labels = deployments.WithHash(typed.Labels, hash)
	raw, err := json.Marshal(typed)
	if err != nil {
		return err
	}
	template, err := apps.ParseTemplate(raw)
	if err != nil {
		return err
	}
	rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-" + hash, Namespace: d.Namespace, Labels: typed.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		Annotations:     copied(d.Annotations)}}
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, inplace.AnnotationRevision, strconv.FormatInt(revision, 10))
	rs.Spec.Template, rs.Spec.MinReadySeconds = template, d.Spec.MinReadySeconds
	fixture.SetReplicasAnnotations(d, rs)
	rs.Spec.Replicas = new(int32)
	rs.Spec.Replicas = new(newReplicas(d, append(old, rs), rs))
	if err := c.createReplicaSet(rs); err != nil {
		return err
	}
	return c.writeStatus(d, func(status *appsv1.DeploymentStatus) {
		deployments.SetCondition(status, deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue,
			"NewReplicaSetCreated", "", c.now))
	})
}

// newReplicas is NewRSNewReplicas.
func newReplicas(d *apps.Deployment, all []*apps.ReplicaSet, newRS *apps.ReplicaSet) int32 {
	if !d.Rolls() {
		return apps.Desired(d)
	}
	room := apps.Desired(d) + d.MaxSurge() - sumReplicas(all)
	if room <= 0 {
		return apps.Replicas(newRS)
	}
	return apps.Replicas(newRS) + min(room, apps.Desired(d)-apps.Replicas(newRS))
}

func sumReplicas(sets []*apps.ReplicaSet) int32 {
	sum := int32(0)
	for _, rs := range sets {
		sum += apps.Replicas(rs)
	}
	return sum
}

func (c *deploymentController) scaleTo(d *apps.Deployment, rs *apps.ReplicaSet, size int32, force bool) (bool, error) {
	wants := rs.DeepCopy()
	fixture.SetReplicasAnnotations(d, wants)
	if size == apps.Replicas(rs) && (!force || maps.Equal(wants.Annotations, rs.Annotations)) {
		return false, nil
	}
	_, err := c.updateReplicaSet(rs, func(rs *apps.ReplicaSet) {
		rs.Spec.Replicas = &size
		fixture.SetReplicasAnnotations(d, rs)
	})
	return size != apps.Replicas(rs), err
}

// syncScale is sync: while paused, and after scaling.
func (c *deploymentController) syncScale(d *apps.Deployment, sets []*apps.ReplicaSet) error {
	newRS, old, err := c.split(d, sets, false)
	if err == nil {
		err = c.scale(d, newRS, old)
	}
	if err == nil && d.Spec.Paused {
		err = c.cleanup(d, old)
	}
	if err != nil {
		return err
	}
	return c.syncStatus(d, sets, newRS)
}

func (c *deploymentController) scale(d *apps.Deployment, newRS *apps.ReplicaSet, old []*apps.ReplicaSet) error {
	all := old
	if newRS != nil {
		all = append(slices.Clone(old), newRS)
	}
	active := slices.DeleteFunc(slices.Clone(all), func(rs *apps.ReplicaSet) bool { return apps.Replicas(rs) == 0 })
	switch {
	case len(all) == 0:
		return nil
	case len(active) == 0:
		_, err := c.scaleTo(d, all[len(all)-1], apps.Desired(d), false)
		return err
	case len(active) == 1 && apps.Replicas(active[0]) == apps.Desired(d) && !c.stayput.scaled[active[0].Name]:
		// The real controller leaves the annotation as it is. If a conflict came in between before, it considers itself scaling for ever. That is
		// no fault of Stayput's, unless Stayput has scaled.
		_, err := c.scaleTo(d, active[0], apps.Desired(d), true)
		return err
	case len(active) == 1:
		_, err := c.scaleTo(d, active[0], apps.Desired(d), false)
		return err
	case !d.Rolls():
		return nil
	}
	// Proportional scaling, with the leftovers for the largest.
	add := apps.Desired(d) + d.MaxSurge() - sumReplicas(active)
	if apps.Desired(d) == 0 {
		add = -sumReplicas(active)
	}
	sort.SliceStable(active, func(i, j int) bool { return apps.Replicas(active[i]) > apps.Replicas(active[j]) })
	added := int32(0)
	sizes := map[string]int32{}
	for _, rs := range active {
		before, _ := strconv.Atoi(rs.Annotations[inplace.AnnotationMax])
		fraction := int32(float64(apps.Replicas(rs)*(apps.Desired(d)+d.MaxSurge()))/float64(max(1, before))+0.5) - apps.Replicas(rs)
		if add > 0 {
			fraction = min(fraction, add-added)
		} else {
			fraction = max(fraction, add-added)
		}
		sizes[rs.Name] = apps.Replicas(rs) + fraction
		added += fraction
	}
	sizes[active[0].Name] = max(0, sizes[active[0].Name]+add-added)
	for _, rs := range active {
		if _, err := c.scaleTo(d, rs, sizes[rs.Name], true); err != nil {
			return err
		}
	}
	return nil
}

// rolling is rolloutRolling.
func (c *deploymentController) rolling(d *apps.Deployment, sets []*apps.ReplicaSet) error {
	newRS, old, err := c.split(d, sets, true)
	if err != nil || newRS == nil {
		return err
	}
	size := apps.Replicas(newRS)
	if size != apps.Desired(d) {
		size = newReplicas(d, sets, newRS)
	}
	scaled, err := c.scaleTo(d, newRS, min(size, apps.Desired(d)), false)
	if err == nil && !scaled {
		scaled = c.scaleDownOld(d, sets, old, newRS)
	}
	if err != nil {
		return err
	}
	if !scaled && statusComplete(d, d.Status) {
		if err := c.cleanup(d, old); err != nil {
			return err
		}
	}
	return c.syncStatus(d, sets, newRS)
}

// scaleDownOld is reconcileOldReplicaSets, with what it calls. As in the original, errors of single writes are dropped.
func (c *deploymentController) scaleDownOld(d *apps.Deployment, sets, old []*apps.ReplicaSet, newRS *apps.ReplicaSet) bool {
	minimum := apps.Desired(d) - d.MaxUnavailable()
	unavailable := apps.Replicas(newRS) - newRS.Status.AvailableReplicas
	allowed := sumReplicas(sets) - minimum - unavailable
	if sumReplicas(old) == 0 || allowed <= 0 {
		return false
	}
	sizes, cleaned := map[string]int32{}, int32(0)
	available := int32(0)
	for _, rs := range sets {
		available += rs.Status.AvailableReplicas
	}
	for _, rs := range old {
		take := min(allowed-cleaned, max(0, apps.Replicas(rs)-rs.Status.AvailableReplicas))
		sizes[rs.Name], cleaned = apps.Replicas(rs)-take, cleaned+take
	}
	budget := available - minimum
	for _, rs := range old {
		take := min(sizes[rs.Name], max(0, budget))
		sizes[rs.Name], budget = sizes[rs.Name]-take, budget-take
	}
	changed := false
	for _, rs := range old {
		scaled, err := c.scaleTo(d, rs, sizes[rs.Name], false)
		if err != nil {
			return false // the real controller tries again with the next event, or when the deadline has passed
		}
		changed = changed || scaled
	}
	return changed
}

// recreate is rolloutRecreate.
func (c *deploymentController) recreate(d *apps.Deployment, sets []*apps.ReplicaSet) error {
	newRS, old, err := c.split(d, sets, false)
	if err != nil {
		return err
	}
	running := false
	for _, rs := range old {
		if _, err := c.scaleTo(d, rs, 0, false); err != nil {
			return err
		}
		running = running || apps.Replicas(rs) > 0 || rs.Status.Replicas > 0
	}
	for _, pod := range c.pods.list() {
		running = running || newRS == nil || !metav1.IsControlledBy(pod, newRS)
	}
	if running {
		return c.syncStatus(d, sets, newRS)
	}
	if newRS == nil {
		_, _, err = c.split(d, sets, true)
		return err
	}
	if _, err := c.scaleTo(d, newRS, apps.Desired(d), false); err != nil {
		return err
	}
	if statusComplete(d, d.Status) {
		if err := c.cleanup(d, old); err != nil {
			return err
		}
	}
	return c.syncStatus(d, sets, newRS)
}

func (c *deploymentController) cleanup(d *apps.Deployment, old []*apps.ReplicaSet) error {
	excess := len(old) - int(*d.Spec.RevisionHistoryLimit)
	for _, rs := range old[:max(0, excess)] {
		if rs.Status.Replicas == 0 && apps.Replicas(rs) == 0 && rs.Generation <= rs.Status.ObservedGeneration {
			c.deleteReplicaSet(rs.Name)
		}
	}
	return nil
}

// deleteReplicaSet is a DELETE by the Deployment controller, of any stored version. It is held while pods move to the ReplicaSet.
func (w *world) deleteReplicaSet(name string) {
	rs, found := w.sets.objects[name]
	switch {
	case !found:
	case w.markHolds(rs):
		w.logf("denied: clean up %s", name)
	default:
		w.logf("native: clean up %s", name)
		remove(w, w.sets, name)
		w.collectGarbage()
	}
}

// collectGarbage deletes the pods of ReplicaSets that are gone. It also deletes pods that a controller creates later because it does not
// know yet.
func (w *world) collectGarbage() {
	for _, pod := range sorted(w.pods.objects) {
		if w.sets.objects[metav1.GetControllerOf(pod).Name] == nil && readiness.Live(pod) {
			if err := w.terminate(pod.Name); err != nil {
				w.violated("collect garbage: %v", err)
			}
		}
	}
}

func statusComplete(d *apps.Deployment, status appsv1.DeploymentStatus) bool {
	want := apps.Desired(d)
	return status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want &&
		status.ObservedGeneration >= d.Generation
}

// syncStatus is syncRolloutStatus. The counts come from statuses/formula.go, which its own tables test. The native controller does not know
// the reason of a partition, so the reason is replaced by an unknown one.
func (c *deploymentController) syncStatus(d *apps.Deployment, sets []*apps.ReplicaSet, newRS *apps.ReplicaSet) error {
	const other = "OtherReason"
	unaware := d.DeepCopy()
	unaware.Status = withReason(d.Status, deployments.ReasonPartition, other)
	native := deployments.StatusFormula{Deployment: unaware, Sets: sets, New: newRS, Now: c.now}
	status := withReason(native.NativeStatus(), other, deployments.ReasonPartition)
	if statusComplete(d, status) && !d.Spec.Paused {
		deployments.SetCondition(&status, deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue,
			deployments.ReasonComplete, "", c.now))
	}
	if len(deployments.StatusOperations(d.Status, status)) == 0 {
		c.awaitDeadline(native.UntilDeadline(status))
		return nil
	}
	return c.writeStatus(d, func(into *appsv1.DeploymentStatus) { *into = status })
}

// withReason returns the status with one reason replaced by another.
func withReason(status appsv1.DeploymentStatus, instead, reason string) appsv1.DeploymentStatus {
	renamed := *status.DeepCopy()
	for i := range renamed.Conditions {
		if renamed.Conditions[i].Reason == instead {
			renamed.Conditions[i].Reason = reason
		}
	}
	return renamed
}

// awaitDeadline is requeueStuckDeployment.
func (c *deploymentController) awaitDeadline(wait time.Duration) {
	if wait > 0 {
		c.dirty, c.due = true, c.now.Add(wait)
	}
}

func (c *deploymentController) writeStatus(d *apps.Deployment, change func(*appsv1.DeploymentStatus)) error {
	return c.updateStatus(d, change)
}

// replicaSetController is pkg/controller/replicaset: two watches, expectations, and a cache that must have its own status writes.
type replicaSetController struct {
	*world
	sets  *informer[*apps.ReplicaSet]
	pods  *informer[*corev1.Pod]
	state map[string]*replicaSetState
}

type replicaSetState struct {
	dirty     bool
	due       time.Time
	creations int
	// refused says that a creation failed.
	refused   bool
	deletions map[string]bool
	// expired is when unmet expectations are dropped: after five minutes.
	expired time.Time
	wrote   int64
}

func newReplicaSetController(w *world) *replicaSetController {
	c := &replicaSetController{world: w, sets: w.sets.informer(), pods: w.pods.informer(), state: map[string]*replicaSetState{}}
	for name := range c.sets.objects {
		c.of(name).dirty = true
	}
	return c
}

func (c *replicaSetController) of(name string) *replicaSetState {
	if c.state[name] == nil {
		c.state[name] = &replicaSetState{deletions: map[string]bool{}}
	}
	return c.state[name]
}

func (c *replicaSetController) deliver(watch, n int) {
	switch watch {
	case 1:
		for _, event := range c.sets.advance(n) {
			c.of(event.name).dirty = true
		}
	case 2:
		for _, event := range c.pods.advance(n) {
			c.seen(event)
		}
	}
}

func (c *replicaSetController) seen(event change[*corev1.Pod]) {
	for _, pod := range []*corev1.Pod{event.old, event.new} {
		if pod == nil {
			continue
		}
		state := c.of(metav1.GetControllerOf(pod).Name)
		state.dirty = true
		if event.old == nil {
			state.creations = max(0, state.creations-1)
		}
		if event.new == nil || event.new.DeletionTimestamp != nil {
			delete(state.deletions, event.name)
		}
	}
}

func (c *replicaSetController) run() {
	for _, name := range slices.Sorted(maps.Keys(c.state)) {
		if state := c.of(name); (state.dirty || !state.due.IsZero() && !c.now.Before(state.due)) && c.rng.Intn(3) > 0 {
			state.dirty, state.due = false, time.Time{}
			if err := c.sync(name, state); err != nil {
				state.dirty = true
			}
		}
	}
}

func (c *replicaSetController) sync(name string, state *replicaSetState) error {
	rs := c.sets.objects[name]
	if rs == nil {
		return nil
	}
	if version, _ := strconv.ParseInt(rs.ResourceVersion, 10, 64); version < state.wrote {
		return errors.New("cache older than the controller's own write")
	}
	var active []*corev1.Pod
	for _, pod := range c.pods.list() {
		if metav1.IsControlledBy(pod, rs) && readiness.Live(pod) {
			active = append(active, pod)
		}
	}
	if c.now.After(state.expired) || state.creations == 0 && len(state.deletions) == 0 {
		clear(state.deletions)
		state.creations, state.expired = 0, c.now.Add(5*time.Minute)
		c.manage(rs, active, state)
	}
	if state.creations > 0 || len(state.deletions) > 0 {
		state.due = state.expired.Add(time.Second) // a resync; the real controller has more of them
	}
	return c.writeStatus(rs, active, state)
}

func (c *replicaSetController) manage(rs *apps.ReplicaSet, active []*corev1.Pod, state *replicaSetState) {
	excess := len(active) - int(apps.Replicas(rs))
	state.refused = false
	for range -excess {
		if c.createPod(rs) != nil {
			state.refused, state.due = true, c.now.Add(time.Second)
			break
		}
		state.creations++
	}
	if excess <= 0 {
		return
	}
	sort.SliceStable(active, func(i, j int) bool { return deletedBefore(active[i], active[j]) })
	for _, pod := range active[:excess] {
		state.deletions[pod.Name] = true
		if c.deletePod(pod.Name) != nil {
			delete(state.deletions, pod.Name)
		}
	}
}

// deletedBefore is ActivePodsWithRanks.Less, as far as pods differ here.
func deletedBefore(a, b *corev1.Pod) bool {
	if noneA, noneB := a.Spec.NodeName == "", b.Spec.NodeName == ""; noneA != noneB {
		return noneA
	}
	if a.Status.Phase != b.Status.Phase {
		return a.Status.Phase == corev1.PodPending
	}
	if readyA, readyB := apps.IsTrue(a, corev1.PodReady), apps.IsTrue(b, corev1.PodReady); readyA != readyB {
		return !readyA
	}
	cost := func(pod *corev1.Pod) int {
		cost, _ := strconv.Atoi(pod.Annotations[corev1.PodDeletionCost])
		return cost
	}
	if cost(a) != cost(b) {
		return cost(a) < cost(b)
	}
	return a.Name > b.Name
}

func (c *replicaSetController) writeStatus(rs *apps.ReplicaSet, active []*corev1.Pod, state *replicaSetState) error {
	status := appsv1.ReplicaSetStatus{Replicas: int32(len(active)), ObservedGeneration: rs.Generation}
	if state.refused {
		status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
			Reason: "FailedCreate", Message: errQuota.Error()}}
	}
	for _, pod := range active {
		if apps.IsTrue(pod, corev1.PodReady) {
			status.ReadyReplicas++
		}
		if available, wait := readiness.AvailableAt(pod, rs.Spec.MinReadySeconds, c.now); available {
			status.AvailableReplicas++
		} else if wait > 0 {
			state.due = c.now.Add(wait)
		}
	}
	if status.Replicas == rs.Status.Replicas && status.ReadyReplicas == rs.Status.ReadyReplicas &&
		status.AvailableReplicas == rs.Status.AvailableReplicas && len(status.Conditions) == len(rs.Status.Conditions) &&
		status.ObservedGeneration == rs.Status.ObservedGeneration {
		return nil
	}
	// The first UpdateStatus may conflict; the second, after a GET, does not.
	written, err := alter(c.world, c.world.sets, rs.Name, "", func(rs *apps.ReplicaSet) { rs.Status = status })
	if errors.Is(err, errNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	state.wrote, err = strconv.ParseInt(written.ResourceVersion, 10, 64)
	return err
}
