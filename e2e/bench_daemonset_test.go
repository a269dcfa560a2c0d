//go:build e2e && bench

package e2e

import (
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// benchFleet measures a DaemonSet on every simulated node, with maxUnavailable 10 %. How many writes are held matters most here:
// the DaemonSet controller asks again at every event of a pod, and shares its requests among all DaemonSets.
func benchFleet(t *testing.T) {
	nodes := simulatedNodes(t)
	var marked, plain []figure
	defer func() {
		fmt.Println(table(fmt.Sprintf("DaemonSet on %d nodes, 10 %% at a time", nodes), marked, plain))
	}()
	t.Run("in place", func(t *testing.T) { marked = fleet(t, labelled, nodes) })
	t.Run("native", func(t *testing.T) { plain = fleet(t, unlabelled, nodes) })
}

// fleet creates the DaemonSet, updates it and returns the figures. There are too many pods to record every event.
func fleet(t *testing.T, labels map[string]string, nodes int) []figure {
	s := &side{stage: &stage{T: t, namespace: createNamespace(t, asShipped(labels))}}
	t.Cleanup(s.clear)
	s.usable()
	fmt.Printf("%s: a DaemonSet of %d pods is created and updated\n", nameOf(t), nodes)
	if _, err := clients.AppsV1().DaemonSets(s.namespace).Create(t.Context(), agent(budget("10%", "0"), simulatedOnly), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.rollout("status", agents, "--timeout="+crowdPatience.String())

	existing := s.uids()
	before, _ := s.count()
	from := time.Now()
	s.setImage(agents, "app=v2")
	s.rollout("status", agents, "--timeout="+crowdPatience.String())
	seconds := time.Since(from).Seconds()
	after, resident := s.count()
	created := s.uids()
	maps.DeleteFunc(created, func(uid types.UID, _ bool) bool { return existing[uid] })

	spent, pods := after.since(before), float64(nodes)
	return []figure{
		{"seconds until rolled out", seconds},
		{"pods created", float64(len(created))},
		{"API writes per pod, without events", spent.writes / pods},
		{"API writes per pod, with events", (spent.writes + spent.events) / pods},
		{"native writes held per pod", spent.held / pods},
		{"CPU seconds of the managers", spent.cpu},
		{"MiB of the managers, together", resident},
	}
}

// simulatedOnly lets the DaemonSet run on the simulated nodes and no others.
func simulatedOnly(ds *appsv1.DaemonSet) {
	like := crowded(1)
	ds.Spec.Template.Spec.NodeSelector = like.Spec.Template.Spec.NodeSelector
	ds.Spec.Template.Spec.Tolerations = like.Spec.Template.Spec.Tolerations
}
