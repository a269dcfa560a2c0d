package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Count is how many pods a phase may create or delete.
type Count struct{ min, max int }

func exactly(n int) Count { return Count{n, n} }
func atLeast(n int) Count { return Count{n, math.MaxInt} }

var (
	none      = exactly(0)
	some      = atLeast(1)
	anyNumber = atLeast(0)
)

// Rules are the checks that may differ between phases. All other checks of the judge always apply.
type Rules struct {
	// Of names the workload of the rules. If it is empty, the rules are about all workloads of the namespace, taken together.
	Of               string
	Created, Deleted Count
	// UpdatesOnly forbids that pods change their ReplicaSet or revision, except the pods of this Deployment.
	UpdatesOnly string
	// Orphans permits pods and pre-pull pods without an owner.
	Orphans bool
	// Outage permits more unavailable pods than maxUnavailable, because the scenario itself makes pods unavailable.
	Outage bool
	// Spare permits so many more, where no manager answers. A pod is Ready again then until its old container has stopped for the patch, and
	// a native controller may take the next one meanwhile.
	Spare int
	// AllAvailable forbids any unavailable pod, whatever maxUnavailable says, and more pods than maxSurge allows. Workloads with surge
	// "false" are exempt.
	AllAvailable bool
}

var (
	inPlace   = Rules{Created: none, Deleted: none}
	recreated = Rules{Created: some, Deleted: some}
	anyChurn  = Rules{Created: anyNumber, Deleted: anyNumber}
	noUpdates = updatesOnly("none")
)

// of returns the same rules for one workload. The rules of the other workloads stay in force.
func (r Rules) of(name string) Rules {
	r.Of = name
	return r
}

// updatesOnly forbids that pods of other workloads than this Deployment are updated.
func updatesOnly(name string) Rules { return Rules{Created: none, Deleted: none, UpdatesOnly: name} }

// phase is a part of a test that begins at a resource version.
type phase struct {
	name             string
	rules            Rules
	from             uint64
	created, deleted []string
	peak             int           // most pods unavailable at a time
	lag              time.Duration // longest time for which the status of a StatefulSet differed from the labels of its pods
}

func (p *phase) String() string {
	if p.rules.Of == "" {
		return strconv.Quote(p.name)
	}
	return fmt.Sprintf("%q of %s", p.name, p.rules.Of)
}

// unbounded reports whether any number of pods may be deleted, as where managers are killed.
func (p *phase) unbounded() bool { return p.rules.Deleted.max == math.MaxInt }

// judge processes the events in the order in which they happened.
type judge struct {
	world
	phases     []phase
	created    map[types.UID]*appsv1.ReplicaSet // as each was first seen
	born       map[types.UID]*corev1.Pod        // the same
	serving    map[types.UID]bool               // pods whose containers were last patched while the pod was in service
	written    map[types.UID]*appsv1.ControllerRevision
	counts     map[types.UID]map[int]bool // numbers of live pods that each place has had
	owners     map[types.UID]types.UID    // pod → place
	leaving    map[types.UID]bool
	served     map[types.UID]lastReady    // pod → when it was last Ready
	listed     map[string]map[string]bool // by workload, the containers that were ever auxiliary
	floor      map[types.UID]int          // available pods of each workload so far: scaling up does not raise it, available pods do
	differs    map[types.UID]time.Time    // StatefulSet → since when its status differs from the labels of its pods
	violations []string
}

// decided replays the events. It returns the phases with their counts, and the violations.
func decided(events []event, phases []phase) ([]phase, []string) {
	j := &judge{
		world:   newWorld(),
		phases:  phases,
		created: map[types.UID]*appsv1.ReplicaSet{},
		born:    map[types.UID]*corev1.Pod{},
		serving: map[types.UID]bool{},
		written: map[types.UID]*appsv1.ControllerRevision{},
		counts:  map[types.UID]map[int]bool{},
		owners:  map[types.UID]types.UID{},
		leaving: map[types.UID]bool{},
		served:  map[types.UID]lastReady{},
		listed:  map[string]map[string]bool{},
		floor:   map[types.UID]int{},
		differs: map[types.UID]time.Time{},
	}
	for _, e := range events {
		j.observe(e)
	}
	j.outlived()
	for i := range j.phases {
		j.violations = append(j.violations, j.phases[i].numbers()...)
	}
	return j.phases, j.violations
}

