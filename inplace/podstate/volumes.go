package podstate

import (
	"strings"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/steps"
)

// A kubelet writes the volumes of ConfigMaps and Secrets anew with each sync of their pod, but does not wait for that before it starts
// containers. (WaitForAttachAndMount in pkg/kubelet/volumemanager/volume_manager.go asks whether volumes are mounted, and these were.) So a
// container that stops quickly would start with the old content, and with a subPath it would keep it. Any change of an annotation makes the
// kubelet sync the pod.

// freshFor is how long the annotation stays valid. A pod whose turn was put off for longer is annotated again: the ConfigMaps and Secrets
// may have changed.
const freshFor = time.Minute

// VolumesFresh reports whether the pod's volumes allow it to have its turn. If they do not, it adds the step that makes the kubelet write
// the volumes anew, or sets when to look again.
func (s *Work) VolumesFresh(d *steps.PlanBuilder, now time.Time) bool {
	if !s.Containers.RestartsOnly() {
		return true
	}
	value, hash, _ := strings.Cut(s.Pod.Annotations[inplace.AnnotationRestarts], "-")
	at := inplace.ParseTime(value)
	if expired, _ := inplace.Since(at, freshFor, now); expired || hash != s.UpdateHash {
		d.Step(s.Annotated("its volumes are written anew before it restarts",
			[2]string{inplace.AnnotationRestarts, inplace.FormatTime(now) + "-" + s.UpdateHash}))
		return false
	}
	// The value is in whole seconds. So a second is left at least, several times what the kubelet's two loops take, a tenth of a second each.
	over, wait := inplace.Since(at, inplace.LookAgain, now)
	d.Again(wait)
	return over
}
