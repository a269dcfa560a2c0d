package simulation

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
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

// native is a native controller on caches that lag: the model of one or, in folder oracle, the one of Kubernetes itself.
type native interface {
	// deliver delivers so many events of a watch: 0 is that of workloads, 1 that of revisions, 2 that of pods.
	deliver(watch, n int)
	// run has it act on what was delivered.
	run()
	// resync has it look again at all that it has.
	resync()
}

// startNatives starts the controllers of a Deployment anew.
var startNatives = func(w *world) {
	w.deploymentController, w.replicaSetController = newDeploymentController(w), newReplicaSetController(w)
}

// startDaemons starts the controller of a DaemonSet anew.
var startDaemons = func(w *world) { w.daemonSetController = newDaemonSetController(w) }

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
	// outdated says that it has written with an old version.
	outdated bool
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
			if event.new == nil && !c.deployments.objects["web"].Rolls() && len(c.pods.objects) == 0 {
				c.nudge(1) // deletePod: Recreate waits for the last one
			}
		}
	}
}

func (c *deploymentController) resync() { c.nudge(1) }

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
	c.outdated = errors.Is(err, fixture.ErrConflict)
	switch {
	case err == nil, errors.Is(err, errHeldForEvent):
		c.failures = 0
	case c.failures < 15:
		c.failures++
		c.dirty, c.due = true, c.now.Add(5*time.Millisecond<<c.failures)
	default:
		c.logf("the Deployment controller drops the key: %v", err)
		c.failures = 0
	}
}

// sync is syncDeployment. As there, what it writes of the Deployment it writes to its copy, too, whose version is outdated from then on.
func (c *deploymentController) sync() error {
	d := c.deployments.objects["web"].DeepCopy()
	sets := c.sets.list()
	sort.Slice(sets, func(i, j int) bool { return older(sets[i], sets[j]) })
	if err := c.checkPaused(d); err != nil {
		return err
	}
	if d.Spec.Paused {
		return c.syncScale(d, sets)
	}
	scaling, err := c.scaling(d, sets)
	switch {
	case err != nil:
		return err
	case scaling:
		return c.syncScale(d, sets)
	case !d.Rolls():
		return c.recreate(d, sets)
	}
	return c.rolling(d, sets)
}

// scaling is isScalingEvent.
func (c *deploymentController) scaling(d *apps.Deployment, sets []*apps.ReplicaSet) (bool, error) {
	newRS, old, err := c.split(d, sets, false)
	return err == nil && slices.ContainsFunc(active(old, newRS), func(rs *apps.ReplicaSet) bool {
		return rs.Annotations[inplace.AnnotationDesired] != strconv.Itoa(int(apps.Desired(d)))
	}), err
}

// active is FilterActiveReplicaSets.
func active(old []*apps.ReplicaSet, newRS *apps.ReplicaSet) []*apps.ReplicaSet {
	return slices.DeleteFunc(together(old, newRS), func(rs *apps.ReplicaSet) bool { return apps.Replicas(rs) == 0 })
}

func together(old []*apps.ReplicaSet, newRS *apps.ReplicaSet) []*apps.ReplicaSet {
	if newRS == nil {
		return slices.Clone(old)
	}
	return append(slices.Clone(old), newRS)
}

// checkPaused is checkPausedConditions.
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
	deployments.SetCondition(&d.Status, deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, reason, "", c.now))
	return c.putStatus(d)
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
		latest = max(latest, numberOf(rs))
	}
	switch {
	case newRS != nil:
		newRS, err = c.annotate(d, newRS, latest+1)
	case create:
		newRS, err = c.create(d, old, latest+1)
	}
	return newRS, old, err
}

func numberOf(rs *apps.ReplicaSet) int64 {
	number, _ := strconv.ParseInt(rs.Annotations[inplace.AnnotationRevision], 10, 64)
	return number
}

// annotate is what getNewReplicaSet does with a ReplicaSet that exists.
func (c *deploymentController) annotate(d *apps.Deployment, newRS *apps.ReplicaSet, number int64) (*apps.ReplicaSet, error) {
	annotations := maps.Clone(newRS.Annotations)
	maps.Copy(annotations, copied(d.Annotations))
	if before := annotations[inplace.AnnotationRevision]; numberOf(newRS) < number {
		const history = inplace.AnnotationRevision + "-history"
		annotations[inplace.AnnotationRevision] = strconv.FormatInt(number, 10)
		annotations[history] = strings.TrimPrefix(annotations[history]+","+before, ",")
	}
	if !maps.Equal(annotations, newRS.Annotations) || newRS.Spec.MinReadySeconds != d.Spec.MinReadySeconds {
		return c.updateReplicaSet(newRS, func(rs *apps.ReplicaSet) {
			rs.Annotations, rs.Spec.MinReadySeconds = annotations, d.Spec.MinReadySeconds
		})
	}
	changed := d.Annotations[inplace.AnnotationRevision] != annotations[inplace.AnnotationRevision]
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.AnnotationRevision, annotations[inplace.AnnotationRevision])
	if deployments.HasDeadline(d) && apps.DeploymentCondition(d.Status, appsv1.DeploymentProgressing) == nil {
		changed = true
		c.progresses(d, "FoundNewReplicaSet")
	}
	if changed {
		return newRS, c.putStatus(d)
	}
	return newRS, nil
}

