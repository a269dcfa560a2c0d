//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// partial checks updates that Stayput must leave in the middle. The native controller finishes them.
func partial(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"label removed":            unlabelledHalfway,
		"deleted without its pods": podsLeftBehind,
	})
	nightly(t, map[string]func(*testing.T){
		"deleted": deletedHalfway,
	})
}

// unlabelledHalfway checks that an update without the label ends natively. It waits until a pod restarts: anything that happens in the
// moment in which a pod is taken out of service comes too late for the native controller, which still counts that pod (see
// docs/explanation/limits.md).
func unlabelledHalfway(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, slow))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.reaches("web", threeway)
	s.begin("native", recreated)
	s.label(updateLabel + "-")
	s.completes("web")
	s.runs("web", "v2")
}

func deletedHalfway(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, slow))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.reaches("web", partly)
	// A native write that was held passes once the Deployment is gone, before the garbage collector runs.
	s.begin("deletion", Rules{Created: anyNumber, Deleted: atLeast(3), Outage: true})
	s.kubectl("", "delete", "deployment", "web", "--timeout=2m")
	s.wait("everything to be gone", func(w world) error {
		if left := len(w.pods) + len(w.sets); left > 0 {
			return fmt.Errorf("%d pods and %d ReplicaSets are left", len(w.pods), len(w.sets))
		}
		return nil
	})
}

// leader returns the pod of the manager that holds the Lease. The holder's identity begins with the pod's name.
func (s *scenario) leader() *corev1.Pod {
	s.Helper()
	var leader *corev1.Pod
	s.eventually("a leader", func(ctx context.Context) (err error) {
		leader, err = leadingPod(ctx)
		return err
	})
	return leader
}

// killProcess kills the manager in the pod before it can release its Lease.
func killProcess(s *scenario, pod *corev1.Pod) {
	s.Helper()
	process := managerProcess(s, pod)
	if process == 0 {
		s.Fatalf("no process of pod %s is on this machine", pod.Name)
	}
	kill(s, process)
}

// kill ends a process with SIGKILL, if it still runs.
func kill(s *scenario, process int) {
	s.Helper()
	send(s, process, syscall.SIGKILL)
}

// send sends a signal to a process, if it still runs.
func send(s *scenario, process int, signal syscall.Signal) {
	s.Helper()
	if err := syscall.Kill(process, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.Fatal(err)
	}
}

// managerProcess returns the ID of the manager's process in the pod, 0 if it does not run. The nodes of the test cluster are this machine.
func managerProcess(s *scenario, pod *corev1.Pod) int {
	s.Helper()
	for _, pid := range processes(s) {
		if runsIn(pid, pod) && commandOf(pid, "manager") {
			return pid
		}
	}
	return 0
}

// runsIn reports whether the process runs in the pod.
func runsIn(process int, pod *corev1.Pod) bool {
	return inCgroup(process, string(pod.UID))
}

// inCgroup reports whether the process is in a cgroup whose name contains id. systemd writes underscores there.
func inCgroup(process int, id string) bool {
	cgroup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", process))
	return strings.Contains(strings.ReplaceAll(string(cgroup), "-", "_"), strings.ReplaceAll(id, "-", "_"))
}

// commandOf reports whether the command line of the process contains the word.
func commandOf(process int, word string) bool {
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
	return strings.Contains(string(command), word)
}

func processes(s *scenario) []int {
	s.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		s.Fatal(err)
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// dismissManagers stops the managers with a regular shutdown.
func dismissManagers(s *scenario) {
	s.Helper()
	s.kubectl("", "-n", ownNamespace, "scale", "deployment", ownName, "--replicas=0")
	s.kubectl("", "-n", ownNamespace, "wait", "pods", "-l", managers.LabelSelector, "--for=delete", "--timeout=2m")
}

// managers selects the managers' pods.
var managers = metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + ownName}

// removeManagers removes the managers without a shutdown. A pod that is deleted by force is gone before its process is.
func removeManagers(s *scenario) {
	s.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(s.Context(), managers)
	if err != nil {
		s.Fatal(err)
	}
	s.kubectl("", "-n", ownNamespace, "scale", "deployment", ownName, "--replicas=0")
	s.kubectl("", "-n", ownNamespace, "delete", "pods", "-l", managers.LabelSelector, "--force", "--grace-period=0")
	s.eventually("the managers to be gone", func(ctx context.Context) error {
		for i := range pods.Items {
			if process := managerProcess(s, &pods.Items[i]); process != 0 {
				kill(s, process)
				return fmt.Errorf("%s was still running", pods.Items[i].Name)
			}
		}
		left, err := clients.CoreV1().Pods(ownNamespace).List(ctx, managers)
		if err == nil && len(left.Items) > 0 {
			return fmt.Errorf("%d are left", len(left.Items))
		}
		return err
	})
}

func restoreManagers(t *testing.T) {
	t.Helper()
	if _, _, err := kubectl(context.Background(), "", "-n", ownNamespace, "scale", "deployment", ownName, "--replicas=2"); err != nil {
		t.Error(err)
	}
	mended(t)
}

// mended waits until as many managers are ready as Stayput's Deployment asks for.
func mended(t *testing.T) {
	t.Helper()
	if err := poll(context.Background(), managersServe); err != nil {
		t.Errorf("Stayput did not come back: %v", err)
	}
}

// portWebhooks points Stayput's webhooks to a port of its Service.
func portWebhooks(t *testing.T, port int) {
	t.Helper()
	for _, configuration := range ownConfigurations(t) {
		var operations []string
		for i, hook := range configuration.Webhooks {
			if hook.own() {
				operations = append(operations, fmt.Sprintf(
					`{"op":"add","path":"/webhooks/%d/clientConfig/service/port","value":%d}`, i, port))
			}
		}
		_, _, err := kubectl(context.Background(), "", "patch", configuration.Kind, configuration.Metadata.Name,
			"--type=json", "-p", "["+strings.Join(operations, ",")+"]")
		if err != nil {
			t.Error(err)
		}
	}
}

// component stops or starts a component of the cluster.
func component(t *testing.T, verb, name string) {
	t.Helper()
	if output, err := exec.Command(filepath.Join(binaries, "cluster"), verb, name).CombinedOutput(); err != nil {
		t.Errorf("cluster %s %s: %v: %s", verb, name, err, output)
	}
}

// build runs a target of the Makefile.
func build(t *testing.T, target string) {
	t.Helper()
	if err := buildIn(repository, target); err != nil {
		t.Error(err)
	}
}

// buildIn runs a target of the Makefile in a folder, on this cluster.
func buildIn(folder, target string, variables ...string) error {
	command := exec.Command("make", append([]string{"-C", folder, target}, variables...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("make %s in %s: %w:\n%s", target, folder, err, output)
	}
	return nil
}

// builtImage returns the image that make image has pushed to the test cluster's registry.
func builtImage(t *testing.T) string {
	t.Helper()
	built, err := os.ReadFile(filepath.Join(binaries, "images", "stayput.image"))
	if err != nil {
		t.Fatalf("make image builds it: %v", err)
	}
	return strings.TrimSpace(string(built))
}
