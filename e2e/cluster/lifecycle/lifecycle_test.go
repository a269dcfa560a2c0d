package lifecycle

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

func TestMain(m *testing.M) {
	// A launcher does not remove what a killed cluster of another directory left on the machine, but a down after an up removes it.
	for _, step := range []string{"down", "up", "down"} {
		if output, err := exec.Command(launcher, step).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "these tests need root and what make cluster-build makes: cluster %s: %v\n%s", step, err, output)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func TestDownLeavesNothingBehind(t *testing.T) {
	before := machine(t)
	up(t)
	kubectl(t, "create", "deployment", "app", "--replicas=6", "--image="+plan.RegistryAddress+"/app:v1", "--port=8080")
	kubectl(t, "expose", "deployment", "app")
	kubectl(t, "rollout", "status", "deployment", "app", "--timeout=2m")
	if during := machine(t); during == before {
		t.Fatal("the machine looks the same with a cluster: this test cannot see what it leaves behind")
	}
	for _, which := range []string{"first", "second"} {
		mustCluster(t, "down")
		if after := machine(t); after != before {
			t.Fatalf("the machine is changed after the %s down:\n%s", which, difference(before, after))
		}
	}
}

func TestDownOfHalfDeadCluster(t *testing.T) {
	before := machine(t)
	up(t)
	for _, name := range []string{"etcd", "kube-apiserver", "containerd-node-1", "kubelet-node-2"} {
		crash(t, name)
	}
	if err := os.Remove(dir.Run("kube-proxy.json")); err != nil { // as after an interruption between start and record
		t.Fatal(err)
	}
	mustCluster(t, "down")
	if after := machine(t); after != before {
		t.Fatalf("the machine is changed after a half-dead cluster was taken down:\n%s", difference(before, after))
	}
}

func TestTakenPortIsNamedAndNothingStarted(t *testing.T) {
	listener, err := net.Listen("tcp", plan.RegistryAddress)
	if err != nil {
		t.Fatal(err)
	}
	before := machine(t)
	output, err := cluster(t, "up")
	if err == nil {
		t.Errorf("up succeeds although the registry's port is taken:\n%s", output)
	}
	for _, want := range []string{"port 5000", "registry", fmt.Sprintf("process %d", os.Getpid())} {
		if !strings.Contains(output, want) {
			t.Errorf("up says %q, want it to name %q", output, want)
		}
	}
	if after := machine(t); after != before {
		t.Errorf("up has changed the machine:\n%s", difference(before, after))
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	up(t)
}

func TestInterruptedUpGoesOn(t *testing.T) {
	signals, moments := []syscall.Signal{syscall.SIGKILL, syscall.SIGINT}, []string{"kubelet-node-1", "kube-apiserver", "etcd"}
	if testing.Short() {
		signals, moments = signals[:1], moments[:1]
	}
	for _, signal := range signals {
		for _, moment := range moments {
			t.Run(fmt.Sprintf("%s after the start of %s", signal, moment), func(t *testing.T) {
				mustCluster(t, "down")
				interruptUp(t, moment, signal)
				up(t)
			})
		}
	}
}

func TestRunningCluster(t *testing.T) {
	up(t)
	t.Run("a second up says so", func(t *testing.T) {
		pid := recorded(t, "kube-apiserver").PID
		if output := mustCluster(t, "up"); !strings.Contains(output, "is up already") {
			t.Errorf("up says %q, want that the cluster is up already", output)
		}
		if again := recorded(t, "kube-apiserver").PID; again != pid {
			t.Errorf("kube-apiserver is process %d after a second up, was %d", again, pid)
		}
	})
	t.Run("another version is refused", func(t *testing.T) { refused(t, "is Kubernetes v", "up", "--kubernetes-version", "v1.0.0") })
	t.Run("fewer nodes are refused", func(t *testing.T) { refused(t, "3 nodes", "up", "--nodes", "1") })
	t.Run("an unknown component is refused", func(t *testing.T) { refused(t, "kube-scheduler", "stop", "scheduler") })
	t.Run("components stop and start", componentsStopAndStart)
	t.Run("a half-dead cluster is repaired", halfDeadIsRepaired)
	t.Run("it can grow", canGrow)
}

func componentsStopAndStart(t *testing.T) {
	names := []string{"kube-controller-manager", "kubelet-node-2"}
	for _, how := range []string{"stop", "kill"} {
		mustCluster(t, append([]string{how}, names...)...)
		for _, name := range names {
			if recorded(t, name).Alive() {
				t.Errorf("%s is alive after %s", name, how)
			}
		}
		refused(t, "not ready: "+strings.Join(names, ", "), "status")
		mustCluster(t, append([]string{"start"}, names...)...)
		mustCluster(t, "status")
	}
}

func halfDeadIsRepaired(t *testing.T) {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-proxy", "registry", "containerd-node-1", "kubelet-node-2", "coredns",
		"cert-manager"} {
		crash(t, name)
	}
	if err := os.Remove(dir.Run("kube-scheduler.json")); err != nil {
		t.Fatal(err)
	}
	if output, err := cluster(t, "status"); err == nil {
		t.Fatalf("status finds nothing wrong:\n%s", output)
	}
	mustBeUp(t)
	kubectl(t, "run", "repaired", "--image="+plan.RegistryAddress+"/app:v1", `--overrides={"spec":{"nodeName":"node-1"}}`)
	kubectl(t, "wait", "--for=condition=Ready", "pod/repaired", "--timeout=2m")
}

func canGrow(t *testing.T) {
	mustCluster(t, "up", "--nodes", "4", "--simulated-nodes", "5")
	nodes := kubectl(t, "get", "nodes", "-o", "name")
	if want := 4 + 5; strings.Count(nodes, "node/") != want {
		t.Errorf("the nodes are\n%swant %d", nodes, want)
	}
	mustCluster(t, "status")
}

// up starts the cluster and takes it down when the test ends.
func up(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if output, err := exec.Command(launcher, "down").CombinedOutput(); err != nil {
			t.Errorf("cluster down: %v\n%s", err, output)
		}
	})
	mustBeUp(t)
}

