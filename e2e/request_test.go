//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
)

// requested tests requests of one pod that containers restart.
func requested(t *testing.T) {
	scenarios, atNight := map[string]func(*testing.T){"waits": requestWaits}, map[string]func(*testing.T){
		"of two pods": requestsOfTwoPods,
		"not managed": requestNotManaged,
	}
	for kind, of := range kindsOfWorkloads {
		made := func(t *testing.T) { requestOfOnePod(t, of) }
		if kind == "Deployment" {
			scenarios[kind] = made
		} else {
			atNight[kind] = made
		}
	}
	together(t, scenarios)
	nightly(t, atNight)
}

// requestOfOnePod checks that the containers of one pod restart in the order given, in a pod that keeps its revision, and that nothing
// else happens.
func requestOfOnePod(t *testing.T, made kindOfWorkload) {
	s := made.scenario(t, labelled)
	made.create(s, withSide)
	before := s.pods(made.name)
	one := firstOf(before)
	s.begin("one pod", noUpdates)
	s.asks(one, "side,app")
	s.wait("both containers to restart", of(made.name, func(now workload) error {
		for _, pod := range now.pods {
			after := pod.UID == one.UID && startOf(pod, "side").After(startOf(one, "side")) && startOf(pod, "app").After(startOf(one, "app"))
			if after && ready(pod) {
				return nil
			}
		}
		return errors.New("they have not restarted, or the pod is not Ready")
	}))
	s.restartedAlone(made.name, before, one)
	s.rollout("status", made.name, "--timeout=1m")
}

// restartedAlone checks that side and app of that pod have restarted once, in that order, that the pod says so, and that no container of
// another pod has.
func (s *scenario) restartedAlone(name string, before map[types.UID]*corev1.Pod, one *corev1.Pod) {
	s.Helper()
	s.kept(name, before, restarts{"app": {0, 1}, "side": {0, 1}})
	for uid, pod := range s.pods(name) {
		times := 0
		if uid == one.UID {
			times = 1
		}
		s.restarted(before[uid], pod, restarts{"app": exactly(times), "side": exactly(times)})
		side, app, says := startOf(pod, "side"), startOf(pod, "app"), pod.Annotations[inplace.AnnotationRestarted]
		if times == 1 && (!app.After(side) || !strings.HasPrefix(says, "restarted side=") || !strings.Contains(says, ",app=")) {
			s.Errorf("in pod %s app started at %s, side at %s, and it says %q", pod.Name, app, side, says)
		}
	}
}

// asks writes a request to the pod, as any client may.
func (s *scenario) asks(pod *corev1.Pod, containers string) {
	s.Helper()
	s.kubectl("", "annotate", "pod", pod.Name, inplace.AnnotationRestartContainers+"="+containers)
}

// says waits until a pod of the workload has an answer that begins like this.
func (s *scenario) says(name, answer string) {
	s.Helper()
	s.wait("the answer "+answer, of(name, func(now workload) error {
		var all []string
		for _, pod := range now.pods {
			says := pod.Annotations[inplace.AnnotationRestarted]
			if strings.HasPrefix(says, answer) {
				return nil
			}
			all = append(all, says)
		}
		return fmt.Errorf("the answers are %q", all)
	}))
}

// requestWaits asks in the middle of an update that waits at its partition. The pod says that the request waits. When its deadline has
// passed, the request is refused. The second request is met after the update.
func requestWaits(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(2, setting(partitionSetting, "2")))
	one := firstOf(s.pods("web"))
	before := s.pods("web")
	s.begin("at the partition", noUpdates)
	s.setImage("web", "app=v2")
	s.asks(one, "app")
	s.says("web", "waiting app: an update of the Deployment is in progress")
	s.reported("Pod", "ContainerRestartWaits")
	s.kubectl("", "annotate", "pod", one.Name, inplace.AnnotationRestartDeadline+"=2020-01-01T00:00:00Z")
	s.says("web", "refused app: 2020-01-01T00:00:00Z has passed, and container app waited for an update of the Deployment")
	s.asks(one, "app")
	s.says("web", "waiting app: ")
	s.begin("lowered", inPlace)
	s.kubectl("", "annotate", "deployment", "web", partitionSetting+"-")
	s.says("web", "restarted app=")
	s.completes("web")
	s.kept("web", before, restarts{"app": {1, 2}})
}

// requestNotManaged asks for restarts where Stayput updates nothing in place. Where a request was told to wait and the namespace loses its
// label, it is refused, too.
func requestNotManaged(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(1, setting(updateLabel, "native")), web(1, named("clock"), setting(partitionSetting, "1")))
	before := s.pods("web")
	s.begin("refused", updatesOnly("clock"))
	s.asks(firstOf(before), "app")
	s.says("web", `refused app: not updated in place: label stayput.dev/update is "native"`)
	s.kept("web", before, restarts{})
	s.setImage("clock", "app=v2")
	s.asks(firstOf(s.pods("clock")), "app")
	s.says("clock", "waiting app: ")
	s.begin("unlabelled", recreated.of("clock"))
	s.label(updateLabel + "-")
	s.wait("no pod to wait for an answer", of("clock", func(now workload) error {
		for _, pod := range now.pods {
			if pod.DeletionTimestamp == nil && strings.HasPrefix(pod.Annotations[inplace.AnnotationRestarted], "waiting ") {
				return errors.New(pod.Name + " does")
			}
		}
		return nil
	}))
	s.rollsOut("clock")
	s.wait("no pre-pull pod", func(w world) error {
		now, err := w.workload("clock")
		if err != nil {
			return err
		}
		return w.pulled(now)
	})
}

