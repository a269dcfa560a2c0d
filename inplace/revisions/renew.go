package revisions

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/times"
)

// A hold must not outlive the interest of who carries the update out. That a leader lives is not enough: it may never come to a workload,
// or not be let to write to it. So it signs the revisions of every update under way, and a hold without a fresh signature lapses.
//
// Each signature also wakes the native controller. That of Deployments tries 15 times, the last time after 164 s, and not again before the next
// event: so if all managers are killed while an update waits for something, a try is still to come in most moments.
const (
	// RenewEvery is how often they are signed.
	RenewEvery = time.Minute
	// HoldDuration is shorter than those 164 s: at the last try nothing is held any more.
	HoldDuration = 150 * time.Second
	// StartWithin is how long writes may be held of an update that the leader has not signed yet.
	StartWithin = time.Minute
)

// HoldExpired is why nothing is held where HoldLasts says so.
var HoldExpired = inplace.Reason{Code: inplace.CodeHoldExpired, Message: "the leader has not renewed the hold lately"}

// HoldLasts reports whether writes of an update may go on being held: the leader tends it, or can still be expected to begin. The labels are
// those of its target, or of another revision that is marked. Held is since when the caller has held writes of this very update.
func HoldLasts(labels map[string]string, held, now time.Time) bool {
	if Started(labels) {
		return Renewed(labels, now)
	}
	return now.Sub(held) < StartWithin
}

// Started reports whether the leader has marked the revision with those labels.
func Started(labels map[string]string) bool {
	return !StartedAt(labels[inplace.LabelUpdating]).IsZero()
}

// RevisionNumber is the number that a native controller gives a revision, a higher one each time it becomes the target.
func RevisionNumber(revision metav1.Object) string {
	if daemons, is := revision.(*apps.ControllerRevision); is {
		return strconv.FormatInt(daemons.Revision, 10)
	}
	return revision.GetAnnotations()[inplace.AnnotationRevision]
}

// Renewed reports whether the leader has signed lately. A time that is still to come is nobody's signature.
func Renewed(labels map[string]string, now time.Time) bool {
	age := now.Sub(RenewedAt(labels))
	return -RenewEvery < age && age < HoldDuration
}

// Expiry reports whether the mark no longer holds anything; if not, when it will if nobody signs it.
func Expiry(labels map[string]string, now time.Time) (bool, time.Duration) {
	_, wait := times.Since(RenewedAt(labels), HoldDuration, now)
	return !Renewed(labels, now), wait
}

// RenewedAt is when the leader last signed, zero if never.
func RenewedAt(labels map[string]string) time.Time {
	begun, nudged := StartedAt(labels[inplace.LabelUpdating]), times.TimeOf(labels[inplace.LabelRenewed])
	if begun.IsZero() || nudged.Before(begun) {
		return begun
	}
	return nudged
}

// StartedAt reads the time from a value of LabelSettling.
func StartedAt(updating string) time.Time { return times.TimeOf(strings.TrimSuffix(updating, Scaling)) }
