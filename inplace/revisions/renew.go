package revisions

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// A hold must not outlast the work of the leader on the update. It is not enough that a leader runs: it may never come to a workload, or it
// may not be allowed to write to it. So the leader renews the mark on the revisions of every update in progress, and a hold without a
// recent renewal expires.
//
// Each renewal also nudges the native controller. The Deployment controller tries again after 41 and after 82 s, and then gives up
// (handleErr in pkg/controller/deployment/deployment_controller.go, where each renewal counts as a try). So with a renewal just after 41 s,
// a try is to come at nearly all moments, even if all managers are killed while an update waits for something: see webhook/retries.go. The
// DaemonSet controller goes on with its next event.
const (
	// RenewEvery is how often the leader renews them.
	RenewEvery = 42 * time.Second
	// HoldDuration is more than three renewals.
	HoldDuration = 150 * time.Second
)

// HoldExpired is the reason why nothing is held where HoldLasts reports false.
var HoldExpired = inplace.Reason{Code: inplace.CodeHoldExpired, Message: "the leader has not renewed the hold lately"}

// HeldBy returns the revision by whose labels the hold on an update lasts: the update revision or, until the leader has marked that,
// another one of the workload whose mark it renews. An edit in the middle of an update takes no mark away, and the native controller may
// create the next revision late.
func HeldBy[R interface {
	comparable
	metav1.Object
}](update R, all []R, now time.Time) R {
	var none R
	if update != none && Started(update.GetLabels()) {
		return update
	}
	for _, each := range all {
		if Started(each.GetLabels()) && Renewed(each.GetLabels(), now) {
			return each
		}
	}
	return update
}

// HoldLasts reports whether writes of an update may still be held: the leader renews the hold, or can still be expected to start. The
// labels are those of the revision that HeldBy returns, or of another marked one. Held is the time from which on the caller has held writes
// of this very update: these are held for inplace.LeaderPatience while the leader has not marked it.
func HoldLasts(labels map[string]string, held, now time.Time) bool {
	if Started(labels) {
		return Renewed(labels, now)
	}
	return now.Sub(held) < inplace.LeaderPatience
}

// Started reports whether the leader has marked the revision with those labels as updating.
func Started(labels map[string]string) bool {
	return !StartedAt(labels[inplace.LabelUpdating]).IsZero()
}

// RevisionNumber returns the number that a native controller gives a revision. It gives a higher number each time the revision becomes the
// update revision.
func RevisionNumber(revision metav1.Object) string {
	if daemons, is := revision.(*apps.ControllerRevision); is {
		return strconv.FormatInt(daemons.Revision, 10)
	}
	return revision.GetAnnotations()[inplace.AnnotationRevision]
}

// Renewed reports whether the leader has renewed the hold recently. A time in the future is no renewal.
func Renewed(labels map[string]string, now time.Time) bool {
	age := now.Sub(RenewedAt(labels))
	return -RenewEvery < age && age < HoldDuration
}

// Expiry reports whether the mark no longer holds anything. If it still does, Expiry returns when it expires unless the leader renews it.
func Expiry(labels map[string]string, now time.Time) (bool, time.Duration) {
	_, wait := inplace.Since(RenewedAt(labels), HoldDuration, now)
	return !Renewed(labels, now), wait
}

// RenewedAt returns when the leader last renewed the hold, zero if never.
func RenewedAt(labels map[string]string) time.Time {
	begun, nudged := StartedAt(labels[inplace.LabelUpdating]), inplace.ParseTime(labels[inplace.LabelRenewed])
	if begun.IsZero() || nudged.Before(begun) {
		return begun
	}
	return nudged
}

// StartedAt returns the time in a value of LabelUpdating.
func StartedAt(updating string) time.Time {
	return inplace.ParseTime(strings.TrimSuffix(updating, Scaling))
}
