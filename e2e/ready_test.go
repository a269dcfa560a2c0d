//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
)

// outMessage returns the message of such a Ready.
func outMessage(until time.Time) string {
	return "Stayput keeps the pod out of service before its containers restart, at most until " + until.UTC().Format(time.RFC3339)
}

// readyOnlyWithContainers checks every state of a pod that was ever stored: Ready is what its containers and its gates say, unless Stayput
// has taken it out of service.
func readyOnlyWithContainers(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(4))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.completes("web")
	for _, wrong := range s.recorder.unlikeItself() {
		s.Error(wrong)
	}
	s.allWereOut("web")
	s.isReadySince("web")
	s.leavesNothing("web")
}

// isReadySince checks that the Ready of each pod of a workload has its transition after the pod was out of service. Otherwise the pod would
// count as available at once.
func (s *scenario) isReadySince(name string) {
	s.Helper()
	out := map[types.UID]time.Time{}
	for _, e := range s.recorder.inOrder() {
		if pod, is := e.object.(*corev1.Pod); is && isOut(pod) {
			out[pod.UID] = conditionOf(pod, corev1.PodReady).LastTransitionTime.Time
		}
	}
	for _, pod := range s.pods(name) {
		if condition := conditionOf(pod, corev1.PodReady); condition.LastTransitionTime.Time.Before(out[pod.UID]) {
			s.Errorf("pod %s was out of service at %s, and its Ready is %+v", pod.Name, out[pod.UID], *condition)
		}
	}
}

// leavesNothing checks that the pods of a workload have the Ready of their kubelets, and no condition of Stayput.
func (s *scenario) leavesNothing(name string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		if condition := conditionOf(pod, corev1.PodReady); condition.Reason != "" || condition.Message != "" {
			s.Errorf("the Ready of pod %s is %+v", pod.Name, *condition)
		}
		for _, each := range pod.Status.Conditions {
			if strings.HasPrefix(string(each.Type), "stayput.dev/") {
				s.Errorf("pod %s has the condition %+v", pod.Name, each)
			}
		}
	}
}

// staysFor is how long a pod is out of service in these scenarios: for two of its kubelet's looks, which come every ten seconds.
const staysFor = 25 * time.Second

// readyStaysOut checks that a pod that drains is never Ready as long as managers answer, whatever its kubelet reports meanwhile. A label of
// the workload ends the drain. Without a readiness probe the kubelet may never see that the pod was not Ready.
func readyStaysOut(t *testing.T, options ...option) {
	s := newScenario(t, unending)
	s.create(web(2, append(options, minReadySeconds(3))...))
	before := s.takesOneOut()
	s.passes(staysFor)
	s.wait("a pod to be still out of its Service", draining("web"))
	s.kubectl("", "annotate", ref("web"), drainSetting+"=500ms")
	s.completes("web")
	s.outUntilStopped()
	s.kept("web", before, once)
	s.isReadySince("web")
	s.leavesNothing("web")
}

// unprobed takes the readiness probe off the application.
func unprobed(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].ReadinessProbe = nil }

// outUntilStopped checks that no pod that was out of service has been Ready before its container stopped. A kubelet that is slow can report
// the old container and the answer of the new one to its probe, but then it has seen before that the old one does not answer.
func (s *scenario) outUntilStopped() {
	s.Helper()
	out, stopped := map[types.UID]*corev1.Pod{}, map[types.UID]bool{}
	for _, e := range s.recorder.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if !is || stopped[pod.UID] {
			continue
		}
		if isOut(pod) && out[pod.UID] == nil {
			out[pod.UID] = pod
		}
		was := out[pod.UID]
		if was == nil {
			continue
		}
		stopped[pod.UID] = patchSeen(pod)
		if ready(pod) && stillRuns(was, pod) {
			s.Errorf("pod %s was out of service, and at version %s it is Ready while its old container runs", pod.Name, pod.ResourceVersion)
		}
	}
}