// firstOf returns the pod with the first name.
func firstOf[K comparable](pods map[K]*corev1.Pod) *corev1.Pod {
	var all []*corev1.Pod
	for _, pod := range pods {
		all = append(all, pod)
	}
	return slices.MinFunc(all, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
}

// startOf returns when the container of that name started.
func startOf(pod *corev1.Pod, container string) time.Time {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container && status.State.Running != nil {
			return status.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}

// requestsOfTwoPods checks that two pods do not leave service at the same time where only one may, and that an edit in between is made in
// all pods.
func requestsOfTwoPods(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, slow))
	before := s.pods("web")
	s.begin("requests and an edit", inPlace)
	for _, pod := range before {
		s.asks(pod, "app")
	}
	s.wait("a pod to restart", of("web", func(now workload) error {
		for _, pod := range now.pods {
			if pod.Annotations[inplace.AnnotationRestarted] != "" {
				return nil
			}
		}
		return errors.New("none does")
	}))
	s.setImage("web", "app=v2")
	s.wait("all requests to be met", of("web", func(now workload) error { return unmet(now.pods, now.updated) }))
	s.completes("web")
	s.kept("web", before, restarts{"app": {2, 2}})
	s.runs("web", "v2")
}

// unmet returns an error if a pod has a request, is not Ready, or does not have the update revision.
func unmet(pods []*corev1.Pod, updated func(*corev1.Pod) bool) error {
	for _, pod := range pods {
		if pod.Annotations[inplace.AnnotationRestartContainers] != "" || !ready(pod) || !updated(pod) {
			return fmt.Errorf("pod %s has annotations %v", pod.Name, pod.Annotations)
		}
	}
	return nil
}

// halfwayOnRequest returns nil if the first of two containers of a pod restarts.
func halfwayOnRequest(now workload) error {
	for _, pod := range now.pods {
		if strings.Contains(pod.Annotations[inplace.AnnotationRestartContainers], "side=") && patchSeen(pod) {
			return nil
		}
	}
	return errors.New("none does")
}

// requestLeaderKilled kills the leader while containers restart on request, in a pod of each kind and each pod management policy. The next
// leader goes on: each container restarts once, and each pod says so.
func requestLeaderKilled(t *testing.T) {
	long(t)
	options := []option{withSide, readyAfter("side", "9s")}
	s := meeting{newStatefulScenario(t, with(stateful, drainSetting, "500ms")), []string{"web", agents, members, caches}}
	s.submit(web(2, options...))
	s.submitDaemonSet(agent(allTemplated(options)...))
	s.submitPolicies(2, allOfTemplate(options)...)
	s.each(s.completes)
	t.Cleanup(func() { mended(t) })
	before, leader := s.podsOfEach(), s.leader()
	s.begin("killed", noUpdates)
	s.each(func(name string) { s.asks(firstOf(before[name]), "side,app") })
	s.wait("a container of each to restart", func(w world) error {
		var missing error
		for _, name := range s.names {
			missing = errors.Join(missing, of(name, halfwayOnRequest)(w))
		}
		return missing
	})
	killProcess(s.scenario, leader)
	s.each(func(name string) {
		s.wait("the request of "+name+" to be met", of(name, func(now workload) error { return unmet(now.pods, now.updated) }))
		s.restartedAlone(name, before[name], firstOf(before[name]))
	})
}

// requestWithoutManagers removes every manager when the first of two containers restarts. The pod serves again, and the next managers go
// on.
func requestWithoutManagers(t *testing.T) {
	long(t)
	s := newScenario(t, labelled)
	s.create(web(2, withSide, readyAfter("side", "6s")))
	t.Cleanup(func() { restoreManagers(t) })
	before := s.pods("web")
	one := firstOf(before)
	managing := s.managerProcesses()
	s.begin("half-way", noUpdates)
	s.asks(one, "side,app")
	s.wait("the first container to restart", of("web", halfwayOnRequest))
	for _, process := range managing {
		kill(s, process)
	}
	removeManagers(s)
	s.wait("the pod to serve", of("web", func(now workload) error {
		for _, pod := range now.pods {
			if !ready(pod) {
				return fmt.Errorf("pod %s is not Ready", pod.Name)
			}
		}
		return nil
	}))
	s.kept("web", before, restarts{"side": {0, 1}})
	restoreManagers(t)
	s.wait("the request to be met", of("web", func(now workload) error { return unmet(now.pods, now.updated) }))
	s.kept("web", before, restarts{"side": {0, 1}, "app": {0, 1}})
}