func (c *deploymentController) progresses(d *apps.Deployment, reason string) {
	deployments.SetCondition(&d.Status, deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reason, "", c.now))
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

func (c *deploymentController) create(d *apps.Deployment, old []*apps.ReplicaSet, number int64) (*apps.ReplicaSet, error) {
	typed := d.Spec.Template.Typed()
	hash := apps.TemplateHash(typed, nil)
	typed.Labels = deployments.WithHash(typed.Labels, hash)
	rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-" + hash, Namespace: d.Namespace, Labels: typed.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		Annotations:     copied(d.Annotations)}}
	metav1.SetMetaDataAnnotation(&rs.ObjectMeta, inplace.AnnotationRevision, strconv.FormatInt(number, 10))
	rs.Spec.Template, rs.Spec.MinReadySeconds = fixture.AsTemplate(typed), d.Spec.MinReadySeconds
	fixture.SetReplicasAnnotations(d, rs)
	rs.Spec.Replicas = new(int32)
	rs.Spec.Replicas = new(newReplicas(d, together(old, rs), rs))
	err := c.createReplicaSet(rs)
	if errors.Is(err, fixture.ErrConflict) && c.sets.objects[rs.Name] != nil {
		rs, err = c.sets.objects[rs.Name], nil
	} else if err == nil && deployments.HasDeadline(d) {
		c.progresses(d, "NewReplicaSetCreated")
	}
	if err != nil {
		return nil, err
	}
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.AnnotationRevision, strconv.FormatInt(number, 10))
	return rs, c.putStatus(d)
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

// scaleTo is scaleReplicaSet.
func (c *deploymentController) scaleTo(d *apps.Deployment, rs *apps.ReplicaSet, size int32, force bool) (*apps.ReplicaSet, bool, error) {
	wants := rs.DeepCopy()
	fixture.SetReplicasAnnotations(d, wants)
	if size == apps.Replicas(rs) && (!force || maps.Equal(wants.Annotations, rs.Annotations)) {
		return rs, false, nil
	}
	written, err := c.updateReplicaSet(rs, func(rs *apps.ReplicaSet) {
		rs.Spec.Replicas = &size
		fixture.SetReplicasAnnotations(d, rs)
	})
	return written, err == nil && size != apps.Replicas(rs), err
}

// scaleAllTo scales all of them.
func (c *deploymentController) scaleAllTo(d *apps.Deployment, sets []*apps.ReplicaSet, size int32) (scaled bool, err error) {
	for _, rs := range sets {
		_, changed, err := c.scaleTo(d, rs, size, false)
		if err != nil {
			return false, err
		}
		scaled = scaled || changed
	}
	return scaled, nil
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
	return c.syncDeploymentStatus(d, sets, newRS)
}

func (c *deploymentController) scale(d *apps.Deployment, newRS *apps.ReplicaSet, old []*apps.ReplicaSet) error {
	if one := activeOrLatest(newRS, old); one != nil {
		// The real controller leaves the annotation as it is if the number is right. If a conflict came in between before, it considers
		// itself scaling for ever. That is no fault of Stayput's, unless Stayput has scaled.
		_, _, err := c.scaleTo(d, one, apps.Desired(d), apps.Replicas(one) == apps.Desired(d) && !c.stayput.scaled[one.Name])
		return err
	}
	switch {
	case saturated(d, newRS):
		_, err := c.scaleAllTo(d, active(old, nil), 0)
		return err
	case !d.Rolls():
		return nil
	}
	return c.scaleProportionally(d, active(old, newRS))
}

// activeOrLatest is FindActiveOrLatest.
func activeOrLatest(newRS *apps.ReplicaSet, old []*apps.ReplicaSet) *apps.ReplicaSet {
	switch all := active(old, newRS); {
	case len(all) == 1:
		return all[0]
	case len(all) > 1:
		return nil
	case newRS == nil && len(old) > 0:
		return old[len(old)-1]
	}
	return newRS
}

