//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// disturbances break what everybody shares.
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
	t.Run("leader killed, pods restarting", restartLeaderKilled)
	t.Run("leader killed, every kind of change", changesWithoutLeader)
	t.Run("every manager gone, every kind of change", changesWithoutManagers)
	t.Run("leader killed, pods left behind", leftWithoutLeader)
	t.Run("every manager killed", everyManagerKilled)
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
	t.Run("uninstalled", uninstalled)
}

// meeting is a stage on which workloads of both kinds live through the same disturbance. Each keeps its own rules.
type meeting struct {
	*stage
	names []string
}

// both are the workloads that mostly meet.
var both = []string{"web", agents}

// meet creates both at once.
func meet(t *testing.T, d *appsv1.Deployment, ds *appsv1.DaemonSet) meeting {
	t.Helper()
	m := meeting{newDaemonStage(t, labelled), both}
	m.submit(d)
	m.submitDaemonSet(ds)
	m.each(m.completes)
	return m
}

// outlasting lets half-way states outlast managers that are told to go: for five seconds and a little more they lead as ever (preStop in manifests/base/manager.yaml).
var outlasting = readyAfter("app", "9s")

// meetHalfway is a meeting whose updates to v2 are half-way.
func meetHalfway(t *testing.T) meeting {
	t.Helper()
	m := meet(t, web(3, outlasting), agent(templated(outlasting)))
	m.phase("in place", inPlace, inPlace)
	m.partial()
	return m
}

// each takes one after the other. All go on meanwhile, so that two waits last as long as the longer one.
func (m meeting) each(do func(name string)) {
	m.Helper()
	for _, name := range m.names {
		do(name)
	}
}

// phase starts a phase of each.
func (m meeting) phase(name string, deployment, daemonSet Rules) {
	m.Helper()
	m.begin(name, deployment.of("web"))
	m.begin(name, daemonSet.of(agents))
}

// setImages edits both with one command.
func (m meeting) setImages(tag string) {
	m.Helper()
	m.kubectl("", "set", "image", ref("web"), ref(agents), "app="+appImage(tag))
}

// partial begins both updates to v2 and waits until both have one pod on its way between others that are done and untouched: then
// both budgets are used up, and for seconds nobody begins with another pod. A workload of three is in this state once, one of four twice, with a shorter
// break between: they meet, also if one is a little faster.
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

// inPlace carries out an edit of both and demands that every pod lives through it.
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

// end waits until both run this version.
func (m meeting) end(tag string) {
	m.Helper()
	m.each(m.completes)
	m.each(func(name string) { m.runs(name, tag) })
}

// managerKilled: until the kubelet has noticed, the API server goes on calling the dead webhook, and what native writes get
// past it in that second is carried on as natively. What is left then is finished by another manager.
func managerKilled(t *testing.T) {
	m := meetHalfway(t)
	t.Cleanup(func() { mended(t) })
	m.phase("killed", anyChurn, anyChurn)
	killProcess(m.stage, m.leader())
	m.end("v2")
}

// leaderStopped: the leader stops half-way, as on a machine that hangs, another leads, and the first goes on where it was. Requests that reach it
// meanwhile are answered by nothing, so native writes may pass. Of two leaders together no more pods are unavailable than of one.
func leaderStopped(t *testing.T) {
	long(t)
	m := meetHalfway(t)
	t.Cleanup(func() { mended(t) })
	m.phase("stopped", anyChurn, anyChurn)
	leader := m.leader()
	process := managerProcess(m.stage, leader)
	send(m.stage, process, syscall.SIGSTOP)
	m.eventually("another leader", func(ctx context.Context) error {
		now, err := leadingPod(ctx)
		if err == nil && now.Name == leader.Name {
			err = fmt.Errorf("still %s", now.Name)
		}
		return err
	})
	send(m.stage, process, syscall.SIGCONT)
	m.end("v2")
}

// managerDeleted: it goes in good order, and another one finishes in place.
func managerDeleted(t *testing.T) {
	m := meet(t, web(4, slow), agent(lasting))
	t.Cleanup(func() { mended(t) })
	m.inPlace(func() {
		m.partial()
		onCluster(t, "-n", ownNamespace, "delete", "pod", m.leader().Name, "--wait=false")
	})
}

// managersGone, in good order: nobody holds anything any more, so the native controllers replace what is not updated yet.
func managersGone(t *testing.T) {
	m := meetHalfway(t)
	t.Cleanup(func() { restoreManagers(t) })
	m.phase("native", recreated, recreated)
	dismissManagers(m.stage)
	m.each(m.rollsOut)
	m.each(func(name string) { m.runs(name, "v2") })
	restoreManagers(t)
	m.each(m.completes)
}

// goneWhileEditing: half-way the managers vanish without a word, and the next edit finds nobody. Every pod is replaced, as natively;
// managers that come back take over what they find.
func goneWhileEditing(t *testing.T) {
	long(t)
	m := meetHalfway(t)
	before := m.podsOfEach()
	t.Cleanup(func() { restoreManagers(t) })
	m.phase("native", recreated, recreated)
	removeManagers(m.stage)
	m.setImages("v3")
	m.each(m.rollsOut)
	m.each(func(name string) { m.replaced(name, before[name]) })
	restoreManagers(t)
	m.end("v3")
	m.each(m.managed)
	m.inPlace(func() { m.setImages("v4") })
}

// webhookDown: the managers live, but the API server cannot reach them. They update in place while the native controllers, which
// nobody holds, replace pods.
func webhookDown(t *testing.T) {
	m := meet(t, web(4), agent())
	t.Cleanup(func() { portWebhooks(t, 443) })
	portWebhooks(t, 9)
	m.each(m.unmanaged)
	// Outage: of a DaemonSet, each of the two may take a pod before it sees that the other has.
	m.phase("webhook down", recreated, Rules{Created: some, Deleted: some, Outage: true})
	m.setImages("v2")
	m.end("v2")
	m.tells("web", "was not held", "begun a rollout with new pods")
	portWebhooks(t, 443)
	m.each(m.managed)
	m.inPlace(func() { m.setImages("v3") })
}

// controllerManagerRestarted: the native controllers forget everything they had in mind.
func controllerManagerRestarted(t *testing.T) {
	m := meet(t, web(4, slow), agent(lasting))
	t.Cleanup(func() { component(t, "start", "kube-controller-manager") })
	m.inPlace(func() {
		m.partial()
		component(t, "stop", "kube-controller-manager")
		component(t, "start", "kube-controller-manager")
	})
}

// uninstalled half-way: what is not updated yet is replaced, and nothing of Stayput is left on the pods' way.
func uninstalled(t *testing.T) {
	m := meetHalfway(t)
	t.Cleanup(func() { build(t, "install"); mended(t) })
	m.phase("native", recreated, anyChurn) // the pod of stayput uninstall has to start first, and three agents do not take long
	build(t, "uninstall")
	m.end("v2")
}
