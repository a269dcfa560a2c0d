package observe

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// agents returns DaemonSet web with two revisions and pods on two nodes. It also returns a pod and a revision of an
// earlier DaemonSet of the same name.
func agents() []client.Object {
	web := &apps.DaemonSet{ObjectMeta: meta("web", "ds")}
	web.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	mine, earlier := controlledBy("DaemonSet", "web", "ds"), controlledBy("DaemonSet", "web", "earlier")
	on := func(node string, pod metav1.ObjectMeta) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: pod, Spec: corev1.PodSpec{NodeName: node}}
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}},
		web,
		&apps.ControllerRevision{ObjectMeta: meta("web-1", "c1", mine)},
		&apps.ControllerRevision{ObjectMeta: meta("web-2", "c2", mine)},
		&apps.ControllerRevision{ObjectMeta: meta("web-0", "c0", earlier)},
		on("one", meta("a", "pa", mine)), on("two", meta("b", "pb", mine)), on("two", meta("c", "pc", earlier)),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "two"}},
	}
}

func daemonReaders(t *testing.T, objects []client.Object) map[string]Reader {
	t.Helper()
	byNode := func(pod client.Object) []string { return []string{pod.(*corev1.Pod).Spec.NodeName} }
	return map[string]Reader{
		"live":    {Reader: builder(t, objects...).WithIndex(&corev1.Pod{}, fieldNode, byNode).Build()},
		"indexed": cacheHas(t, objects...),
	}
}

func names[P client.Object](objects []P) []string {
	var all []string
	for _, object := range objects {
		all = append(all, object.GetName())
	}
	slices.Sort(all)
	return all
}

func TestDaemonRollout(t *testing.T) {
	for name, reader := range daemonReaders(t, agents()) {
		t.Run(name, func(t *testing.T) {
			rollout, err := DaemonSets.Rollout(context.Background(), reader, key)
			if err != nil {
				t.Fatal(err)
			}
			got := [][]string{names(rollout.Revisions), names(rollout.Seen.Pods), names(rollout.Seen.Nodes)}
			want := [][]string{{"web-1", "web-2"}, {"a", "b"}, {"one", "two"}}
			if !slices.EqualFunc(got, want, slices.Equal) || rollout.Seen.Mode != inplace.ModeInPlace {
				t.Errorf("read %v in mode %q, want %v", got, rollout.Seen.Mode, want)
			}
		})
	}
	objects := agents()
	objects[1].SetAnnotations(map[string]string{inplace.AnnotationInPlaceAnnotations: "note"})
	reader := daemonReaders(t, objects)["live"]
	reader.Rules.Annotations = []string{"example.com/*"}
	rollout, err := DaemonSets.Rollout(context.Background(), reader, key)
	if err != nil || !rollout.Seen.Rules.Allows("note") || !rollout.Seen.Rules.Allows("example.com/a") {
		t.Errorf("the rules are %+v, %v", rollout.Seen.Rules, err)
	}
	if rollout, err := DaemonSets.Rollout(context.Background(), daemonReaders(t, nil)["live"], key); rollout != nil || err != nil {
		t.Errorf("read %v, %v where there is no DaemonSet", rollout, err)
	}
}

// TestDeletionReadsTheNodeLive has a cache that lacks a pod and a node which exist, and that has a pod which no longer
// exists.
func TestDeletionReadsTheNodeLive(t *testing.T) {
	objects := agents()
	pod := objects[5].(*corev1.Pod)
	left := meta("d", "pd", controlledBy("DaemonSet", "web", "ds"))
	cached := slices.Concat(objects[:5], objects[6:8],
		[]client.Object{objects[9], &corev1.Pod{ObjectMeta: left, Spec: corev1.PodSpec{NodeName: "one"}}})
	rollout, err := DaemonSets.Deletion(context.Background(), daemonReaders(t, objects)["live"], pod, daemonReaders(t, cached)["indexed"])
	if err != nil {
		t.Fatal(err)
	}
	pods, nodes := names(rollout.Seen.Pods), names(rollout.Seen.Nodes)
	if !slices.Equal(pods, []string{"a", "b"}) || !slices.Equal(nodes, []string{"one", "two"}) {
		t.Errorf("read pods %v and nodes %v", pods, nodes)
	}
}
