package revisions

import (
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/times"
)

// How often a released target is touched. The Deployment controller drops a key after 15 failures, about 164 s, and would look again
// only after hours; the DaemonSet controller does not even try twice.
const (
	NudgeEvery          = time.Minute
	NudgeDaemonSetEvery = 10 * time.Second
)

// WhyNudge is what a step says that does nothing but wake.
const WhyNudge = "nudge the native controller"

// Nudge always writes another value: the same one again is no event, and so wakes nobody. Two managers may say their last words in one second,
// and between the two a webhook of the second has refused what the first had woken.
func Nudge(labels map[string]string, now time.Time) []jsonpatch.Operation {
	at := times.Seconds(now)
	if labels[inplace.LabelRenewed] == at {
		at = times.Seconds(now.Add(time.Second))
	}
	return patches.SetEntries("labels", labels, [2]string{inplace.LabelRenewed, at})
}

// Updating reports whether a revision is marked as part of an update under way. The pods of such a ReplicaSet are being moved, so
// that its controller's deletions are held.
func Updating[R metav1.Object](revision R) bool {
	value := revision.GetLabels()[inplace.LabelUpdating]
	return value != "" && !strings.HasSuffix(value, Scaling)
}

// Scaling is the suffix of LabelSettling while replicas are brought in order in the middle of an update: the pods that are too many
// may be deleted, and it still shows that the update is ours.
const Scaling = ".scaling"

// IsCurrent reports whether pods had the revision when the update that is under way began, by its mark and by what shall become of that. A mark of another
// update is left over.
func IsCurrent(mark, updating string) bool {
	return mark != "" && mark == strings.TrimSuffix(updating, Scaling)
}

// FellBack reports whether the update to that revision was given back to the native controller; a ReplicaSet may also stand in for one that
// does not exist yet.
func FellBack[R metav1.Object](revision R) bool {
	return revision.GetLabels()[inplace.LabelFallback] != ""
}

// StandsFor is what comes in LabelReleased before the hash of a target that did not exist when its update was given back.
const StandsFor = "."

// Marked reports whether the revision has a mark of ours.
func Marked[R metav1.Object](revision R) bool {
	return slices.ContainsFunc(inplace.Marks, func(key string) bool { return revision.GetLabels()[key] != "" })
}
