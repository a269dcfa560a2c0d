package simulation

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestSkippedNodes: the kubelet of one node is away while the DaemonSet is edited. All other pods are updated in place. The DaemonSet
// controller, which waits for that node, deletes none, nor the pod there: it is updated when its node is back.
func TestSkippedNodes(t *testing.T) {
	for seed := range int64(10) {
		w := newDaemonWorld(t, seed, false)
		w.settings.SkipsUnreachable, w.rules.loose = true, true // the first rollout creates pods
		for len(w.pull.Nodes) < 4 {
			w.pull.Nodes = append(w.pull.Nodes, fixture.MountingNode(fmt.Sprint("n", len(w.pull.Nodes)+1)))
		}
		w.editDaemons("begins", func(d *apps.DaemonSet) {
			fixture.MaxUnavailable("1")(&fixture.Fleet{DaemonSet: d})
			d.Spec.Template = fixture.App{Image: "v1"}.Template()
		})
		w.calm()
		before := maps.Clone(w.pods.objects)
		w.rules.loose = false // no pod is to be deleted
		w.goesDown("n1")
		w.editDaemons("edits", func(d *apps.DaemonSet) { d.Spec.Template = fixture.App{Image: "v2"}.Template() })
		for range 2000 {
			w.round() // the update never comes to rest, since its hold is renewed
		}
		hash := w.daemons().UpdateRevision().Labels[inplace.LabelRevisionHash]
		for _, pod := range w.pods.objects {
			updated, here := pod.Labels[inplace.LabelRevisionHash] == hash, pod.Spec.NodeName != "n1"
			if updated != here || apps.IsTrue(pod, corev1.PodReady) != here {
				t.Errorf("seed %d: %s is updated: %t", seed, pod.Name, updated)
			}
		}
		w.pull.Nodes[0].Status.Conditions[0].Status, w.stayput.stale = corev1.ConditionTrue, true
		w.calm()
		w.checkEnd()
		for name, pod := range w.pods.objects {
			if before[name] == nil || before[name].UID != pod.UID {
				t.Errorf("seed %d: %s is another pod", seed, name)
			}
		}
		if w.failed != "" {
			t.Errorf("seed %d: %s", seed, w.failed)
		}
		if t.Failed() {
			t.Fatal(w.describe())
		}
	}
}
