//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeletStopped checks that the pod of an unreachable node counts as unavailable. Without budget left no pod is updated. If the DaemonSet
// skips the node, its other pods are updated one after another. The pod itself is updated when its node returns. StatefulSets of both pod
// management policies, with a pod on each node as well, go on waiting.
func kubeletStopped(t *testing.T) {
	long(t)
	s := meeting{newDaemonScenario(t, stateful), []string{agents, members, caches}}
	t.Cleanup(s.nativeDeletesAreTrue)
	down := s.spareNode()
	s.submitDaemonSet(agent())
	s.submitPolicies(3, ofTemplate(asManyOnEachNode))
	s.create(web(1, named("clock"), onNode(s.otherNode(down))))
	s.each(s.completes)
	before := s.podsOfEach()
	s.stopKubelet(down)
	s.each(func(name string) {
		s.reaches(name, state{"without one pod", func(t podCounts) bool { return t.moving+t.midway == 1 }})
	})

	s.begin("no budget", updatesOnly("clock"))
	s.setImages("v2")
	s.tick("v2")
	skips := inPlace
	skips.Spare = 1 // the pod of that node
	s.begin("the node is skipped", skips)
	s.kubectl("", "annotate", ref(agents), "stayput.dev/unreachable-nodes=skip")
	s.reaches(agents, state{"updated but for the node that is down", func(t podCounts) bool { return t == podCounts{done: 2, moving: 1} }})
	for _, name := range []string{members, caches} {
		s.kept(name, before[name], nil)
	}
	s.begin("the node is back", inPlace)
	startKubelet(t, down)
	s.end("v2")
	s.each(func(name string) { s.kept(name, before[name], once) })
}

// onNode restricts a Deployment's pods to a node.
func onNode(name string) option {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: name}
	}
}

// spareNode returns a real node on which no manager runs, so that its failure does not affect Stayput.
func (s *scenario) spareNode() string {
	s.Helper()
	var spare string
	nodes := s.realNodes()
	s.eventually("a node without a manager", func(ctx context.Context) error {
		found, err := clients.CoreV1().Pods(ownNamespace).List(ctx, managers)
		if err != nil {
			return err
		}
		free := slices.IndexFunc(nodes, func(node string) bool {
			return !slices.ContainsFunc(found.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node })
		})
		if free < 0 {
			return fmt.Errorf("there are %d managers on %d nodes", len(found.Items), len(nodes))
		}
		spare = nodes[free]
		return nil
	})
	return spare
}

func (s *scenario) otherNode(than string) string {
	s.Helper()
	nodes := s.realNodes()
	return nodes[slices.IndexFunc(nodes, func(node string) bool { return node != than })]
}

// realNodes returns the names of the nodes that are not simulated.
func (s *scenario) realNodes() []string {
	s.Helper()
	found, err := clients.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{LabelSelector: "type!=simulated"})
	if err != nil {
		s.Fatal(err)
	}
	if len(found.Items) < 3 {
		s.Fatalf("the cluster has %d nodes: these tests need three", len(found.Items))
	}
	var names []string
	for _, node := range found.Items {
		names = append(names, node.Name)
	}
	return names
}

// stopKubelet stops the kubelet until the test ends, or startKubelet is called.
func (s *scenario) stopKubelet(node string) {
	s.Helper()
	s.Cleanup(func() { startKubelet(s.T, node) })
	component(s.T, "stop", "kubelet-"+node)
}

// startKubelet returns when the node is Ready.
func startKubelet(t *testing.T, node string) {
	t.Helper()
	component(t, "start", "kubelet-"+node)
	if err := poll(context.Background(), func(ctx context.Context) error { return nodeReady(ctx, node) }); err != nil {
		t.Errorf("node %s did not come back: %v", node, err)
	}
}

func nodeReady(ctx context.Context, name string) error {
	node, err := clients.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("it is not Ready: %s", condition.Message)
		}
	}
	if len(node.Status.Conditions) == 0 || len(node.Spec.Taints) > 0 {
		return fmt.Errorf("it still has the taints %v", node.Spec.Taints)
	}
	return nil
}

// badImagePending creates the DaemonSet, and updates it to an image that does not exist. One pod waits for it until an undo. The
// scenario pulls no images first (unpulled).
func (s *scenario) badImagePending(options ...daemonSetOption) {
	s.Helper()
	s.install(agent(options...))
	s.begin("bad image", inPlace)
	s.setImage(agents, "app=missing")
	s.fails(agents, "ImagePullBackOff")
}

// departure is a way in which a node stops being eligible for the DaemonSet, and becomes eligible again.
type departure struct {
	prepare func(s *scenario) daemonSetOption
	leave   func(s *scenario, node string)
	rejoin  func(s *scenario, node string)
}

// sickness is the key of a taint.
const sickness = "e2e.stayput.dev/sick"

