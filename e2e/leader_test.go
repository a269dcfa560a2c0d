//go:build e2e

package e2e

import (
	"errors"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// step is a phase of a pod's way at which the leader dies, and what makes the phase last.
type step struct {
	phase podPhase
	drain string
	knobs []knob
}

// stepsOfLeader: only how long a pod is still Ready behind its closed gate is up to the kubelet. The kill follows in milliseconds.
var stepsOfLeader = []step{
	{gateClosed, "5s", nil},
	{drained, "5s", nil},
	{patched, "2s", []knob{stopping}},
	{running, "2s", []knob{slow}},
}

// leaderKilled: the leader dies at a step of a pod's way, and whoever follows finds the pod just there. As in managerKilled native
// writes may get past the dead webhook; the update ends well in any case, and no gate stays closed.
func leaderKilled(t *testing.T, step step) {
	long(t)
	labels := maps.Clone(labelled)
	labels[drainLabel] = step.drain
	s := newStage(t, labels)
	s.followSlices()
	s.create(web(4, step.knobs...))
	s.service("web", corev1.ServiceInternalTrafficPolicyCluster) // without one nobody waits for a drain
	s.offered("web")
	t.Cleanup(func() { mended(t) })
	before, leader := s.pods("web"), managerProcess(s, s.leader())
	if leader == 0 {
		t.Fatal("the leader is not on this machine")
	}
	s.begin("killed", anyChurn)
	s.setImage("web", "app=v2")
	s.wait("a pod that is "+string(step.phase), of("web", func(now workload) error {
		for _, pod := range now.pods {
			if was := before[pod.UID]; was != nil && phaseOf(was, pod, now.updated(pod)) == step.phase {
				return nil
			}
		}
		return errors.New(now.tally().String())
	}))
	kill(s, leader)
	s.completes("web")
	s.runs("web", "v2")
}

// stopping lets every pod take seconds to stop: so long it is patched and runs the old containers.
func stopping(d *appsv1.Deployment) {
	app := &d.Spec.Template.Spec.Containers[0]
	app.Env = append(app.Env, corev1.EnvVar{Name: "STOP_DELAY", Value: "3s"})
}
