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

	"github.com/stayput/stayput/inplace"
)

// requested tests requests of one pod that containers restart: kubectl stayput restart pod/NAME.
func requested(t *testing.T) {
	scenarios := map[string]func(*testing.T){"refused": requestRefused, "of two pods": requestsOfTwoPods}
	for kind, of := range kindsOfWorkloads {
		scenarios[kind] = func(t *testing.T) { requestOfOnePod(t, of) }
	}
	together(t, scenarios)
}

// requestOfOnePod checks that the containers of one pod restart in the order given, in a pod that keeps its revision, and that nothing
// else happens.
func requestOfOnePod(t *testing.T, of kindOfWorkload) {
	s := of.stage(t, labelled)
	of.create(s, withSide)
	before := s.pods(of.name)
	one := firstOf(before)
	s.begin("one pod", frozenBut("none"))
	s.answers("", 0, []string{"pod/" + one.Name + ": restarts side, app", "restarted side="},
		"restart", "pod/"+one.Name, "-c", "side", "-c", "app", "--timeout=1m")
	after := s.pods(of.name)
	s.kept(of.name, before, restarts{"app": {0, 1}, "side": {0, 1}})
	for uid, pod := range after {
		times := 0
		if uid == one.UID {
			times = 1
		}
		s.restarted(before[uid], pod, restarts{"app": exactly(times), "side": exactly(times)})
	}
	if side, app := startOf(after[one.UID], "side"), startOf(after[one.UID], "app"); !app.After(side) {
		t.Errorf("app started at %s, side at %s", app, side)
	}
	s.rollout("status", of.name, "--timeout=1m")
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

// requestRefused checks that the pod says why, also to a client that writes the annotation itself, and that nothing restarts.
func requestRefused(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(1))
	before := s.pods("web")
	pod := firstOf(before)
	s.begin("refused", frozenBut("none"))
	s.answers("", 1, []string{"has no container or sidecar ghost"}, "restart", "pod/"+pod.Name, "-c", "ghost")
	s.answers("", 1, []string{"pods would be replaced", "the template has no container or sidecar ghost to restart"},
		"restart", "deployment/web", "-c", "ghost")
	s.kubectl("", "annotate", "pod", pod.Name, inplace.AnnotationRestartContainers+"=ghost")
	s.wait("the request to be refused", of("web", func(now workload) error {
		for _, pod := range now.pods {
			if pod.Annotations[inplace.AnnotationRestarted] == "refused ghost: the pod has no container or sidecar ghost" {
				return nil
			}
		}
		return errors.New("it is not")
	}))
	s.kept("web", before, restarts{})
}

// requestsOfTwoPods checks that two pods do not leave service at the same time where only one may, and that an edit in between is made in
// all pods.
func requestsOfTwoPods(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3, slow))
	before := s.pods("web")
	s.begin("requests and an edit", inPlace)
	for _, pod := range before {
		s.kubectl("", "annotate", "pod", pod.Name, inplace.AnnotationRestartContainers+"=app")
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

// requestWithoutManagers removes every manager when the first of two containers restarts. The pod serves again, and the next managers go
// on.
func requestWithoutManagers(t *testing.T) {
	long(t)
	s := newStage(t, labelled)
	s.create(web(2, withSide, readyAfter("side", "6s")))
	t.Cleanup(func() { restoreManagers(t) })
	before := s.pods("web")
	one := firstOf(before)
	managing := s.managerProcesses()
	s.begin("half-way", frozenBut("none"))
	s.kubectl("", "annotate", "pod", one.Name, inplace.AnnotationRestartContainers+"=side,app")
	s.wait("the first container to restart", of("web", func(now workload) error {
		for _, pod := range now.pods {
			if strings.Contains(pod.Annotations[inplace.AnnotationRestartContainers], "side=") && patchSeen(pod) {
				return nil
			}
		}
		return errors.New("it does not")
	}))
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
