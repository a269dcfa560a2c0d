//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// pacing checks that updates do not wait without a reason.
func pacing(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"a port of the node": portOfTheNode,
	})
	nightly(t, map[string]func(*testing.T){
		"preStop counts":    preStopCounts,
		"no client is sent": noClientSent,
		"slow to stop":      slowToStop,
	})
}

// slowToStop checks that a container that takes longer to stop than the deadline does not fail the rollout: `rollout status` follows it to
// its success.
func slowToStop(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(1, rolling("1", "0"), progressDeadline(20), stopsAfter("25s", 40)))
	s.inPlace("web", once, func() {
		s.expectIn(s.setImage("web", "app=v2"),
			"progressDeadlineSeconds of 20s: a pod may take 500ms to drain (stayput.dev/drain) and 40s to stop")
		s.rollout("status", "web", "--timeout=2m")
	})
}

// stopsAfter makes the first container take delay to stop, with a grace period of so many seconds.
func stopsAfter(delay string, grace int64) option {
	return func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		spec.TerminationGracePeriodSeconds = &grace
		spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "STOP_DELAY", Value: delay})
	}
}

// noticeable is a drain much longer than an update that waits for no drain.
const noticeable = 30 * time.Second

var noticeably = with(labelled, drainSetting, noticeable.String())

// noClientSent checks that pods that no Service selects restart one after another in less time than the drain of the first would take.
func noClientSent(t *testing.T) {
	s := newScenario(t, noticeably)
	s.create(web(2))
	s.watchedFor(noticeable)
	began := time.Now()
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	if took := time.Since(began); took >= noticeable {
		t.Errorf("an update of pods that no Service selects took %s", took.Round(time.Second))
	}
}

// watchedFor waits until every manager has been Ready for that long. Before that no manager assumes that no client uses a pod.
func (s *scenario) watchedFor(long time.Duration) {
	s.Helper()
	s.eventually("managers that have watched for "+long.String(), func(ctx context.Context) error {
		pods, err := clients.CoreV1().Pods(ownNamespace).List(ctx, managers)
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if condition := conditionOf(&pods.Items[i], corev1.PodReady); condition == nil ||
				time.Since(condition.LastTransitionTime.Time) <= long+time.Second {
				return fmt.Errorf("manager %s has not been Ready for as long", pods.Items[i].Name)
			}
		}
		return nil
	})
}

// preStopCounts checks that a container with a preStop sleep as long as the drain is patched at once.
func preStopCounts(t *testing.T) {
	s := newScenario(t, with(labelled, drainSetting, preStopSleep.String()))
	s.create(web(2, sleepingFor(preStopSleep)))
	s.service("web", corev1.ServiceInternalTrafficPolicyCluster)
	s.offered("web")
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.patchedOnlyWhen("web", unoffered)
	s.patchedWithin("web", preStopSleep)
}

const preStopSleep = 10 * time.Second

// sleepingFor makes the application serve for some more seconds when it is told to stop.
func sleepingFor(pause time.Duration) option {
	return func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Sleep: &corev1.SleepAction{Seconds: int64(pause.Seconds())}}}
		spec.TerminationGracePeriodSeconds = new(int64(2 * pause.Seconds()))
	}
}

// patchedWithin replays the events, and checks that pods of a workload were patched within limit after they were taken out of service.
func (s *scenario) patchedWithin(name string, limit time.Duration) {
	s.Helper()
	w := newWorld()
	for _, e := range s.recorder.inOrder() {
		before := w.pods[e.object.GetUID()]
		if before != nil && w.workloadOf(before) == name && repatched(before, e) {
			if waited := e.at.Sub(conditionOf(before, corev1.PodReady).LastTransitionTime.Time); waited >= limit {
				s.Errorf("pod %s was patched %s after it was taken out of service", before.Name, waited.Round(time.Second))
			}
		}
		w.apply(e)
	}
}

// portOfTheNode tests a pod on each of three nodes with the same host port. Natively a fourth pod finds no node.
func portOfTheNode(t *testing.T) {
	s := newScenario(t, surging)
	s.create(web(3, takingPort(18079)))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.runs("web", "v2")
}

// takingPort makes every pod use a host port, whatever port the pod listens on.
func takingPort(port int32) option {
	return func(d *appsv1.Deployment) {
		app := &d.Spec.Template.Spec.Containers[0]
		app.Ports = append(app.Ports, corev1.ContainerPort{Name: "node", ContainerPort: 8079, HostPort: port})
	}
}

// apart permits at most one pod on a node.
func apart(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname,
			LabelSelector: d.Spec.Selector}}}}
}

func says(message string, parts ...string) error {
	if !containsAll(message, parts) {
		return fmt.Errorf("it says %q", message)
	}
	return nil
}
