//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// unending is the longest drain there may be: whoever waits for it is still waiting when all patience is gone.
var unending = with(labelled, drainLabel, "10m")

// drains: a pod that leaves its Service to others waits until they have taken over; one that leaves it to nobody does not wait.
func drains(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"the last endpoint":           lastEndpoint,
		"the last endpoint of a node": lastOfNodes,
		"a stale replica":             staleReplica,
	})
}

func lastEndpoint(t *testing.T) {
	s := newStage(t, unending)
	s.create(web(2), web(1, named("alone")))
	s.drainsBut("web", "alone", corev1.ServiceInternalTrafficPolicyCluster, func() { s.label(drainLabel + "=500ms") })
}

// lastOfNodes: each pod of a DaemonSet is the last of its node, which matters only where a Service keeps traffic on its node.
func lastOfNodes(t *testing.T) {
	s := newDaemonStage(t, unending)
	noSurge := daemonSetPrefix + "alone"
	s.submitDaemonSet(agent())
	s.submitDaemonSet(agent(daemonNamed("alone")))
	s.completes(agents)
	s.completes(noSurge)
	s.drainsBut(agents, noSurge, corev1.ServiceInternalTrafficPolicyLocal, func() { s.kubectl("", "label", ref(agents), drainLabel+"=500ms") })
}

// daemonNamed gives the DaemonSet, its pods and its selector another name.
func daemonNamed(name string) daemonKnob {
	return func(ds *appsv1.DaemonSet) {
		like := web(1, named(name))
		ds.ObjectMeta, ds.Spec.Selector, ds.Spec.Template = like.ObjectMeta, like.Spec.Selector, like.Spec.Template
	}
}

// drainsBut updates two workloads under the same endless drain, each behind a Service. A whole update of the one whose pods are the
// last of theirs takes place while the first pod of the other waits: longer than it needs. Then labels say that it need not any more.
func (s *stage) drainsBut(shared, noSurge string, traffic corev1.ServiceInternalTrafficPolicy, shorten func()) {
	s.Helper()
	s.followSlices()
	s.service(shared, corev1.ServiceInternalTrafficPolicyCluster)
	s.service(noSurge, traffic)
	s.offered(shared)
	s.offered(noSurge)
	before, beforeAlone := s.pods(shared), s.pods(noSurge)

	s.begin("in place", inPlace)
	s.setImage(shared, "app=v2")
	s.wait("a pod of "+shared+" to be out of its Service", draining(shared))
	s.setImage(noSurge, "app=v2")
	s.completes(noSurge)
	s.wait("a pod of "+shared+" to wait still", draining(shared))
	shorten()
	s.completes(shared)

	s.offered(shared)
	s.patchedOnlyWhen(shared, outOfService)
	s.patchedOnlyWhen(noSurge, takenOut)
	s.kept(shared, before, once)
	s.kept(noSurge, beforeAlone, once)
}

// followSlices lets the Recorder follow EndpointSlices as well. They are no part of catchUp: only offered waits for them.
func (s *stage) followSlices() {
	s.Helper()
	slices := cache.NewListWatchFromClient(clients.DiscoveryV1().RESTClient(), "endpointslices", s.namespace, fields.Everything())
	if err := s.recorder.follow(s.Context(), "endpointslices", slices); err != nil {
		s.Fatalf("watching EndpointSlices: %v", err)
	}
}

// offered waits until Services offer every pod of a workload.
func (s *stage) offered(name string) {
	s.Helper()
	s.wait("endpoints for "+name, func(w world) error {
		now, err := w.workload(name)
		if err != nil {
			return err
		}
		for _, pod := range now.pods {
			if !w.offers(pod) {
				return fmt.Errorf("pod %s is none", pod.Name)
			}
		}
		return nil
	})
}

// draining is the condition that no pod of a workload has been patched, and all but one, which is out of service, are untouched.
func draining(name string) func(world) error {
	return func(w world) error {
		now, err := w.workload(name)
		if err != nil {
			return err
		}
		phases := map[podPhase]int{}
		for _, pod := range now.pods {
			phase := phaseOf(pod, pod, now.updated(pod))
			if phase == drained && w.offers(pod) {
				phase += ", but offered"
			}
			phases[phase]++
		}
		if !maps.Equal(phases, map[podPhase]int{drained: 1, untouched: len(now.pods) - 1}) {
			return fmt.Errorf("pods: %v", phases)
		}
		return nil
	}
}

// patchedOnlyWhen replays what happened, and demands a condition of each pod of a workload right before its images changed.
func (s *stage) patchedOnlyWhen(name string, condition func(world, *corev1.Pod) error) {
	s.Helper()
	w, patched := newWorld(), 0
	for _, e := range s.recorder.inOrder() {
		before := w.pods[e.object.GetUID()]
		if before != nil && w.workloadOf(before) == name && repatched(before, e) {
			patched++
			if err := condition(w, before); err != nil {
				s.Errorf("pod %s was patched too early: it %v", before.Name, err)
			}
		}
		w.apply(e)
	}
	if pods := s.pods(name); patched != len(pods) {
		s.Errorf("%d patches of the %d pods of %s were seen", patched, len(pods), name)
	}
}

// repatched says whether an event gives a pod other images.
func repatched(before *corev1.Pod, e event) bool {
	pod, is := e.object.(*corev1.Pod)
	return is && !maps.Equal(imagesOf(before.Spec), imagesOf(pod.Spec))
}

// takenOut: the gate is closed, and the kubelet has seen it.
func takenOut(_ world, pod *corev1.Pod) error {
	if gateOpen(pod) || ready(pod) {
		return errors.New("was in service: " + describePod(pod))
	}
	return nil
}

// outOfService: no EndpointSlice offers it either.
func outOfService(w world, pod *corev1.Pod) error {
	if w.offers(pod) {
		return errors.New("was offered by an EndpointSlice")
	}
	return takenOut(w, pod)
}
