package deployments

import (
	"maps"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// Undone returns the changes that restore settings in annotations to their values before an edit of the Deployment, if that edit is an undo
// to one of its ReplicaSets; none if it is not. An undo replaces all annotations with those of the revision (Undone), but settings are not
// part of a revision. The argument before has the Deployment's annotations before the edit.
func (r Rollout) Undone(before map[string]string) []patches.EntryChange {
	newRS := r.UpdateRevision()
	if newRS == nil || !maps.Equal(r.Deployment.Annotations, Undone(before, newRS.Annotations)) {
		return nil
	}
	var changed []patches.EntryChange
	for _, setting := range inplace.Annotations {
		was, had := before[setting.Key]
		if now, has := r.Deployment.Annotations[setting.Key]; had != has || was != now {
			changed = append(changed, patches.EntryChange{Key: setting.Key, Value: was, Removing: !had})
		}
	}
	return changed
}
