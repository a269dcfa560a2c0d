package controllerrevisions

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// UpdateRevision returns the ControllerRevision with the workload's template. If there are several, it returns the newest, as natively:
// constructHistory and dedupCurHistories in pkg/controller/daemon/update.go, getStatefulSetRevisions in
// pkg/controller/statefulset/stateful_set_control.go. It returns nil as long as the native controller has created none. A revision for
// which pods get no label is not the controller's.
func (r Rollout) UpdateRevision() *apps.ControllerRevision {
	newestFirst := slices.SortedFunc(slices.Values(r.Revisions), func(a, b *apps.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), strings.Compare(a.Name, b.Name))
	})
	template := r.Kind.Workload().Template
	for _, revision := range newestFirst {
		if r.Kind.PodLabel(revision) != "" && revision.IsOf(template) {
			return revision
		}
	}
	return nil
}

// owned are the revisions that the workload controls.
type owned []*apps.ControllerRevision

// began returns the mark of the update in progress; empty if none is. An edit in the middle of an update, or an undo, does not start
// another update.
func (all owned) began() string {
	for _, each := range all {
		if revisions.Updating(each) {
			return each.Labels[inplace.LabelUpdating]
		}
	}
	return ""
}

// notes reports whether it is noted which revisions pods had when that update began.
func (all owned) notes(began string) bool {
	return slices.ContainsFunc(all, func(each *apps.ControllerRevision) bool {
		return revisions.IsCurrent(each.Labels[inplace.LabelCurrent], began)
	})
}

// isCurrent reports whether pods had the revision when the update began. If that is not noted for any revision, it reports true.
func (all owned) isCurrent(one *apps.ControllerRevision) bool {
	began := all.began()
	return revisions.IsCurrent(one.Labels[inplace.LabelCurrent], began) || !all.notes(began)
}

// revision is a ControllerRevision with its decoded template.
type revision struct {
	object     *apps.ControllerRevision
	containers []corev1.Container
	// change is the change from its template to the workload's.
	change edit.Change
}

// reader reads the revisions of pods, each once.
type reader struct {
	owned
	kind   Kind
	wanted apps.Template
	rules  inplace.Rules
	read   map[string]*revision
}

// of finds the pod's revision by its label, or by its mark if the pod is partially patched; nil if the revision is gone.
func (r reader) of(pod *corev1.Pod) *revision {
	hash := pod.Labels[inplace.LabelRevisionHash]
	if podstate.HasPartialHash(pod) {
		hash = readiness.MoveOf(pod).Hash
	}
	found, known := r.read[hash]
	if !known {
		found = r.find(hash)
		r.read[hash] = found
	}
	return found
}

func (r reader) find(hash string) *revision {
	for _, each := range r.owned {
		if hash == "" || r.kind.PodLabel(each) != hash {
			continue
		}
		template, err := each.Template()
		if err != nil {
			return nil // a template that does not decode counts as gone
		}
		return &revision{object: each, containers: edit.Living(&template.Decoded().Spec),
			change: r.kind.ReachingPods(edit.Compare(template, r.wanted, r.rules))}
	}
	return nil
}
