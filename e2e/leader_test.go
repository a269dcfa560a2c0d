//go:build e2e

package e2e

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// step is a phase of a pod's update at which the leader is killed, and the setting that makes the phase last.
type step struct {
	phase   podPhase
	drain   string
	options []option
}

// stepsOfLeader are all phases. The kill follows within milliseconds.
var stepsOfLeader = []step{
	{drained, "5s", nil},
	{patched, "2s", []option{stopping}},
	{running, "2s", []option{slow}},
}

// leaderKilled kills the leader at a phase of a pod's update. The next leader finds the pod in that phase. As in managerKilled, native
// writes may bypass the dead webhook. The update completes in any case, and no pod stays out of service. StatefulSets of both pod
// management policies are updated at the same time.
func leaderKilled(t *testing.T, step step) {
	long(t)
	s := meeting{newStatefulScenario(t, with(stateful, drainSetting, step.drain)), []string{"web", members, caches}}
	s.submit(web(4, step.options...))
	s.submitPolicies(2, allOfTemplate(step.options)...)
	s.each(s.completes)
	s.service("web", corev1.ServiceInternalTrafficPolicyCluster) // without a Service no pod waits for a drain
	s.offered("web")
	t.Cleanup(func() { mended(t) })
	before, leader := s.pods("web"), managerProcess(s.scenario, s.leader())
	if leader == 0 {
		t.Fatal("the leader is not on this machine")
	}
	s.begin("killed", anyChurn)
	s.setImages("v2")
	s.wait("a pod that is "+string(step.phase), of("web", func(now workload) error {
		for _, pod := range now.pods {
			if was := before[pod.UID]; was != nil && phaseOf(was, pod, now.updated(pod)) == step.phase {
				return nil
			}
		}
		return errors.New(now.podCounts().String())
	}))
	kill(s.scenario, leader)
	s.end("v2")
}

// stopping makes every pod take seconds to stop. For that time it is patched and runs the old containers.
func stopping(d *appsv1.Deployment) {
	app := &d.Spec.Template.Spec.Containers[0]
	app.Env = append(app.Env, corev1.EnvVar{Name: "STOP_DELAY", Value: "3s"})
}
