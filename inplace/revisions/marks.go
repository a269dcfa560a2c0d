package revisions

import (
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// NudgeUnretriedEvery is how often a native controller is nudged whose update fell back, and that may not try twice, as the DaemonSet
// controller after NotFound. Those that retry what was refused are nudged every RenewEvery: the Deployment controller drops a key after 15
// failures, about 164 s, and would look again only after hours.
const NudgeUnretriedEvery = 10 * time.Second

// Undoes reports whether an edit to that revision takes back an update in progress: pods had the revision when the update began. All are
// the workload's revisions.
func Undoes[R metav1.Object](revision R, all []R) bool {
	mark := revision.GetLabels()[inplace.LabelCurrent]
	return slices.ContainsFunc(all, func(each R) bool { return IsCurrent(mark, each.GetLabels()[inplace.LabelUpdating]) })
}

// Nudged reports whether a nudge of the native controller may be left on the revision.
func Nudged[R metav1.Object](revision R) bool {
	return revision.GetLabels()[inplace.LabelRenewed] != ""
}

// WhyNudge is the description of a step whose only purpose is to nudge.
const WhyNudge = "nudge the native controller"

// Nudge returns the operations that nudge the native controller. They always write another value: the same value again is no event, so the
// native controller would not look. Two managers may nudge at shutdown in one second, and between the two a webhook of the second manager
// has refused the write that the first nudge caused.
func Nudge(labels map[string]string, now time.Time) []jsonpatch.Operation {
	at := inplace.FormatTime(now)
	if labels[inplace.LabelRenewed] == at {
		at = inplace.FormatTime(now.Add(time.Second))
	}
	return patches.SetEntries("labels", labels, [2]string{inplace.LabelRenewed, at})
}

// Updating reports whether a revision is marked as part of an update in progress. The pods of such a ReplicaSet are being moved, so Stayput
// holds its controller's deletions.
func Updating[R metav1.Object](revision R) bool {
	value := revision.GetLabels()[inplace.LabelUpdating]
	return value != "" && !strings.HasSuffix(value, Scaling)
}

// Scaling is the suffix of LabelUpdating while Stayput corrects replicas in the middle of an update. Surplus pods may be deleted then. The
// label still shows that Stayput makes the update.
const Scaling = ".scaling"

// IsCurrent reports whether pods had the revision when the update in progress began. Mark is the revision's LabelCurrent, updating is its
// LabelUpdating as it is to become. A mark of another update is left over and does not count.
func IsCurrent(mark, updating string) bool {
	return mark != "" && mark == strings.TrimSuffix(updating, Scaling)
}

// Marked reports whether the revision has one of Stayput's marks.
func Marked[R metav1.Object](revision R) bool {
	return slices.ContainsFunc(inplace.Marks, func(key string) bool { return revision.GetLabels()[key] != "" })
}