// saturated is IsSaturated.
func saturated(d *apps.Deployment, newRS *apps.ReplicaSet) bool {
	if newRS == nil || newRS.Annotations[inplace.AnnotationDesired] != strconv.Itoa(int(apps.Desired(d))) {
		return false
	}
	return apps.Replicas(newRS) == apps.Desired(d) && newRS.Status.AvailableReplicas == apps.Desired(d)
}

// scaleProportionally gives the leftovers to the largest. Of those of the same size, the newest grows first, and the oldest shrinks first.
func (c *deploymentController) scaleProportionally(d *apps.Deployment, sets []*apps.ReplicaSet) error {
	if len(sets) == 0 { // the Deployment is paused, and all old ones were cleaned up
		return nil
	}
	add := apps.Desired(d) + d.MaxSurge() - sumReplicas(sets)
	if apps.Desired(d) == 0 {
		add = -sumReplicas(sets)
	}
	sort.SliceStable(sets, func(i, j int) bool {
		if a, b := apps.Replicas(sets[i]), apps.Replicas(sets[j]); a != b || add == 0 {
			return add != 0 && a > b
		}
		return older(sets[i], sets[j]) == (add < 0)
	})
	added := int32(0)
	sizes := map[string]int32{}
	for _, rs := range sets {
		proportion := proportionOf(d, rs, add-added)
		sizes[rs.Name] = apps.Replicas(rs) + proportion
		added += proportion
	}
	sizes[sets[0].Name] = max(0, sizes[sets[0].Name]+add-added)
	for _, rs := range sets {
		if _, _, err := c.scaleTo(d, rs, sizes[rs.Name], true); err != nil {
			return err
		}
	}
	return nil
}

// proportionOf is GetReplicaSetProportion, of which so many are left.
func proportionOf(d *apps.Deployment, rs *apps.ReplicaSet, left int32) int32 {
	before, _ := strconv.Atoi(rs.Annotations[inplace.AnnotationMax])
	fraction := -apps.Replicas(rs)
	if apps.Desired(d) > 0 {
		fraction += int32(math.Round(float64(apps.Replicas(rs)*(apps.Desired(d)+d.MaxSurge())) / float64(max(1, before))))
	}
	switch {
	case left > 0:
		return min(fraction, left)
	case left < 0:
		return max(fraction, left)
	}
	return 0
}

// rolling is rolloutRolling.
func (c *deploymentController) rolling(d *apps.Deployment, sets []*apps.ReplicaSet) error {
	newRS, old, err := c.split(d, sets, true)
	if err != nil {
		return err
	}
	all, size := together(old, newRS), apps.Desired(d)
	if apps.Replicas(newRS) < size {
		size = newReplicas(d, all, newRS)
	}
	_, scaled, err := c.scaleTo(d, newRS, size, false)
	if err != nil {
		return err
	}
	scaled = scaled || c.scaleDownOld(d, old, newRS)
	if !scaled && statusComplete(d, d.Status) {
		if err := c.cleanup(d, old); err != nil {
			return err
		}
	}
	return c.syncStatus(d, all, newRS)
}

// scaleDownOld is reconcileOldReplicaSets, with what it calls. As in the original, errors of single writes are dropped: the controller
// tries again with the next event, or when the deadline has passed.
func (c *deploymentController) scaleDownOld(d *apps.Deployment, old []*apps.ReplicaSet, newRS *apps.ReplicaSet) bool {
	minimum := apps.Desired(d) - d.MaxUnavailable()
	allowed := sumReplicas(together(old, newRS)) - minimum - (apps.Replicas(newRS) - newRS.Status.AvailableReplicas)
	old = active(old, nil)
	if len(old) == 0 || allowed <= 0 {
		return false
	}
	unhealthy := func(rs *apps.ReplicaSet) int32 { return apps.Replicas(rs) - rs.Status.AvailableReplicas }
	cleaned, err := c.lower(d, old, allowed, unhealthy)
	if err != nil {
		return false
	}
	budget := newRS.Status.AvailableReplicas - minimum
	for _, rs := range old {
		budget += rs.Status.AvailableReplicas
	}
	lowered, err := c.lower(d, old, budget, apps.Replicas)
	return err == nil && cleaned+lowered > 0
}

