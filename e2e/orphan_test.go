//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// everyManagerKilled kills all managers while a pod is out of service, before it is patched and afterwards. Nothing of Stayput is left to
// put it back: its own kubelet does. The native controllers, which count it as unavailable until then, finish the update.
func everyManagerKilled(t *testing.T) {
	kinds := map[string]func(*scenario, ...option) string{
		"Deployment": func(s *scenario, options ...option) string { return s.deploy(web(4, options...)) },
		"DaemonSet":  func(s *scenario, options ...option) string { return s.deploy(agent(allTemplated(options)...)) },
	}
	for policy, order := range policies {
		kinds["StatefulSet, "+policy] = func(s *scenario, options ...option) string {
			return s.deploy(db(2, append(allOfTemplate(options), order)...))
		}
	}
	for kind, create := range kinds {
		for phase, drain := range map[podPhase]string{drained: "10m", patched: "500ms"} {
			t.Run(kind+", "+string(phase), func(t *testing.T) {
				if kind != "DaemonSet" || phase != drained {
					long(t)
				}
				killedWhen(t, phase, drain, create)
			})
		}
	}
}

// movedPodStays: while a pod that has moved runs its old container, the ReplicaSet controller cannot delete it even if no manager answers,
// since it may have decided on an older cache. Afterwards it can.
func movedPodStays(t *testing.T) {
	long(t)
	s := newScenario(t, labelled)
	s.create(web(1, stopping))
	t.Cleanup(func() { restoreManagers(t) })
	pod, managing := slices.Collect(maps.Values(s.pods("web")))[0], s.managerProcesses()
	s.begin("killed", Rules{Created: anyNumber, Deleted: anyNumber, Spare: 1})
	s.setImage("web", "app=v2")
	s.wait("the pod to move", of("web", func(now workload) error {
		if !slices.ContainsFunc(now.pods, now.updated) {
			return errors.New(now.podCounts().String())
		}
		return nil
	}))
	for _, process := range managing {
		kill(s, process)
	}
	_, _, err := kubectl(s.Context(), "", "delete", "pod", pod.Name, "-n", s.namespace, "--dry-run=server",
		"--as=system:serviceaccount:kube-system:replicaset-controller")
	if err == nil || !strings.Contains(err.Error(), "moved-pods.stayput.dev") {
		t.Errorf("the pod runs its old container, and its deletion is answered with %v", err)
	}
	removeManagers(s)
	s.noneStaysOut(time.Now())
	s.rollsOut("web")
	s.kubectl("", "delete", "pod", slices.Collect(maps.Values(s.pods("web")))[0].Name, "--dry-run=server",
		"--as=system:serviceaccount:kube-system:replicaset-controller")
	restoreManagers(t)
	s.completes("web")
}

// killedWhen kills all managers when a pod is in that phase. Its containers take seconds to stop.
func killedWhen(t *testing.T, phase podPhase, drain string, create func(*scenario, ...option) string) {
	s := newDaemonScenario(t, with(stateful, drainSetting, drain))
	name := create(s, stopping)
	s.service(name, corev1.ServiceInternalTrafficPolicyCluster) // without a Service no pod waits for its drain
	s.offered(name)
	t.Cleanup(func() { restoreManagers(t) })
	before, managing := s.pods(name), s.managerProcesses()
	s.begin("killed", Rules{Created: anyNumber, Deleted: anyNumber, Spare: 1})
	s.setImage(name, "app=v2")
	s.wait("a pod that is "+string(phase), of(name, func(now workload) error {
		for _, pod := range now.pods {
			if was := before[pod.UID]; was != nil && isOut(pod) && phaseOf(was, pod, now.updated(pod)) == phase {
				return nil
			}
		}
		return errors.New(now.podCounts().String())
	}))
	for _, process := range managing {
		kill(s, process)
	}
	removeManagers(s)
	s.noneStaysOut(time.Now())
	s.rollsOut(name)
	s.runs(name, "v2")
	restoreManagers(t)
	s.completes(name)
}

// takenBack is how long a pod may stay out of service if no manager answers. Its kubelet looks every ten seconds.
const takenBack = 30 * time.Second

// noneStaysOut waits until no pod is out of service: each is Ready, or its container restarts, or a native controller has deleted it. It
// checks that this takes no longer since that moment than kubelets need.
func (s *scenario) noneStaysOut(since time.Time) { s.noneStaysOutFor(takenBack, since) }

func (s *scenario) noneStaysOutFor(most time.Duration, since time.Time) {
	s.Helper()
	s.wait("kubelets to put pods back into service", func(w world) error {
		for _, pod := range w.pods {
			if alive(pod) && isOut(pod) {
				return fmt.Errorf("pod %s is out of service", pod.Name)
			}
		}
		return nil
	})
	took := time.Since(since).Round(time.Second / 10)
	if s.Logf("no pod was out of service after %s", took); took > most {
		s.Errorf("a pod was out of service for %s although no manager answered", took)
	}
}

// managerProcesses returns the processes of all managers, so that a few signals are enough to kill them. There is at least one.
func (s *scenario) managerProcesses() []int {
	s.Helper()
	found := s.runningManagers()
	if len(found) == 0 {
		s.Fatal("no manager is on this machine")
	}
	return found
}

// runningManagers returns the processes of those managers that run now.
func (s *scenario) runningManagers() []int {
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
	return found
}

// leftBehind deletes a workload without its pods, while one pod is being drained for a restart. The restart will not come. The orphaned pod
// becomes Ready again, and no object of Stayput is left. A pod of a DaemonSet has no controller then, and its kubelet puts it back at once,
// however long its drain is. One of a Deployment still has its ReplicaSet, so it comes back when its drain has taken too long.
func leftBehind(t *testing.T, name string, rules Rules, create func(*scenario), meanwhile ...func(*scenario)) {
	labels := noticeably
	if isDaemonSet(name) {
		labels = unending
	}
	s := newScenario(t, labels)
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
	if isDaemonSet(name) {
		s.noneStaysOut(time.Now())
	}
	s.wait("every pod to be Ready", func(w world) error {
		for _, pod := range w.pods {
			if !ready(pod) {
				return fmt.Errorf("pod %s is not", pod.Name)
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

func podsLeftBehind(t *testing.T) {
	leftBehind(t, "web", inPlace, func(s *scenario) { s.create(web(4)) })
}

func daemonsLeftBehind(t *testing.T) {
	leftBehind(t, agents, inPlace, func(s *scenario) { s.install(agent()) })
}

// leftWithoutLeader does the same without a leader: the workload is gone before the next manager leads. As in managerKilled, native writes
// may bypass the dead webhook.
func leftWithoutLeader(t *testing.T) {
	long(t)
	t.Cleanup(func() { mended(t) })
	leftBehind(t, "web", anyChurn, func(s *scenario) { s.create(web(4)) }, func(s *scenario) { killProcess(s, s.leader()) })
}