func (j *judge) observe(e event) {
	before, revisionBefore, podBefore := j.sets[e.object.GetUID()], j.revisions[e.object.GetUID()], j.pods[e.object.GetUID()]
	j.apply(e)
	switch object := e.object.(type) {
	case *corev1.Pod:
		if pulls(object) {
			j.prePullPod(e, object)
			return
		}
		j.serves(e, object)
		j.restarts(e, podBefore, object)
		j.churn(e, object)
		j.surge(e, object)
		j.agreement(e, object)
		j.daemonAgreement(e, object)
		j.memberAgreement(e, object)
		j.count(object)
		j.outage(e, j.deploymentOf(object))
		j.daemonOutage(e, j.daemonSetOf(object))
		j.memberOutage(e, j.statefulSetOf(object))
		j.memberCounts(e, j.statefulSetOf(object))
	case *appsv1.ReplicaSet:
		j.untouched(e, before, object)
	case *appsv1.Deployment:
		j.lists(object)
		j.spec(e, object)
		j.status(e, object)
		j.outage(e, j.deployments[object.UID])
	case *appsv1.ControllerRevision:
		j.unrevised(e, revisionBefore, object)
	case *appsv1.DaemonSet:
		j.lists(object)
		j.spec(e, object)
		j.daemonStatus(e, object)
		j.daemonOutage(e, j.daemonSets[object.UID])
	case *appsv1.StatefulSet:
		j.lists(object)
		j.spec(e, object)
		j.memberStatus(e, object)
		j.memberOutage(e, j.statefulSets[object.UID])
		j.memberCounts(e, j.statefulSets[object.UID])
	}
}

// phaseAt returns the newest phase of the workload at this version.
func (j *judge) phaseAt(version uint64, workload string) *phase {
	for i := len(j.phases) - 1; i > 0; i-- {
		if of := j.phases[i].rules.Of; version > j.phases[i].from && (of == "" || of == workload) {
			return &j.phases[i]
		}
	}
	return &j.phases[0]
}

func (j *judge) violation(e event, format string, arguments ...any) {
	j.violations = append(j.violations, fmt.Sprintf("%d %s %s: %s",
		e.version, kindOf(e.object), e.object.GetName(), fmt.Sprintf(format, arguments...)))
}

// churn counts creations and deletions. A pod counts as deleted from the first moment at which it is terminating.
func (j *judge) churn(e event, pod *corev1.Pod) {
	in := j.phaseAt(e.version, j.workloadOf(pod))
	if e.what == watch.Added {
		in.created = append(in.created, pod.Name)
	}
	if gone := e.what == watch.Deleted || pod.DeletionTimestamp != nil; gone && !j.leaving[pod.UID] {
		j.leaving[pod.UID] = true
		in.deleted = append(in.deleted, pod.Name)
	}
}

// numbers compares the counts of a phase with its rules.
func (p *phase) numbers() []string {
	var wrong []string
	if n := len(p.created); n < p.rules.Created.min || n > p.rules.Created.max {
		wrong = append(wrong, fmt.Sprintf("phase %s created %d pods, not %s: %s", p, n, p.rules.Created, names(p.created)))
	}
	if n := len(p.deleted); n < p.rules.Deleted.min || n > p.rules.Deleted.max {
		wrong = append(wrong, fmt.Sprintf("phase %s deleted %d pods, not %s: %s", p, n, p.rules.Deleted, names(p.deleted)))
	}
	return wrong
}