// membership returns the label of the nodes that the scenario's DaemonSet runs on. No other workload uses it.
func membership(s *scenario) string { return "e2e.stayput.dev/" + s.namespace }

var (
	tainted = departure{
		prepare: asItIs,
		leave: func(s *scenario, node string) {
			s.Cleanup(func() { cure(s, node) })
			onCluster(s.T, "taint", "node", node, sickness+"=yes:NoExecute")
		},
		rejoin: cure,
	}
	removed = departure{
		prepare: asItIs,
		leave: func(s *scenario, node string) {
			s.stopKubelet(node)
			onCluster(s.T, "delete", "node", node)
		},
		rejoin: func(s *scenario, node string) { startKubelet(s.T, node) }, // the kubelet registers the node again
	}
	unlabelledNode = departure{
		prepare: membersOnly,
		leave:   func(s *scenario, node string) { onCluster(s.T, "label", "node", node, membership(s)+"-") },
		rejoin:  func(s *scenario, node string) { onCluster(s.T, "label", "node", node, membership(s)+"=yes") },
	}
)

func asItIs(*scenario) daemonSetOption { return func(*appsv1.DaemonSet) {} }

// membersOnly labels all nodes until the judge is done, and restricts the DaemonSet to nodes with this label.
func membersOnly(s *scenario) daemonSetOption {
	s.afterwards = append(s.afterwards, func() { onCluster(s.T, "label", "nodes", "-l", "type!=simulated", membership(s)+"-") })
	onCluster(s.T, "label", "nodes", "-l", "type!=simulated", membership(s)+"=yes")
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.Template.Spec.NodeSelector = map[string]string{membership(s): "yes"}
	}
}

func nodeUnlabelled(t *testing.T) {
	leavesAndReturns(t, unlabelledNode)
}

// nodeRemoved takes long: Kubernetes needs most of a minute to notice that a kubelet is gone.
func nodeRemoved(t *testing.T) {
	long(t)
	leavesAndReturns(t, removed)
}

// cure removes the taint, if it is there.
func cure(s *scenario, name string) {
	s.Helper()
	node, err := clients.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		s.Error(err)
		return
	}
	if slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == sickness }) {
		onCluster(s.T, "taint", "node", name, sickness+"-")
	}
}

// onCluster runs kubectl without a namespace, also when the test has ended.
func onCluster(t *testing.T, arguments ...string) {
	t.Helper()
	if _, _, err := kubectl(context.Background(), "", arguments...); err != nil {
		t.Error(err)
	}
}

// leavesAndReturns checks what happens when a node leaves while a bad image is pending. Its pod is deleted at once, though the update is
// held. When the node is back, it gets a pod with the bad image, as natively, and the undo updates that pod with the others.
func leavesAndReturns(t *testing.T, of departure) {
	s := newDaemonScenario(t, unpulled)
	s.badImagePending(of.prepare(s))
	node := s.spareNode()
	others, lost := s.pods(agents), s.podOn(agents, node)
	delete(others, lost.UID)

	s.begin("the node leaves", Rules{Created: none, Deleted: exactly(1), Outage: true})
	of.leave(s, node)
	s.gone(lost)
	s.wanted(2)
	s.begin("the node returns", Rules{Created: exactly(1), Deleted: none, Outage: true})
	of.rejoin(s, node)
	s.wanted(3)
	s.waitsOn(node, "ImagePullBackOff")
	// Outage: as natively, a new pod that was created broken does not use up the budget that the pod which was broken before has used.
	s.begin("undone", Rules{Created: none, Deleted: none, Outage: true})
	s.rollout("undo", agents)
	s.completes(agents)
	s.runs(agents, "v1")
	s.survived(agents, others)
}

// wanted waits until the native controller wants so many pods of the DaemonSet.
func (s *scenario) wanted(pods int32) {
	s.Helper()
	s.wait(fmt.Sprintf("%d nodes to be wanted", pods), of(agents, func(now workload) error {
		if ds := now.Object.(*appsv1.DaemonSet); ds.Status.DesiredNumberScheduled != pods {
			return errors.New(describeDaemonSet(ds))
		}
		return nil
	}))
}

// waitsOn waits until the DaemonSet's pod on a node waits for this reason.
func (s *scenario) waitsOn(node, reason string) {
	s.Helper()
	s.wait("a pod on "+node+" that waits with "+reason, of(agents, func(now workload) error {
		for _, pod := range now.pods {
			if pod.Spec.NodeName == node && waitsWith(pod, reason) {
				return nil
			}
		}
		return errors.New(now.podCounts().String())
	}))
}

// podOn returns the live pod of a workload on a node.
func (s *scenario) podOn(name, node string) *corev1.Pod {
	s.Helper()
	for _, pod := range s.workload(name).pods {
		if pod.Spec.NodeName == node {
			return pod
		}
	}
	s.Fatalf("no pod of %s is on %s", name, node)
	return nil
}
