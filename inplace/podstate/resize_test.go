package podstate_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// TestAvailableInAResize: a pod counts as unavailable from the note of a resize until its kubelet has done it. If another edit came in
// between and the resize was never written, the note says nothing. Nothing would ever end such a state.
func TestAvailableInAResize(t *testing.T) {
	for name, c := range map[string]struct {
		noted, spec, status string // CPU; "" is no note
		gets                string
		want                bool
	}{
		"nothing is noted yet":                      {"", "100m", "100m", "200m", true},
		"noted, not written":                        {"200m", "100m", "100m", "200m", false},
		"written, not done":                         {"200m", "200m", "100m", "200m", false},
		"done":                                      {"200m", "200m", "200m", "200m", true},
		"noted for another edit, not written":       {"9000m", "100m", "100m", "200m", true},
		"noted for another edit, which was undone":  {"9000m", "100m", "100m", "100m", true},
		"written for another edit, not done":        {"300m", "300m", "100m", "200m", false},
		"written for another edit, done":            {"300m", "300m", "300m", "200m", true},
		"written for an edit that was undone, done": {"300m", "300m", "300m", "100m", true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := resizing(t, c.noted, c.spec, c.status)
			if s := stateToResize(pod, c.gets); s.Available != c.want {
				t.Errorf("available %v, want %v", s.Available, c.want)
			}
		})
	}
}

// resizing returns a pod with that mark, whose spec and status have that CPU.
func resizing(t *testing.T, noted, spec, status string) *corev1.Pod {
	t.Helper()
	r := fixture.New(1, fixture.App{Image: "v1", CPU: "100m"})
	pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", CPU: "100m"}, 1))
	pod.Spec.NodeName = "n1" // a pod on no node has no kubelet that must act
	pod.Spec.Containers[0].Resources = resourcesOf(spec)
	pod.Status.ContainerStatuses[0].Resources = new(resourcesOf(status))
	if noted == "" {
		return pod
	}
	mark, err := json.Marshal(readiness.Move{Hash: "b", Resize: readiness.Resize{"app": {
		Back: edit.AmountsOf(resourcesOf("100m")), To: edit.AmountsOf(resourcesOf(noted)), At: metav1.NewTime(fixture.Start)}}})
	if err != nil {
		t.Fatal(err)
	}
	pod.Annotations = map[string]string{inplace.AnnotationMove: string(mark)}
	return pod
}

func resourcesOf(cpu string) corev1.ResourceRequirements {
	return fixture.App{CPU: cpu}.Template().Typed().Spec.Containers[0].Resources
}

// stateToResize returns the state of the pod of an old ReplicaSet of which the new one has that CPU.
func stateToResize(pod *corev1.Pod, gets string) podstate.State {
	r := fixture.New(1, fixture.App{Image: "v1", CPU: gets})
	from, to := fixture.App{Image: "v1", CPU: "100m"}.Template(), fixture.App{Image: "v1", CPU: gets}.Template()
	change := edit.Compare(from, to, r.Seen.Rules)
	newRS := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v1", CPU: gets}, 0)
	revision := podstate.PodRevision{Revision: "web-a", TemplateContainers: edit.Living(&from.Decoded().Spec), Change: &change,
		UpdateHash: "b"}
	newPods := r.Seen.DryRun.Of(newRS.UID, to, edit.Living(&to.Decoded().Spec))
	return podstate.StateOf(&steps.PlanBuilder{}, pod, revision, newPods, 0, fixture.Start)
}