func (c Count) String() string {
	switch {
	case c.min == c.max:
		return fmt.Sprint(c.min)
	case c.max == math.MaxInt:
		return fmt.Sprintf("at least %d", c.min)
	}
	return fmt.Sprintf("%d to %d", c.min, c.max)
}

func names(all []string) string { return strings.Join(all, " ") }

// restarts checks that containers stop for an update only in a pod that is out of service. Auxiliary containers may stop in one that
// serves, and so may those of a pod that a Service offers: it may be the last endpoint.
func (j *judge) restarts(e event, before, pod *corev1.Pod) {
	if before == nil {
		j.born[pod.UID] = pod
		return
	}
	was, is := imagesOf(before.Spec), imagesOf(pod.Spec)
	if maps.Equal(was, is) {
		return
	}
	awaited := !maps.Equal(imagesOf(j.awaited(before, before.Spec)), imagesOf(j.awaited(pod, pod.Spec)))
	if awaited && ready(before) && !j.partial(before) && !j.offers(pod) {
		j.violation(e, "has images %v instead of %v, and was in service", is, was)
	}
	j.serving[pod.UID] = !isOut(before) && (ready(before) || j.serving[pod.UID])
}

// partial reports whether the pod was patched while it served, and gets its owner or its hash when its containers have restarted. Until
// then its mark says what it had, or it has the hash of no revision.
func (j *judge) partial(pod *corev1.Pod) bool {
	return j.serving[pod.UID] &&
		(strings.Contains(pod.Annotations[moveAnnotation], `"back":`) || pod.Labels[daemonHashLabel] == inBetween)
}

// notesResize reports whether the mark of the pod says that it gets other CPU and memory first.
func notesResize(pod *corev1.Pod) bool {
	return strings.Contains(pod.Annotations[moveAnnotation], `"resize":`)
}

// asCreated reports whether the pod has had no update: it is where it was created, with the images that admission gave it then.
func (j *judge) asCreated(pod *corev1.Pod) bool {
	born := j.born[pod.UID]
	return placeOf(born) == placeOf(pod) && maps.Equal(imagesOf(born.Spec), imagesOf(pod.Spec))
}

// agreement checks that owner, hash label and spec of a live pod agree. If the pod is partially patched, its images may be ahead of its
// owner's. So may be labels that variables of these containers read.
func (j *judge) agreement(e event, pod *corev1.Pod) {
	if e.what == watch.Deleted || !alive(pod) {
		return
	}
	if metav1.GetControllerOf(pod) == nil {
		if !j.phaseAt(e.version, j.workloadOf(pod)).rules.Orphans {
			j.violation(e, "has no owner")
		}
		return
	}
	set := j.ownerOf(pod)
	if set == nil {
		return // garbage collection deletes owners first
	}
	j.hasLabels(e, pod, "under "+set.Name, set.Spec.Template)
	if template := set.Spec.Template.Spec; !j.asCreated(pod) && !j.partial(pod) && !hasImages(pod, j.awaited(pod, template)) {
		j.violation(e, "is under %s, but has images %v instead of %v", set.Name, imagesOf(pod.Spec), imagesOf(template))
	}
	j.arrival(e, pod, set.Name, set.Spec.Template.Spec)
	j.frozen(e, pod, set)
}

// hasLabels checks that the pod has the labels of the template.
func (j *judge) hasLabels(e event, pod *corev1.Pod, place string, template corev1.PodTemplateSpec) {
	for key, value := range template.Labels {
		if pod.Labels[key] != value && !readsEarly(pod, key) {
			j.violation(e, "is %s, but its label %s is %q instead of %q", place, key, pod.Labels[key], value)
		}
	}
}

// readsEarly reports whether the mark of the pod says that its containers have read the label already.
func readsEarly(pod *corev1.Pod, key string) bool {
	_, read, _ := strings.Cut(pod.Annotations[moveAnnotation], `"read":{"labels":[`)
	labels, _, _ := strings.Cut(read, "]")
	return strings.Contains(labels, strconv.Quote(key))
}

