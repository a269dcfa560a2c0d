//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// restarting are labels with which a rollout restart restarts containers in place.
var restarting = with(labelled, restartSetting, "kubectl.kubernetes.io/restartedAt")

// kindOfWorkload is what scenarios for several kinds need to know of a kind.
type kindOfWorkload struct {
	name     string
	scenario func(t *testing.T, labels map[string]string) *scenario
	// create creates a workload of three pods.
	create func(s *scenario, options ...option)
}

var kindsOfWorkloads = map[string]kindOfWorkload{
	"Deployment": {"web", newScenario, func(s *scenario, options ...option) { s.create(web(3, options...)) }},
	"DaemonSet": {agents, newDaemonScenario, func(s *scenario, options ...option) {
		s.install(agent(allTemplated(options)...))
	}},
	"StatefulSet": {members, newAskingScenario, func(s *scenario, options ...option) {
		s.form(db(3, allOfTemplate(options)...))
	}},
}

// restart tests kubectl rollout restart and other ways to restart, with and without the label.
func restart(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"a key of the workload": restartByKey,
		"variable":              restartForVariable,
	})
	nightly(t, map[string]func(*testing.T){
		"crash just before": restartAfterCrash,
	})
}

const restartedAt = "kubectl.kubernetes.io/restartedAt"

// restartByKey checks that the workload's owner chooses the annotations that restart it, as charts do with checksums of their
// configuration.
func restartByKey(t *testing.T) {
	s := newScenario(t, restarting)
	s.create(web(3))
	sum := func(value string) func() {
		return func() {
			s.patch("web", `{"spec":{"template":{"metadata":{"annotations":{"checksum/config":"`+value+`"}}}}}`)
		}
	}
	s.recreated("web", sum("1"))
	s.kubectl("", "annotate", "deployment", "web", "stayput.dev/restart-annotations=checksum/config,reloader.example/*")
	s.inPlace("web", once, sum("2"))
	s.inPlace("web", once, func() {
		s.patch("web", `{"spec":{"template":{"metadata":{"annotations":{"reloader.example/at":"now"}}}}}`)
	})
}

// restartForVariable checks that a container restarts with the new value of a label that its variable reads, and no other container
// restarts. That needs no label for restarts. Without the label on the template, the variable is empty.
func restartForVariable(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, withSide, readsTier))
	for _, tier := range []string{`"back"`, "null", `"front"`} {
		s.inPlace("web", once, func() {
			s.expectIn(s.setTier("web", tier), "in place: restarts app\n", "variables read label tier (app)")
		})
		s.haveRead("web", tier)
	}
	s.inPlace("web", once, func() { s.rollout("undo", "web") })
	s.haveRead("web", "null")
}

const tierLabel = "tier"

// readsTier makes the label tier of a pod the version that its application answers with.
func readsTier(d *appsv1.Deployment) {
	app := &d.Spec.Template.Spec.Containers[0]
	app.Env = append(app.Env, corev1.EnvVar{Name: "VERSION", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + tierLabel + "']"}}})
}

// setTier sets the label tier of the workload's template to that JSON value; null removes it.
func (s *scenario) setTier(name, tier string) string {
	s.Helper()
	return s.patch(name, `{"spec":{"template":{"metadata":{"labels":{"`+tierLabel+`":`+tier+`}}}}}`)
}

// haveRead checks that the running application of each pod has that tier.
func (s *scenario) haveRead(name, tier string) {
	s.Helper()
	want := strings.Trim(strings.Replace(tier, "null", "", 1), `"`)
	for _, pod := range s.pods(name) {
		answer := s.kubectl("", "exec", pod.Name, "-c", "app", "--", "/app", "get", "http://127.0.0.1:8080/")
		if got := strings.TrimSpace(answer); got != want || pod.Labels[tierLabel] != want {
			s.Errorf("pod %s has label %q, and its application answers %q, not %q", pod.Name, pod.Labels[tierLabel], got, want)
		}
	}
}

// restartAfterCrash checks that containers that fail while their pod is drained start as before, and are restarted nevertheless.
func restartAfterCrash(t *testing.T) {
	s := newScenario(t, with(restarting, drainSetting, "3s"))
	s.create(web(2))
	s.service("web", corev1.ServiceInternalTrafficPolicyCluster)
	s.offered("web")
	before := s.pods("web")
	s.begin("crash", Rules{Created: none, Deleted: none, Outage: true})
	s.rollout("restart", "web")
	s.wait("a pod to be out of service", of("web", func(now workload) error {
		for _, pod := range now.pods {
			if isOut(pod) {
				return nil
			}
		}
		return fmt.Errorf("%s", now.podCounts())
	}))
	for _, pod := range s.pods("web") {
		for _, process := range processesOf(s, pod) {
			kill(s, process)
		}
	}
	s.completes("web")
	s.kept("web", before, restarts{"app": {1, 2}})
}

// processesOf returns the processes of the pod's containers and its sandbox. The nodes of the test cluster are this machine.
func processesOf(s *scenario, pod *corev1.Pod) []int {
	s.Helper()
	return slices.DeleteFunc(processes(s), func(process int) bool {
		return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
			_, id, known := strings.Cut(status.ContainerID, "://")
			return known && inCgroup(process, id)
		})
	})
}
