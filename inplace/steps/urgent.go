package steps

import (
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
)

// Urgent reports whether the step may not wait for other writes: it lets a pod serve again, or it ends or renews a hold.
func Urgent(step Step) bool {
	switch s := step.(type) {
	case PersistFallback:
		return true
	case SetReady:
		return !s.Out
	case PatchReplicaSet:
		return slices.ContainsFunc(s.Operations, endsOrRenewsHold)
	case PatchRevision:
		return slices.ContainsFunc(s.Operations, endsOrRenewsHold)
	}
	return false
}

// endsOrRenewsHold reports whether the operation renews a hold, removes its mark, or lets the native controller scale although it lasts.
func endsOrRenewsHold(o jsonpatch.Operation) bool {
	switch o.Path {
	case patches.Pointer("metadata", "labels", inplace.LabelRenewed):
		return true
	case patches.Pointer("metadata", "labels", inplace.LabelUpdating):
		mark, _ := o.Value.(string)
		return o.Operation == "remove" || strings.HasSuffix(mark, revisions.Scaling)
	}
	return false
}
