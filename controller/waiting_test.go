package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
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
	if h.out() > 0 || h.fellBack() || !h.begun() || h.asked != 1 {
		t.Errorf("%d pods are out of service, fell back %v, begun %v, asked %d times", h.out(), h.fellBack(), h.begun(), h.asked)
	}
	all := strings.Join(fixture.Told(h.Recorder), "\n")
	want := "Warning " + report.EventWaits + " The update waits for the maintenance window, which opens on "
	if strings.Count(all, want) != 1 ||
		!strings.Contains(all, "unless you edit the template again or undo it: no new pod is admitted: ") {
		t.Errorf("events are %s", all)
	}
}

// TestWhatIsRefusedInPlaceOnly: the API server refuses patches of pods. They are tried once, the pod is put back, and the hold is renewed.
func TestWhatIsRefusedInPlaceOnly(t *testing.T) {
	c := draining(t)
	namespace := c.namespace()
	namespace.Labels[inplace.LabelUpdate] = string(inplace.ModeInPlaceOnly)
	c.do(c.Update(t.Context(), namespace))
	refused := 0
	c.Refuse = func(object client.Object, patch string) error {
		if _, is := object.(*corev1.Pod); is && strings.Contains(patch, "/spec/") {
			refused++
			return apierrors.NewForbidden(corev1.Resource("pods"), object.GetName(), fixture.ErrText("policy hands-off"))
		}
		return nil
	}
	r := c.reconciler(nil)
	c.reconcileTimes(r, 6)
	once := refused
	c.reconcileTimes(r, 6)
	workload := c.Snapshot().Read
	if c.fellBack(workload.Deployment.UID) || !workload.Decision().Held || once == 0 || refused > once {
		t.Errorf("fell back %v, refused %d times, and then %d", c.fellBack(workload.Deployment.UID), once, refused-once)
	}
	if !revisions.Updating(c.ReplicaSet("web-new")) {
		t.Error("the mark is gone, so the hold expires")
	}
	if all := strings.Join(fixture.Told(c.Recorder), "\n"); strings.Count(all, report.EventWaits) != 1 {
		t.Errorf("events are %s", all)
	}
	for _, pod := range c.Snapshot().Read.Seen.Pods {
		if readiness.Out(pod) {
			t.Errorf("pod %s is not put back into service", pod.Name)
		}
	}
}

// TestRefusalsAreForgotten: after a while it is tried again whether pods can be updated in place.
func TestRefusalsAreForgotten(t *testing.T) {
	h := newCluster(t).dryRunning(forbidden("policy signed"))
	h.setWindow(closedWindow())
	r := h.reconciler(nil)
	h.reconcileTimes(r, 3)
	remembered := r.memories.recall(fixture.Web)
	remembered.DryRun.At = remembered.DryRun.At.Add(-inplace.Remembered - time.Second)
	h.reconcileTimes(r, 2)
	if h.asked != 2 {
		t.Errorf("it is asked %d times", h.asked)
	}
}

// TestItIsAskedAgain: the answer of Monday does not decide on Saturday, past a policy of Tuesday.
func TestItIsAskedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		passes func(h *dryRunServer, remembered *engine.Memory)
		again  bool
	}{
		"nothing has changed": {func(*dryRunServer, *engine.Memory) {}, false},
		"the window opens":    {func(h *dryRunServer, _ *engine.Memory) { h.setWindow(inplace.AlwaysOpen) }, true},
		"a day later":         {func(_ *dryRunServer, m *engine.Memory) { m.DryRun.At = m.DryRun.At.Add(-engine.AskedFor - time.Second) }, true},
		"at the next stage": {func(h *dryRunServer, _ *engine.Memory) {
			deployment := h.Snapshot().Read.Deployment
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, inplace.AnnotationPartition, "1")
			h.do(h.Update(t.Context(), deployment))
		}, true},
	} {
		h := newCluster(t).dryRunning(nil)
		h.setWindow(closedWindow())
		r := h.reconciler(nil)
		h.reconcileTimes(r, 4)
		if h.asked != 1 || h.out() > 0 {
			t.Fatalf("%s: it is asked %d times while the window is closed, and %d pods are out of service", name, h.asked, h.out())
		}
		test.passes(h, r.memories.recall(fixture.Web))
		h.err = forbidden("policy of Tuesday")
		h.reconcileTimes(r, 3)
		if again := h.asked > 1; again != test.again || h.out() > 0 {
			t.Errorf("%s: it is asked %d times, %d pods are out of service", name, h.asked, h.out())
		}
		if opens := name == "the window opens"; h.fellBack() != opens {
			t.Errorf("%s: fell back %v", name, h.fellBack())
		}
	}
}
