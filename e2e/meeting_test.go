//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// disturbances runs the scenarios that break shared components.
func disturbances(t *testing.T) {
	t.Run("manager killed", managerKilled)
	t.Run("leader stopped for a while", leaderStopped)
	t.Run("manager deleted", managerDeleted)
	t.Run("every manager gone", managersGone)
	t.Run("every manager gone while editing", goneWhileEditing)
	t.Run("webhook down while editing", webhookDown)
	t.Run("webhook down while an image crashes", downWhileCrashing)
	t.Run("kube-controller-manager restarted", controllerManagerRestarted)
	for _, step := range stepsOfLeader {
		t.Run("leader killed, "+string(step.phase), func(t *testing.T) { leaderKilled(t, step) })
	}
	t.Run("leader killed at a partition", partitionsLeaderKilled)
	t.Run("every manager gone at a partition", partitionsGone)
	t.Run("leader killed, a hook holds pods", hookLeaderKilled)
	t.Run("every manager gone, a hook holds pods", hooksWithoutManagers)
	t.Run("leader killed, pods restarting on request", requestLeaderKilled)
	t.Run("leader killed, every kind of change", changesWithoutLeader)
	t.Run("every manager gone, every kind of change", changesWithoutManagers)
	t.Run("every manager gone, one pod", requestWithoutManagers)
	t.Run("leader killed, pods left behind", leftWithoutLeader)
	t.Run("every manager killed", everyManagerKilled)
	t.Run("every manager gone, a pod moved", movedPodStays)
	t.Run("one pod drains", readyIsTakenBack)
	t.Run("node tainted", func(t *testing.T) {
		long(t)
		leavesAndReturns(t, tainted)
	})
	t.Run("node tolerated", nodeTolerated)
	t.Run("node removed and added", nodeRemoved)
	t.Run("kubelet stopped", kubeletStopped)
	t.Run("node lost", nodeLost)
	t.Run("changes by flags", changesByFlags)
	t.Run("only API servers are answered", onlyAPIServers)
	t.Run("limits", restartsWithinLimits)
	t.Run("checked", checks)
	t.Run("uninstalled", uninstalled)
}

// meeting is a scenario with a Deployment and a DaemonSet, and the same disturbance for both. Each workload has its own rules.
type meeting struct {
	*scenario
	names []string
}

// both are the workloads of most meetings.
var both = []string{"web", agents}

// meet creates both workloads at once.
func meet(t *testing.T, d *appsv1.Deployment, ds *appsv1.DaemonSet) meeting {
	t.Helper()
	m := meeting{newDaemonScenario(t, labelled), both}
	m.submit(d)
	m.submitDaemonSet(ds)
	m.each(m.completes)
	return m
}

// outlasting makes the middle of an update last longer than managers that are shutting down: these lead for a little more than five seconds
// (preStop in manifests/base/manager.yaml).
var outlasting = readyAfter("app", "9s")

// meetHalfway returns a meeting whose updates to v2 are in the middle, and whose pods take that long to become ready.
func meetHalfway(t *testing.T, delay option) meeting {
	t.Helper()
	m := meet(t, web(3, delay), agent(templated(delay)))
	m.phase("in place", inPlace, inPlace)
	m.partial()
	return m
}

// each calls do for one workload after another. The updates of all go on meanwhile, so two waits last as long as the longer one.
func (m meeting) each(do func(name string)) {
	m.Helper()
	for _, name := range m.names {
		do(name)
	}
}

// phase starts a phase for each workload.
func (m meeting) phase(name string, deployment, daemonSet Rules) {
	m.Helper()
	m.begin(name, deployment.of("web"))
	m.begin(name, daemonSet.of(agents))
}

// setImages edits all workloads with one command.
func (m meeting) setImages(tag string) {
	m.Helper()
	arguments := []string{"set", "image"}
	for _, name := range m.names {
		arguments = append(arguments, ref(name))
	}
	m.kubectl("", append(arguments, "app="+appImage(tag))...)
}