func (j *judge) frozen(e event, pod *corev1.Pod, set *appsv1.ReplicaSet) {
	exempt, before := j.phaseAt(e.version, j.workloadOf(pod)).rules.UpdatesOnly, j.owners[pod.UID]
	if exempt == "" || before == "" || before == set.UID {
		return
	}
	if d := j.deploymentOf(pod); d != nil && d.Name != exempt {
		j.violation(e, "moved to %s, although nothing may move", set.Name)
	}
}

// count records how many live pods the pod's old and new places have now.
func (j *judge) count(pod *corev1.Pod) {
	previous := j.owners[pod.UID]
	if place := placeOf(pod); place != "" {
		j.owners[pod.UID] = place
	}
	for _, place := range []types.UID{previous, j.owners[pod.UID]} {
		j.note(place)
	}
}

func (j *judge) note(place types.UID) {
	if j.counts[place] == nil {
		j.counts[place] = map[int]bool{0: true}
	}
	j.counts[place][j.livePods(place)] = true
	if isDaemonPlace(place) {
		j.counts[place][j.scheduledPods(place)] = true
	}
}

// untouched checks that a ReplicaSet keeps its template, selector and hash, and that its revision changes only as natively: to the highest.
func (j *judge) untouched(e event, before, set *appsv1.ReplicaSet) {
	j.note(set.UID)
	if before == nil {
		j.created[set.UID] = set
		return
	}
	created := j.created[set.UID]
	if !equality.Semantic.DeepEqual(created.Spec.Template, set.Spec.Template) {
		j.violation(e, "has another template than at creation")
	}
	if !equality.Semantic.DeepEqual(created.Spec.Selector, set.Spec.Selector) || created.Labels[hashLabel] != set.Labels[hashLabel] {
		j.violation(e, "has another selector or hash than at creation")
	}
	if revisionOf(before) != revisionOf(set) && revisionOf(set) <= j.highestRevision(set) {
		j.violation(e, "went from revision %d to %d, not to the highest", revisionOf(before), revisionOf(set))
	}
}

// highestRevision returns the highest revision of the other ReplicaSets of the same Deployment.
func (j *judge) highestRevision(than *appsv1.ReplicaSet) int64 {
	highest := int64(0)
	for _, set := range j.sets {
		if of := metav1.GetControllerOf(than); set.UID != than.UID && of != nil && metav1.IsControlledBy(set, &metav1.ObjectMeta{UID: of.UID}) {
			highest = max(highest, revisionOf(set))
		}
	}
	return highest
}

// besideUsers are programs that write specs, or revisions of their own, as users do.
var besideUsers = []string{"helm", "Reloader", "PrometheusOperator", "lws"}

// spec checks that only users own fields of a workload's spec.
func (j *judge) spec(e event, of metav1.Object) {
	for _, entry := range of.GetManagedFields() {
		byUser := strings.HasPrefix(entry.Manager, "kubectl") || strings.HasPrefix(entry.Manager, user) ||
			slices.Contains(besideUsers, entry.Manager)
		if !byUser && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			j.violation(e, "%s wrote its spec", entry.Manager)
		}
	}
}

// status checks that `kubectl rollout status` reports success only when the update is complete, and that updatedReplicas is a number that
// has been true.
func (j *judge) status(e event, d *appsv1.Deployment) {
	if e.what == watch.Deleted || d.DeletionTimestamp != nil || d.Status.ObservedGeneration < d.Generation {
		return
	}
	target := j.updateReplicaSet(d)
	if updated := int(d.Status.UpdatedReplicas); updated > 0 && (target == nil || !j.counts[target.UID][updated]) {
		j.violation(e, "says updatedReplicas %d, which has never been true", updated)
	}
	done, _ := rolledOut(d)
	if !done {
		return
	}
	pods, serving := j.podsOf(d), j.podCounts(d).done
	if len(pods) < int(replicasOf(d)) {
		j.violation(e, "says it is rolled out with %d live pods of %d", len(pods), replicasOf(d))
	}
	for _, pod := range pods {
		if j.uncounted(e, d, pod) {
			continue
		}
		surplus := serving >= int(replicasOf(d)) // a surge pod may be terminating
		if target == nil || !metav1.IsControlledBy(pod, target) || !j.hasServed(pod) && !surplus {
			j.violation(e, "says it is rolled out before pod %s is (%s), last Ready as %s", pod.Name, describePod(pod), j.served[pod.UID].life)
		}
	}
}

