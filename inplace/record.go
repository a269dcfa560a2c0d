package inplace

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Records are the releases on record: annotations of the Lease, one for each workload, by UID. The value is the time in Unix seconds, the
// hash of the template and the code of the reason.
type Records map[string]string

// Record is one of them; the zero Record is none.
type Record struct{ Hash, Code string }

// Unwritable tells whether the update was given back because our writes are not taken. Then a gate might never open.
func (r Record) Unwritable() bool { return r.Code == CodeRefused || r.Code == CodeFailing }

const (
	// recordPrefix begins the annotations of the Lease that keep on record which updates were given back; behind it stands the workload's UID.
	recordPrefix = "released.stayput.dev/"
	// maxRecords keeps them well within the 256 KiB that annotations may have; the oldest give way.
	maxRecords = 1000
)

// Of is the record of a workload.
func (r Records) Of(workload types.UID) Record {
	_, value, _ := strings.Cut(r[recordPrefix+string(workload)], " ")
	hash, code, _ := strings.Cut(value, " ")
	return Record{hash, code}
}

// Add puts a release on record.
func (r Records) Add(workload types.UID, record Record, now time.Time) {
	r[recordPrefix+string(workload)] = seconds(now) + " " + record.Hash + " " + record.Code
	records := slices.DeleteFunc(slices.Collect(maps.Keys(r)), func(key string) bool { return !strings.HasPrefix(key, recordPrefix) })
	slices.SortFunc(records, func(a, b string) int { return strings.Compare(r[a], r[b]) })
	for _, key := range records[:max(0, len(records)-maxRecords)] {
		delete(r, key)
	}
}

// Remove ends the record of a workload.
func (r Records) Remove(workload types.UID) { delete(r, recordPrefix+string(workload)) }

// recordLook is when to look at what the record has changed: the Lease wakes nobody.
const recordLook = time.Second

// recorded tells whether an update that ends for the reason goes on record. The record ends with us.
func (r Reason) recorded() bool { return r.Code != CodeUninstalled }

// record records a release.
func (d *draft) record(workload metav1.Object, hash string, why Reason) {
	if why.recorded() {
		d.step(RecordRelease{Workload: workload, Record: Record{Hash: hash, Code: why.Code}})
		d.again(recordLook)
	}
}

// forgetRecord forgets a release that is about another template, or over.
func (d *draft) forgetRecord(workload metav1.Object, recorded string, goesOn bool) {
	if recorded != "" && !goesOn {
		d.step(ForgetRelease{Workload: workload})
	}
}

// keepRecord wakes the Deployment controller, as long as there is something left to do for it, where a label does not: by a time in the status
// that means nothing to anybody.
func (v *view) keepRecord(left bool) {
	left = left && v.Mode.Manages() && v.onRecord()
	v.forgetRecord(v.Deployment, v.Recorded, left)
	if !left || v.target != nil && Released(v.target.rs) {
		return
	}
	available := deploymentCondition(v.Deployment.Status, appsv1.DeploymentAvailable)
	if available == nil {
		return
	}
	due, wait := since(available.LastUpdateTime.Time, touchEvery, v.Now)
	v.again(wait)
	if due {
		v.touchStatus()
	}
}

// wakeDeleters wakes the controllers of ReplicaSets with pods too many, by a pod, where a mark has kept them from deleting and no longer does
// although it could not be taken off: the update is on record, or nobody tends it any more.
func (v *view) wakeDeleters(left bool) {
	if !v.Mode.Manages() {
		return // nothing is held there, and nothing but marks may be written
	}
	recorded := left && v.onRecord()
	for _, s := range v.sets {
		lapsed, wait := lapse(s.rs.Labels, v.Now)
		switch {
		case s.surplus() == 0 || !recorded && !Settling(s.rs):
		case recorded || lapsed:
			v.wakeByPod(statesOf(s.pods), touchEvery, v.Now)
		default:
			v.again(wait)
		}
	}
}

// wakeByPod wakes whoever follows the pods, of which there is one at least.
func (d *draft) wakeByPod(pods iter.Seq[*podState], every time.Duration, now time.Time) {
	woken := func(s *podState) string { return s.pod.Annotations[AnnotationWoken] }
	last := slices.MaxFunc(slices.Collect(pods), func(a, b *podState) int { return timeOf(woken(a)).Compare(timeOf(woken(b))) })
	if value := d.touched(woken(last), true, every, now); value != woken(last) {
		d.step(last.annotated(whyWake, [2]string{AnnotationWoken, value}))
	}
}

// touchStatus writes another time into the condition Available, which there is.
func (v *view) touchStatus() {
	status := *v.Deployment.Status.DeepCopy()
	deploymentCondition(status, appsv1.DeploymentAvailable).LastUpdateTime = metav1.NewTime(v.Now)
	v.step(PatchStatus{Deployment: v.Deployment, Status: status, Operations: guarded(v.Deployment, statusOperations(v.Deployment.Status, status)...)})
	v.again(touchEvery)
}

// keepRecord does the same for a DaemonSet. Its controller follows its pods: updatePod in pkg/controller/daemon/daemon_controller.go.
func (v *daemonView) keepRecord() {
	left := v.unfinished() && v.Mode.Manages() && v.onRecord()
	v.forgetRecord(v.DaemonSet, v.Recorded, left)
	if !left || v.target != nil && Released(v.target) {
		return
	}
	v.wakeByPod(func(yield func(*podState) bool) {
		for m := range v.pending() {
			if !yield(&m.podState) {
				return
			}
		}
	}, touchDaemonEvery, v.Now)
}
