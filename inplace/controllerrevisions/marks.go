package controllerrevisions

import (
	"cmp"
	"maps"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/steps"
)

// marks are the values of the labels that Stayput writes on a ControllerRevision; empty for no label.
type marks struct{ updating, renewed, current string }

// marking are the marks that the revisions are to have.
type marking map[*apps.ControllerRevision]*marks

// marking returns the marks that the revisions have, except renewals and nudges.
func (o *observed) marking() marking {
	marking := marking{}
	for _, each := range o.owned {
		marking[each] = &marks{updating: each.Labels[inplace.LabelUpdating], current: each.Labels[inplace.LabelCurrent]}
	}
	return marking
}

// begin marks the update revision: the update is in progress.
func (m marking) begin(o *observed) {
	began := cmp.Or(o.owned.began(), inplace.FormatTime(o.seen.Now))
	m.noteCurrent(o, began)
	signed := maps.Clone(o.updateRevision.Labels)
	signed[inplace.LabelUpdating] = began
	m[o.updateRevision].updating, m[o.updateRevision].renewed = began, o.update.Plan.NextRenewal(signed, o.seen.Now)
}

// renew renews the hold on the update revision of an update in progress: see revisions.HoldLasts.
func (m marking) renew(o *observed) {
	for each, marks := range m {
		if each != o.updateRevision {
			marks.updating = "" // only now: the time at which the update began must not be lost
		}
	}
	m.noteCurrent(o, o.updateRevision.Labels[inplace.LabelUpdating])
	m[o.updateRevision].renewed = o.update.Plan.NextRenewal(o.updateRevision.Labels, o.seen.Now)
}

// noteCurrent notes which revisions, besides the update revision, pods had when the update began, unless that is noted already. It takes
// extra writes, so it is done only where there is a partition, or a window that will close: an undo goes on after that. By then a pod may
// be partially patched; it has the update revision's hash in its mark already.
func (m marking) noteCurrent(o *observed, began string) {
	if o.seen.Settings.Partition == "" && o.seen.Settings.WindowChanges.IsZero() || o.owned.notes(began) {
		return
	}
	for _, marks := range m {
		marks.current = ""
	}
	for _, pod := range o.pending {
		if pod.revision != nil && pod.revision.object != o.updateRevision {
			m[pod.revision.object].current = began
		}
	}
}

// end removes the marks that other updates, or this one, have left.
func (m marking) end() {
	for _, marks := range m {
		marks.updating, marks.current = "", ""
	}
}

// write adds the steps that write the marks that change.
func (m marking) write(o *observed) {
	for _, each := range o.owned {
		operations := patches.SetEntries("labels", each.Labels, [2]string{inplace.LabelUpdating, m[each].updating},
			[2]string{inplace.LabelRenewed, m[each].renewed}, [2]string{inplace.LabelCurrent, m[each].current})
		if len(operations) > 0 {
			o.update.Plan.Step(steps.PatchRevision{Revision: each, Operations: patches.Guarded(each, operations...), Why: "marks"})
		}
	}
}