// mustBeUp starts the missing components and checks that the cluster is complete.
func mustBeUp(t *testing.T) {
	t.Helper()
	mustCluster(t, "up")
	mustCluster(t, "status")
	ready := kubectl(t, "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
	if ready != "True True True" {
		t.Fatalf("three nodes are Ready: %q", ready)
	}
}

// interruptUp sends signal to an up that has started the component called moment.
func interruptUp(t *testing.T, moment string, signal syscall.Signal) {
	t.Helper()
	command := exec.CommandContext(t.Context(), launcher, "up")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the start of "+moment, func() bool { return recorded(t, moment).Alive() })
	if err := command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil {
		t.Errorf("up succeeds after signal %s", signal)
	}
}

// crash kills a component without the launcher.
func crash(t *testing.T, name string) {
	t.Helper()
	running := recorded(t, name)
	if err := running.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := running.WaitGone(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// refused checks that the command fails with a sentence that contains want.
func refused(t *testing.T, want string, arguments ...string) {
	t.Helper()
	output, err := cluster(t, arguments...)
	if err == nil || !strings.Contains(output, want) {
		t.Errorf("cluster %s: %v, says %q, want a failure with %q", strings.Join(arguments, " "), err, output, want)
	}
}

// await waits for a condition until the test would time out.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, t.Context().Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func mustCluster(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := cluster(t, arguments...)
	if err != nil {
		logged, _ := cluster(t, "logs") // the logs are removed with the cluster, when the test ends
		t.Fatalf("cluster %s: %v\n%s\n%s", strings.Join(arguments, " "), err, output, logged)
	}
	return output
}

func cluster(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), launcher, arguments...).CombinedOutput()
	return string(output), err
}

func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	arguments = append([]string{"--kubeconfig=" + dir.Kubeconfig()}, arguments...)
	output, err := exec.CommandContext(t.Context(), dir.Bin("kubectl"), arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strconv.Quote(strings.Join(arguments, " ")), err, output)
	}
	return string(output)
}
