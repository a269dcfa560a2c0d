//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// everyManagerKilled kills all managers while a pod restarts. The pod's gate is closed, and only the API server is left to open it. The pod
// becomes Ready again. The native controllers, which count it as unavailable until then, finish the update.
func everyManagerKilled(t *testing.T) {
	mutates(t) // without the policy the API server asks a manager
	saysReady(t)
	t.Run("Deployment", func(t *testing.T) {
		long(t)
		orphaned(t, "web", func(s *stage) { s.create(web(4, stopping)) })
	})
	t.Run("DaemonSet", func(t *testing.T) { orphaned(t, agents, func(s *stage) { s.install(agent(templated(stopping))) }) })
}

// saysReady checks which part of the API server's admission sets Ready and opens gates: a policy where the release has mutating policies,
// else a webhook, and never both.
func saysReady(t *testing.T) {
	t.Helper()
	want := "mutatingwebhookconfiguration.admissionregistration.k8s.io/stayput-ready"
	kinds := "mutatingwebhookconfigurations"
	if servesMutatingPolicies(t) {
		want, kinds = "mutatingadmissionpolicybinding.admissionregistration.k8s.io/stayput-ready", kinds+",mutatingadmissionpolicybindings"
	}
	found, _, err := kubectl(t.Context(), "", "get", kinds, "--field-selector=metadata.name=stayput-ready", "-o", "name")
	if got := strings.TrimSpace(found); err != nil || got != want {
		t.Fatalf("installed is %q instead of %s: %v", got, want, err)
	}
}

// mutates skips a test that needs a MutatingAdmissionPolicy.
func mutates(t *testing.T) {
	t.Helper()
	if !servesMutatingPolicies(t) {
		t.Skip("this cluster serves no MutatingAdmissionPolicy, as Kubernetes 1.36 does")
	}
}

func servesMutatingPolicies(t *testing.T) bool {
	t.Helper()
	served, err := clients.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" })
}

func orphaned(t *testing.T, name string, create func(*stage)) {
	s := newDaemonStage(t, labelled)
	create(s)
	t.Cleanup(func() { restoreManagers(t) })
	before, managing := s.pods(name), s.managerProcesses()
	s.begin("killed", anyChurn)
	s.setImage(name, "app=v2")
	orphan := s.shutOut(name, before)
	for _, process := range managing {
		kill(s, process)
	}
	removeManagers(s)
	s.wait(orphan.Name+" to serve again", func(w world) error { return serves(w.pods[orphan.UID]) })
	s.rollsOut(name)
	s.runs(name, "v2")
	restoreManagers(t)
	s.completes(name)
}

// managerProcesses returns the processes of all managers, so that a few signals are enough to kill them.
func (s *stage) managerProcesses() []int {
	s.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(s.Context(), managers)
	if err != nil {
		s.Fatal(err)
	}
	var found []int
	for i := range pods.Items {
		if process := managerProcess(s, &pods.Items[i]); process != 0 {
			found = append(found, process)
		}
	}
	if len(found) == 0 {
		s.Fatal("no manager is on this machine")
	}
	return found
}

// shutOut waits for a patched pod that stops behind its closed gate and that its controller wants to keep. Before its ReplicaSet is scaled
// up, the ReplicaSet controller would delete it.
func (s *stage) shutOut(name string, before map[types.UID]*corev1.Pod) *corev1.Pod {
	s.Helper()
	var found *corev1.Pod
	s.wait("a pod that is "+string(patched)+" and has its gate closed", func(w world) error {
		now, err := w.workload(name)
		if err != nil {
			return err
		}
		for _, pod := range now.pods {
			was := before[pod.UID]
			if was != nil && !gateOpen(pod) && phaseOf(was, pod, now.updated(pod)) == patched && w.wanted(pod) {
				found = pod
				return nil
			}
		}
		return errors.New(now.tally().String())
	})
	return found
}

// wanted reports whether the pod's controller wants to keep the pod: the ReplicaSet asks for as many pods as it has, or the DaemonSet's
// status counts the pod as updated. Otherwise a DELETE may be on its way. The status of before the edit does not count.
func (w world) wanted(pod *corev1.Pod) bool {
	if ds := w.daemonSetOf(pod); ds != nil {
		return ds.Status.ObservedGeneration == ds.Generation && int(ds.Status.UpdatedNumberScheduled) >= w.livePods(placeOf(pod))
	}
	set := w.ownerOf(pod)
	return set == nil || set.Status.ObservedGeneration == set.Generation && int(*set.Spec.Replicas) >= w.livePods(set.UID)
}

func serves(pod *corev1.Pod) error {
	switch {
	case pod == nil:
		return errors.New("it is gone")
	case !gateOpen(pod):
		return errors.New("its gate is closed")
	case !ready(pod):
		return errors.New("it is not Ready")
	}
	return nil
}

// leftBehind deletes a workload without its pods, while one pod is being drained for a restart. The restart will not come. The orphaned pod
// becomes Ready again, and no object of Stayput is left.
func leftBehind(t *testing.T, name string, rules Rules, create func(*stage), meanwhile ...func(*stage)) {
	s := newStage(t, unending)
	s.followSlices()
	create(s)
	s.service(name, corev1.ServiceInternalTrafficPolicyCluster) // without a Service no pod waits for a drain
	s.offered(name)
	s.begin("in place", inPlace)
	s.setImage(name, "app=v2")
	s.wait("a pod of "+name+" to be out of service", draining(name))
	rules.Orphans = true
	s.begin("left behind", rules)
	for _, happens := range meanwhile {
		happens(s)
	}
	s.kubectl("", "delete", ref(name), "--cascade=orphan", "--timeout=1m")
	s.wait("every pod to serve", func(w world) error {
		for _, pod := range w.pods {
			if err := serves(pod); err != nil {
				return fmt.Errorf("pod %s: %w", pod.Name, err)
			}
		}
		if len(w.pods) == 0 {
			return errors.New("there are none")
		}
		return nil
	})
	s.wait("every pre-pull pod to be gone", func(w world) error {
		if left := len(w.prePullPods); left > 0 {
			return fmt.Errorf("%d are left", left)
		}
		return nil
	})
}

func podsLeftBehind(t *testing.T) { leftBehind(t, "web", inPlace, func(s *stage) { s.create(web(4)) }) }

func daemonsLeftBehind(t *testing.T) {
	leftBehind(t, agents, inPlace, func(s *stage) { s.install(agent()) })
}

// leftWithoutLeader does the same without a leader: the workload is gone before the next manager leads. As in managerKilled, native writes
// may bypass the dead webhook.
func leftWithoutLeader(t *testing.T) {
	long(t)
	t.Cleanup(func() { mended(t) })
	leftBehind(t, "web", anyChurn, func(s *stage) { s.create(web(4)) }, func(s *stage) { killProcess(s, s.leader()) })
}
