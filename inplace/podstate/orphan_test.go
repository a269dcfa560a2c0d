package podstate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

func TestMayBeOrphan(t *testing.T) {
	labelled := func(pod *corev1.Pod) { pod.Labels = map[string]string{inplace.LabelPrePull: "uid"} }
	ownedBy := func(kind string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			labelled(pod)
			pod.OwnerReferences[0].Kind = kind
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"serves":                 {func(*corev1.Pod) {}, false},
		"is out of service":      {fixture.Out, false},
		"pulls for a Deployment": {ownedBy("Deployment"), true},
		"pulls for a DaemonSet":  {ownedBy("ControllerRevision"), true},
		"its pull failed": {func(pod *corev1.Pod) { ownedBy("Deployment")(pod); pod.Status.Phase = corev1.PodFailed },
			true},
		"its pull pod is being deleted": {func(pod *corev1.Pod) { ownedBy("Deployment")(pod); pod.DeletionTimestamp = &metav1.Time{} },
			false},
		"pulls without an owner":        {func(pod *corev1.Pod) { labelled(pod); pod.OwnerReferences = nil }, true},
		"has a label from its template": {labelled, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.New(1, fixture.App{Image: "v1"})
			if got := podstate.MayBeOrphan(fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1"}, 1),
				c.change)); got != c.want {
				t.Errorf("may be an orphan is %t", got)
			}
		})
	}
}