// lower lowers the oldest by at most so many, each by at most what is said. It replaces those that it has lowered.
func (c *deploymentController) lower(
	d *apps.Deployment, sets []*apps.ReplicaSet, most int32, by func(*apps.ReplicaSet) int32,
) (int32, error) {
	lowered := int32(0)
	for i, rs := range sets {
		take := min(most-lowered, by(rs))
		switch {
		case lowered >= most:
			return lowered, nil
		case take < 0 && apps.Replicas(rs) > 0:
			return lowered, errors.New("invalid request to scale down")
		case take == 0 || apps.Replicas(rs) == 0:
			continue
		}
		written, _, err := c.scaleTo(d, rs, apps.Replicas(rs)-take, false)
		if err != nil {
			return lowered, err
		}
		sets[i], lowered = written, lowered+take
	}
	return lowered, nil
}

// recreate is rolloutRecreate.
func (c *deploymentController) recreate(d *apps.Deployment, sets []*apps.ReplicaSet) error {
	newRS, old, err := c.split(d, sets, false)
	if err != nil {
		return err
	}
	scaled, err := c.scaleAllTo(d, active(old, nil), 0)
	switch {
	case err != nil:
		return err
	case scaled, c.oldPodsRun(old):
		return c.syncStatus(d, sets, newRS)
	case newRS == nil:
		if newRS, old, err = c.split(d, sets, true); err != nil {
			return err
		}
	}
	if _, _, err := c.scaleTo(d, newRS, apps.Desired(d), false); err != nil {
		return err
	}
	if statusComplete(d, d.Status) {
		if err := c.cleanup(d, old); err != nil {
			return err
		}
	}
	return c.syncStatus(d, together(old, newRS), newRS)
}

// oldPodsRun is oldPodsRunning.
func (c *deploymentController) oldPodsRun(old []*apps.ReplicaSet) bool {
	for _, rs := range old {
		for _, pod := range c.pods.list() {
			if metav1.IsControlledBy(pod, rs) && !readiness.Terminal(pod) {
				return true
			}
		}
		if rs.Status.Replicas > 0 {
			return true
		}
	}
	return false
}

// cleanup is cleanupDeployment.
func (c *deploymentController) cleanup(d *apps.Deployment, old []*apps.ReplicaSet) error {
	old = slices.Clone(old)
	slices.SortStableFunc(old, func(a, b *apps.ReplicaSet) int { return cmp.Compare(numberOf(a), numberOf(b)) })
	excess := len(old) - int(*d.Spec.RevisionHistoryLimit)
	for _, rs := range old[:max(0, excess)] {
		if rs.Status.Replicas == 0 && apps.Replicas(rs) == 0 && rs.Generation <= rs.Status.ObservedGeneration {
			_ = c.deleteReplicaSet(rs.Name) // NotFound is no error
		}
	}
	return nil
}

// deleteReplicaSet is a DELETE by the Deployment controller, of any stored version. It is held while pods move to the ReplicaSet.
func (w *world) deleteReplicaSet(name string) error {
	rs, found := w.sets.objects[name]
	switch {
	case !found:
		return errNotFound
	case w.markHolds(rs):
		w.logf("denied: clean up %s", name)
		return errNotFound
	}
	w.logf("native: clean up %s", name)
	remove(w, w.sets, name)
	w.collectGarbage()
	return nil
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

// replicaSetController is pkg/controller/replicaset: two watches, expectations, and a cache that must have its own status writes.
type replicaSetController struct {
	*world
	sets  *informer[*apps.ReplicaSet]
	pods  *informer[*corev1.Pod]
	state map[string]*replicaSetState
}

// consistent is the feature StaleControllerConsistencyReplicaSet, as from Kubernetes 1.36 on.
var consistent = true

type replicaSetState struct {
	dirty     bool
	due       time.Time
	creations int
	// refused says that a creation failed.
	refused   bool
	deletions map[string]bool
	// expired is when unmet expectations are dropped: after five minutes. Only an event has the controller look then.
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

func (c *replicaSetController) resync() {
	for _, state := range c.state {
		state.dirty = true
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
	if version, _ := strconv.ParseInt(rs.ResourceVersion, 10, 64); consistent && version < state.wrote {
		return errors.New("cache older than the controller's own write")
	}
	var active []*corev1.Pod
	for _, pod := range c.pods.list() {
		if metav1.IsControlledBy(pod, rs) && readiness.Live(pod) {
			active = append(active, pod)
		}
	}
	state.refused = false
	if c.now.After(state.expired) || state.creations == 0 && len(state.deletions) == 0 {
		clear(state.deletions)
		state.creations, state.expired = 0, c.now.Add(5*time.Minute)
		c.manage(rs, active, state)
	}
	return c.writeStatus(rs, active, state)
}

func (c *replicaSetController) manage(rs *apps.ReplicaSet, active []*corev1.Pod, state *replicaSetState) {
	excess := len(active) - int(apps.Replicas(rs))
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