// stillRuns reports whether the first container is the one that it was.
func stillRuns(was, is *corev1.Pod) bool {
	before, now := was.Status.ContainerStatuses, is.Status.ContainerStatuses
	return len(before) > 0 && len(now) > 0 && now[0].ContainerID == before[0].ContainerID && now[0].State.Running != nil
}

// readyIsTakenBack ends what keeps a pod out of service that drains for a restart of its own.
func readyIsTakenBack(t *testing.T) {
	killAll := func(s *scenario) {
		for _, process := range s.managerProcesses() {
			kill(s, process)
		}
		removeManagers(s)
	}
	for what, happens := range map[string]func(s *scenario, node string){
		"every manager killed": func(s *scenario, _ string) { killAll(s) },
		"every manager killed, its kubelet restarted": func(s *scenario, node string) {
			killAll(s)
			s.stopKubelet(node)
			startKubelet(s.T, node)
		},
		"label removed": func(s *scenario, _ string) { s.label(updateLabel + "-") },
	} {
		t.Run(what, func(t *testing.T) { isTakenBackWhen(t, happens) })
	}
}

// isTakenBackWhen checks that the pod is Ready again soon after that. No update is in progress, so no controller deletes the pod: its
// kubelet makes it Ready.
func isTakenBackWhen(t *testing.T, happens func(s *scenario, node string)) {
	long(t)
	s := newScenario(t, unending)
	s.create(web(2))
	s.service("web", corev1.ServiceInternalTrafficPolicyCluster)
	s.offered("web")
	t.Cleanup(func() { restoreManagers(t) })
	before := s.pods("web")
	one := firstOf(before)
	s.begin("drained", Rules{Created: none, Deleted: none, UpdatesOnly: "none", Outage: true})
	s.asks(one, "app")
	s.wait("the pod to be out of its Service", func(w world) error {
		if pod := w.pods[one.UID]; !isOut(pod) || w.offers(pod) {
			return errors.New("it is not: " + describePod(pod))
		}
		return nil
	})
	happens(s, one.Spec.NodeName)
	s.noneStaysOut(time.Now())
	s.offered("web")
	s.kept("web", before, nil)
	s.leavesNothing("web")
	s.kubectl("", "annotate", "pod", one.Name, inplace.AnnotationRestartContainers+"-") // the next managers would do what it asks for
}

// readyAfterStartup tests a startup probe. Kubelets 1.35 and 1.36 report a container as started when it has just restarted, and take that
// back with the next run of the startup probe (kubernetes#141155). The judge checks that no other pod is taken out of service in between.
func readyAfterStartup(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, rolling("1", "0"), starting))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.completes("web")
}

// starting gives the application a startup probe besides its readiness probe, with fewer runs.
func starting(d *appsv1.Deployment) {
	app := &d.Spec.Template.Spec.Containers[0]
	app.StartupProbe = app.ReadinessProbe.DeepCopy()
	app.StartupProbe.PeriodSeconds, app.StartupProbe.FailureThreshold = 3, 30
}

// unlikeItself returns the states of pods, of all that were ever stored, in which Ready differs from ContainersReady and all gates, and
// Stayput has not taken the pod out of service.
func (r *Recorder) unlikeItself() []string {
	var wrong []string
	for _, e := range r.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if !is || isOut(pod) {
			continue
		}
		containers := conditionOf(pod, corev1.ContainersReady)
		should := allGatesOpen(pod) && containers != nil && containers.Status == corev1.ConditionTrue
		if ready(pod) != should {
			wrong = append(wrong, fmt.Sprintf("pod %s at version %s: Ready is %t, and should be %t", pod.Name, pod.ResourceVersion,
				ready(pod), should))
		}
	}
	return wrong
}

// allGatesOpen looks at the gates of other controllers, and at that of pre-pull pods, which never opens.
func allGatesOpen(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		c := conditionOf(pod, g.ConditionType)
		return c == nil || c.Status != corev1.ConditionTrue
	})
}
