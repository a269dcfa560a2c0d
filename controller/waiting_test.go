package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
)

// closedWindow returns a maintenance window that is closed now, and for hours.
func closedWindow() string {
	at := func(hours int) string {
		return time.Now().UTC().Add(time.Duration(hours) * time.Hour).Format("15:00")
	}
	return at(4) + "-" + at(5)
}

// setWindow gives the Deployment that maintenance window.
func (c *cluster) setWindow(window string) {
	c.T.Helper()
	deployment := c.Snapshot().Read.Deployment
	metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, inplace.AnnotationMaintenanceWindow, window)
	c.do(c.Update(c.T.Context(), deployment))
}

// TestRefusedDryRunWhileAWindowIsClosed: pods are not replaced hours before the window. The hold is renewed, and an event says why.
func TestRefusedDryRunWhileAWindowIsClosed(t *testing.T) {
	h := newCluster(t).dryRunning(forbidden("policy signed"))
	h.setWindow(closedWindow())
	h.reconcileTimes(h.reconciler(nil), 6)
	if h.closed() > 0 || h.fellBack() || !h.begun() || h.asked != 1 {
		t.Errorf("%d gates are closed, fell back %v, begun %v, asked %d times", h.closed(), h.fellBack(), h.begun(), h.asked)
	}
	all := strings.Join(fixture.Told(h.Recorder), "\n")
	want := "Warning " + report.EventWaits + " The update waits for the maintenance window, which opens on "
	if strings.Count(all, want) != 1 ||
		!strings.Contains(all, "unless you edit the template again or undo it: no new pod is admitted: ") {
		t.Errorf("events are %s", all)
	}
}

// TestRefusalsAreForgotten: after a while it is tried again whether pods can be updated in place.
func TestRefusalsAreForgotten(t *testing.T) {
	h := newCluster(t).dryRunning(forbidden("policy signed"))
	h.setWindow(closedWindow())
	r := h.reconciler(nil)
	h.reconcileTimes(r, 3)
	remembered := r.memories.recall(fixture.Web)
	remembered.DryRun.At = remembered.DryRun.At.Add(-engine.RefusedFor - time.Second)
	h.reconcileTimes(r, 2)
	if h.asked != 2 {
		t.Errorf("it is asked %d times", h.asked)
	}
}
