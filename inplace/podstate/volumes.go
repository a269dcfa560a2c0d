package podstate

import (
	"strings"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// A kubelet has the volumes of ConfigMaps and Secrets written anew with each sync of their pod, but does not wait for that before it starts
// containers (WaitForAttachAndMount in pkg/kubelet/volumemanager/volume_manager.go asks whether volumes are mounted, and those were). So one that
// stops quickly would start with what was there before, and with a subPath keep it. Any other annotation has the kubelet sync.

// freshIn is how long after that volumes are taken to be as new as can be: several times what their two loops take, a tenth of a second each.
const freshIn = time.Second

// freshFor is how long what a pod was told holds. One whose turn was put off meanwhile is told again: what its volumes are of may have changed.
const freshFor = time.Minute

// VolumesFresh reports whether the pod may have its turn, as far as its volumes are concerned; if not, with the step that has its kubelet write them
// anew, or when to look again.
func (s *State) VolumesFresh(d *steps.PlanBuilder, now time.Time) bool {
	if !s.Containers.Renew() {
		return true
	}
	value, hash, _ := strings.Cut(s.Pod.Annotations[inplace.AnnotationRestarts], "-")
	at := times.TimeOf(value)
	if expired, _ := times.Since(at, freshFor, now); expired || hash != s.UpdateHash {
		d.Step(s.Annotated("its volumes are written anew before it restarts", [2]string{inplace.AnnotationRestarts, times.Seconds(now) + "-" + s.UpdateHash}))
		return false
	}
	over, wait := times.Since(at.Add(time.Second), freshIn, now) // the label has no fractions
	d.Again(wait)
	return over
}
