//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// unending is the longest possible drain. It is longer than every wait of the tests.
var unending = with(labelled, drainSetting, "10m")

// drains checks that a pod of a Service with other pods waits until those have taken over, and that a pod of a Service without other pods
// serves until its containers stop.
func drains(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"the last endpoint": lastEndpoint,
		"a stale leader":    staleLeader,
	})
	nightly(t, map[string]func(*testing.T){
		"the last endpoint of a node": lastOfNodes,
	})
}

func lastEndpoint(t *testing.T) {
	s := newScenario(t, unending)
	s.create(web(2), web(1, named("alone")))
	s.drainsBut("web", "alone", corev1.ServiceInternalTrafficPolicyCluster, func() { s.annotate(drainSetting + "=500ms") })
}

// lastOfNodes checks DaemonSets. Each pod is the last one on its node, which matters only for a Service with a local traffic policy.
func lastOfNodes(t *testing.T) {
	s := newDaemonScenario(t, unending)
	alone := daemonSetPrefix + "alone"
	s.submitDaemonSet(agent())
	s.submitDaemonSet(agent(daemonNamed("alone")))
	s.completes(agents)
	s.completes(alone)
	s.drainsBut(agents, alone, corev1.ServiceInternalTrafficPolicyLocal,
		func() { s.kubectl("", "annotate", ref(agents), drainSetting+"=500ms") })
}

// daemonNamed gives the DaemonSet, its pods and its selector another name.
func daemonNamed(name string) daemonSetOption {
	return func(ds *appsv1.DaemonSet) {
		like := web(1, named(name))
		ds.ObjectMeta, ds.Spec.Selector, ds.Spec.Template = like.ObjectMeta, like.Spec.Selector, like.Spec.Template
	}
}

// drainsBut updates two workloads with the same endless drain, each behind a Service. The pods of the one are the last of their Service:
// its whole update takes place while the first pod of the other waits. So that wait is longer than needed. Then shorten ends the wait with
// labels.
func (s *scenario) drainsBut(shared, alone string, traffic corev1.ServiceInternalTrafficPolicy, shorten func()) {
	s.Helper()
	s.service(shared, corev1.ServiceInternalTrafficPolicyCluster)
	s.service(alone, traffic)
	s.offered(shared)
	s.offered(alone)
	before, beforeAlone := s.pods(shared), s.pods(alone)

	s.begin("in place", inPlace)
	s.setImage(shared, "app=v2")
	s.wait("a pod of "+shared+" to be out of its Service", draining(shared))
	s.setImage(alone, "app=v2")
	s.completes(alone)
	s.wait("a pod of "+shared+" to wait still", draining(shared))
	shorten()
	s.completes(shared)

	s.offered(shared)
	s.patchedOnlyWhen(shared, unoffered)
	s.patchedOnlyWhen(alone, inService)
	s.neverOut(alone)
	s.kept(shared, before, once)
	s.kept(alone, beforeAlone, once)
}

// offered waits until EndpointSlices list every pod of a workload as ready.
func (s *scenario) offered(name string) {
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

// draining returns a condition: one pod of the workload is out of service and not patched, and the others are untouched.
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

// patchedOnlyWhen replays the events, and checks a condition of each pod of a workload just before its images changed.
func (s *scenario) patchedOnlyWhen(name string, condition func(world, *corev1.Pod) error) {
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

// repatched reports whether an event changes the images of a pod.
func repatched(before *corev1.Pod, e event) bool {
	pod, is := e.object.(*corev1.Pod)
	return is && !maps.Equal(imagesOf(before.Spec), imagesOf(pod.Spec))
}

// unoffered returns nil if the pod is out of service, and no EndpointSlice lists it as ready.
func unoffered(w world, pod *corev1.Pod) error {
	switch {
	case w.offers(pod):
		return errors.New("was offered by an EndpointSlice")
	case !isOut(pod):
		return errors.New("was in service: " + describePod(pod))
	}
	return nil
}

// inService returns nil if the pod is Ready, and an EndpointSlice lists it as ready.
func inService(w world, pod *corev1.Pod) error {
	if !ready(pod) || !w.offers(pod) {
		return errors.New("did not serve: " + describePod(pod))
	}
	return nil
}

// everOut returns the pods of a workload that were out of service at any time.
func (s *scenario) everOut(name string) map[string]bool {
	s.Helper()
	w, out := newWorld(), map[string]bool{}
	for _, e := range s.recorder.inOrder() {
		w.apply(e)
		if pod, is := e.object.(*corev1.Pod); is && isOut(pod) && w.workloadOf(pod) == name {
			out[pod.Name] = true
		}
	}
	return out
}

// neverOut checks that no pod of a workload has been out of service so far.
func (s *scenario) neverOut(name string) {
	s.Helper()
	if out := s.everOut(name); len(out) > 0 {
		s.Errorf("pods of %s were out of service: %v", name, out)
	}
}

// allWereOut checks that each pod of a workload has been out of service.
func (s *scenario) allWereOut(name string) {
	s.Helper()
	if out, pods := s.everOut(name), s.pods(name); len(out) != len(pods) {
		s.Errorf("of the %d pods of %s only these were out of service: %v", len(pods), name, out)
	}
}