// lastReady is when a pod was Ready last, and with what life.
type lastReady struct {
	life string // lifeOf the pod
	last time.Time
}

func (j *judge) serves(e event, pod *corev1.Pod) {
	if ready(pod) {
		j.served[pod.UID] = lastReady{lifeOf(pod), e.at}
	}
}

// hasServed reports whether the pod has been Ready in its place, with its present containers. Natively, too, the status sums up earlier
// reports.
func (j *judge) hasServed(pod *corev1.Pod) bool { return j.served[pod.UID].life == lifeOf(pod) }

// wavering is how long a kubelet may report a pod as not Ready although nothing is wrong in it: it looks at its pods again each second.
const wavering = 1500 * time.Millisecond

// wavers reports whether the live pod's kubelet has just taken its Ready back, as it sometimes does in the report after the first: the loop
// that syncs a pod sets a status that it began to make before the probe succeeded (kubernetes#103717, UpdatePodStatus and SetPodStatus).
// The API does not show that before, so Stayput may take the next pod out of its Service in that moment. limits.md says so.
func (j *judge) wavers(e event, pod *corev1.Pod) bool {
	servedLately := j.hasServed(pod) && e.at.Sub(j.served[pod.UID].last) < wavering
	return servedLately && allRun(pod) && !isOut(pod)
}

// allRun reports whether none of the pod's containers has stopped.
func allRun(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running == nil })
}

// available returns those of the pods that are available at the event, or waver.
func (j *judge) available(e event, pods []*corev1.Pod, minReadySeconds int32) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return !available(pod, minReadySeconds, e.at) && !(minReadySeconds == 0 && j.wavers(e, pod))
	})
}

// lifeOf returns a pod's place and its containers.
func lifeOf(pod *corev1.Pod) string {
	return fmt.Sprint(placeOf(pod), imagesOf(pod.Spec), restartsOf(pod))
}

// uncounted reports whether the pod is a new one that an undone native rollout created and no longer wants, before its ReplicaSet has
// counted it. The Deployment controller sums the status of the ReplicaSets, and so reports a complete rollout meanwhile.
func (j *judge) uncounted(e event, d *appsv1.Deployment, pod *corev1.Pod) bool {
	set := j.ownerOf(pod)
	return set != nil && slices.Contains(j.phaseAt(e.version, called(d)).created, pod.Name) &&
		set.Spec.Replicas != nil && *set.Spec.Replicas == 0 && set.Status.Replicas == 0
}

// outage checks that no more pods are unavailable than maxUnavailable permits, relative to the pods that have been available.
func (j *judge) outage(e event, d *appsv1.Deployment) {
	if d != nil && d.DeletionTimestamp == nil {
		j.missing(e, d, int(replicasOf(d)), maxUnavailable(d), j.available(e, j.podsOf(d), d.Spec.MinReadySeconds))
	}
}

// missing checks how many of the pods that a workload should have are available.
func (j *judge) missing(e event, of metav1.Object, wanted, budget int, available []*corev1.Pod) {
	floor := min(wanted, max(j.floor[of.GetUID()], len(available)))
	j.floor[of.GetUID()] = floor
	in, missing := j.phaseAt(e.version, called(of)), floor-len(available)
	if in.rules.allAvailable(of) {
		budget = 0
	}
	in.peak = max(in.peak, missing)
	if most := budget + in.rules.Spare; !in.rules.Outage && missing > most {
		j.violation(e, "%d of %d pods are unavailable, %d may be", missing, floor, most)
	}
}