// partial begins both updates to v2, and waits until each has one pod in progress, besides done and untouched ones. Then both budgets are
// used up, and for seconds Stayput begins with no other pod. A workload of three pods is in this state once, one of four twice with a
// shorter break between. So both are in it at the same time, even if one is a little faster.
func (m meeting) partial() {
	m.Helper()
	m.setImages("v2")
	m.wait("both to be "+threeway.name, func(w world) error {
		for _, name := range both {
			if err := at(name, threeway)(w); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// inPlace makes an edit of both workloads and checks that no pod is replaced.
func (m meeting) inPlace(edit func()) {
	m.Helper()
	before := m.podsOfEach()
	m.phase("in place", inPlace, inPlace)
	edit()
	m.each(m.completes)
	m.each(func(name string) { m.kept(name, before[name], once) })
}

func (m meeting) podsOfEach() map[string]map[types.UID]*corev1.Pod {
	m.Helper()
	pods := map[string]map[types.UID]*corev1.Pod{}
	m.each(func(name string) { pods[name] = m.pods(name) })
	return pods
}

// end waits until all workloads run this version.
func (m meeting) end(tag string) {
	m.Helper()
	m.each(m.completes)
	m.each(func(name string) { m.runs(name, tag) })
}

// managerKilled kills the leader. Until the kubelet has noticed, the API server goes on calling the dead webhook. Native writes that bypass
// it in that second are continued as native. Another manager finishes the update.
func managerKilled(t *testing.T) {
	m := meetHalfway(t, slow)
	t.Cleanup(func() { mended(t) })
	m.phase("killed", anyChurn, anyChurn)
	killProcess(m.scenario, m.leader())
	m.end("v2")
}

// leaderStopped stops the leader's process in the middle of an update, as on a machine that hangs. Another manager leads, and then the
// first one continues. Requests to the stopped process get no answer, so native writes may bypass the webhook. Two leaders together must
// not make more pods unavailable than one.
func leaderStopped(t *testing.T) {
	long(t)
	m := meetHalfway(t, outlasting)
	t.Cleanup(func() { mended(t) })
	m.phase("stopped", anyChurn, anyChurn)
	leader := m.leader()
	process := managerProcess(m.scenario, leader)
	send(m.scenario, process, syscall.SIGSTOP)
	m.eventually("another leader", func(ctx context.Context) error {
		now, err := leadingPod(ctx)
		if err == nil && now.Name == leader.Name {
			err = fmt.Errorf("still %s", now.Name)
		}
		return err
	})
	send(m.scenario, process, syscall.SIGCONT)
	m.end("v2")
}

// managerDeleted shuts the leader down. Another manager finishes the update in place.
func managerDeleted(t *testing.T) {
	long(t)
	m := meet(t, web(4, slow), agent(lasting))
	t.Cleanup(func() { mended(t) })
	m.inPlace(func() {
		m.partial()
		onCluster(t, "-n", ownNamespace, "delete", "pod", m.leader().Name, "--wait=false")
	})
}

// managersGone shuts down all managers. No webhook holds writes any more, so the native controllers replace the pods that are not updated
// yet.
func managersGone(t *testing.T) {
	long(t)
	m := meetHalfway(t, outlasting)
	t.Cleanup(func() { restoreManagers(t) })
	m.phase("native", recreated, recreated)
	dismissManagers(m.scenario)
	m.each(m.rollsOut)
	m.each(func(name string) { m.runs(name, "v2") })
	restoreManagers(t)
	m.each(m.completes)
}

// goneWhileEditing removes the managers without a shutdown in the middle of an update, and edits the workloads then. Every pod is replaced,
// as natively. Managers that start later continue with the state that they find.
func goneWhileEditing(t *testing.T) {
	long(t)
	m := meetHalfway(t, outlasting)
	before := m.podsOfEach()
	t.Cleanup(func() { restoreManagers(t) })
	m.phase("native", recreated, recreated)
	removeManagers(m.scenario)
	m.setImages("v3")
	m.each(m.rollsOut)
	m.each(func(name string) { m.replaced(name, before[name]) })
	restoreManagers(t)
	m.end("v3")
	m.each(m.managed)
	m.inPlace(func() { m.setImages("v4") })
}

// webhookDown makes the managers unreachable for the API server. The managers update in place, while the native controllers, whose writes
// no webhook holds, replace pods.
func webhookDown(t *testing.T) {
	m := meet(t, web(4), agent())
	t.Cleanup(func() { portWebhooks(t, 443) })
	portWebhooks(t, 9)
	m.each(m.unmanaged)
	// Outage: Stayput and the DaemonSet controller may each make a pod of a DaemonSet unavailable before they see that the other has.
	m.phase("webhook down", Rules{Created: some, Deleted: some, Spare: 1}, Rules{Created: some, Deleted: some, Outage: true})
	m.setImages("v2")
	m.end("v2")
	m.tells("web", "was not held", "begun a rollout with new pods")
	portWebhooks(t, 443)
	m.each(m.managed)
	m.inPlace(func() { m.setImages("v3") })
}

// controllerManagerRestarted checks updates when the native controllers lose their state in memory.
func controllerManagerRestarted(t *testing.T) {
	m := meet(t, web(4, slow), agent(lasting))
	t.Cleanup(func() { component(t, "start", "kube-controller-manager") })
	m.inPlace(func() {
		m.partial()
		component(t, "stop", "kube-controller-manager")
		component(t, "start", "kube-controller-manager")
	})
}

// uninstalled uninstalls Stayput in the middle of an update. The native controllers replace the pods that are not updated yet, and nothing
// of Stayput affects the pods. Two pods of a StatefulSet take as long as the other updates, up to the moment when Stayput is uninstalled.
func uninstalled(t *testing.T) {
	m := meeting{newDaemonScenario(t, stateful), slices.Concat(both, []string{members, caches})}
	m.submit(web(6, outlasting)) // the update must outlast the start of the Job, also where that takes long
	m.submitDaemonSet(agent(templated(outlasting)))
	m.submitPolicies(2, ofTemplate(outlasting))
	m.each(m.completes)
	m.begin("in place", inPlace)
	m.partial()
	t.Cleanup(func() { build(t, "install"); mended(t) })
	for _, name := range []string{members, caches} {
		m.begin("native", Rules{Of: name, Created: anyNumber, Deleted: anyNumber, Outage: true})
	}
	m.phase("native", recreated, anyChurn) // the pod of stayput uninstall has to start first, and three agents may be done before that
	build(t, "uninstall")
	m.end("v2")
}
