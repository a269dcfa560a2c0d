package inplace

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Records are the releases on record: annotations of the Lease, one for each workload, by UID. The value is the time in Unix seconds and
// the hash of the template.
type Records map[string]string

const (
	recordPrefix = "released.stayput.dev/"
	// maxRecords keeps them well within the 256 KiB that annotations may have; the oldest give way.
	maxRecords = 1000
)

// Of is the hash of the template whose update was given back; empty if none was.
func (r Records) Of(workload types.UID) string {
	_, hash, _ := strings.Cut(r[recordPrefix+string(workload)], " ")
	return hash
}

// Add puts a release on record.
func (r Records) Add(workload types.UID, hash string, now time.Time) {
	r[recordPrefix+string(workload)] = seconds(now) + " " + hash
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

// recorded tells whether an update that ends for the reason goes on record.
func (r Reason) recorded() bool { return r.Code == CodeRefused || r.Code == CodeFailing }

// record records a release.
func (d *draft) record(workload metav1.Object, hash string, why Reason) {
	if why.recorded() {
		d.step(RecordRelease{Workload: workload, Hash: hash})
		d.again(recordLook)
	}
}

// forgetRecord forgets a release that is about another template, or over.
func (d *draft) forgetRecord(workload metav1.Object, recorded string, goesOn bool) {
	if recorded != "" && !goesOn {
		d.step(ForgetRelease{Workload: workload})
	}
}

// keepRecord wakes the Deployment controller, as long as there is something left to do for it, where it is not woken by a label: by a
// time in the status that means nothing to anybody.
func (v *view) keepRecord(left bool) {
	v.forgetRecord(v.Deployment, v.Recorded, left && v.onRecord())
	available := deploymentCondition(v.Deployment.Status, appsv1.DeploymentAvailable)
	if !left || !v.onRecord() || v.target != nil && Released(v.target.rs) || available == nil {
		return
	}
	due, wait := since(available.LastUpdateTime.Time, touchEvery, v.Now)
	v.again(wait)
	if due {
		v.touchStatus()
	}
}

func (v *view) touchStatus() {
	status := *v.Deployment.Status.DeepCopy()
	for i := range status.Conditions {
		if status.Conditions[i].Type == appsv1.DeploymentAvailable {
			status.Conditions[i].LastUpdateTime = metav1.NewTime(v.Now)
		}
	}
	v.step(PatchStatus{Deployment: v.Deployment, Status: status, Operations: guarded(v.Deployment, statusOperations(v.Deployment.Status, status)...)})
	v.again(touchEvery)
}

// keepRecord does the same for a DaemonSet, whose controller follows its pods: updatePod in pkg/controller/daemon/daemon_controller.go.
func (v *daemonView) keepRecord() {
	left := v.unfinished()
	v.forgetRecord(v.DaemonSet, v.Recorded, left && v.onRecord())
	if !left || !v.onRecord() || v.target != nil && Released(v.target) {
		return
	}
	pods := slices.Collect(v.pending())
	woken := func(m *daemon) string { return m.pod.Annotations[AnnotationWoken] }
	last := slices.MaxFunc(pods, func(a, b *daemon) int { return timeOf(woken(a)).Compare(timeOf(woken(b))) })
	if value := v.touched(woken(last), true, touchDaemonEvery, v.Now); value != woken(last) {
		v.step(last.annotated(whyWake, [2]string{AnnotationWoken, value}))
	}
}
