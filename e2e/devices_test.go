//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// devices checks servers on each node's only device that load weights into an emptyDir. In place they keep both. Natively, a rolling update
// waits for a second device, and Recreate loads the weights again.
func devices(t *testing.T) {
	nightly(t, map[string]func(*testing.T){
		"device plugin": devicePlugged,
		"ResourceClaim": deviceClaimed,
	})
}

func devicePlugged(t *testing.T) {
	s := newScenario(t, asShipped(surging))
	s.plug(gpu)
	s.keepsDevices(taking(gpu))
}

func deviceClaimed(t *testing.T) {
	startDrivers(t)
	s := newScenario(t, asShipped(surging))
	s.kubectl(fmt.Sprintf(oneDevice, s.namespace, draDriver), "apply", "-f", "-")
	s.afterwards = append(s.afterwards, func() {
		if _, _, err := kubectl(context.Background(), "", "delete", "deviceclass", s.namespace); err != nil {
			s.Error(err)
		}
	})
	s.keepsDevices(claiming)
}

const (
	gpu       = "example.com/gpu"
	draDriver = "gpu.example.com"
)

// loading is how long weights take. docs/how-to/gpu.md has the figures that timed prints.
var loading = cmp.Or(os.Getenv("WEIGHTS"), "5s")

func (s *scenario) keepsDevices(take option) {
	s.Helper()
	nodes := len(kubelets(s.T))
	s.create(web(int32(nodes), weights, take))
	s.expose("web")
	before := s.holding()
	s.timed("in place", func() { s.inPlace("web", once, func() { s.setImage("web", "app=v2") }) })
	if after := s.holding(); !maps.Equal(after, before) {
		s.Errorf("pods had %v, and now %v", before, after)
	}
	s.kubectl("", "label", "deployment/web", updateLabel+"=native")
	old := s.pods("web")
	s.begin("natively", Rules{Created: exactly(nodes), Deleted: exactly(nodes), Outage: true})
	s.setImage("web", "app=v3")
	s.timed("RollingUpdate, until it waits", func() { s.wait("a pod without a device", of("web", s.unschedulable)) })
	s.timed("Recreate", func() {
		s.patch("web", `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`)
		s.completes("web")
	})
	s.replaced("web", old)
}

func (s *scenario) timed(what string, happens func()) {
	s.Helper()
	from := time.Now()
	happens()
	s.Logf("%s, with weights of %s: %.1fs", what, loading, time.Since(from).Seconds())
}

func (s *scenario) unschedulable(now workload) error {
	for _, pod := range now.pods {
		if scheduled := conditionOf(pod, corev1.PodScheduled); scheduled != nil && scheduled.Reason == corev1.PodReasonUnschedulable {
			s.Log(scheduled.Message)
			return nil
		}
	}
	return errors.New("the scheduler finds a node for each")
}

// deviceVariable is how a container sees its device: as e2e/systems/device gives it, or Kubernetes' own driver.
var deviceVariable = regexp.MustCompile(`(DEVICE|claim_\w+)=[\w-]+`)

// holding returns what each pod has: its device, its ResourceClaims, and weights since when.
func (s *scenario) holding() map[types.UID]string {
	s.Helper()
	held := map[types.UID]string{}
	for uid, pod := range s.pods("web") {
		device := deviceVariable.FindString(s.kubectl("", "exec", pod.Name, "--", "/app", "show", "/proc/self/environ"))
		if device == "" {
			s.Errorf("the container of pod %s has no device", pod.Name)
		}
		held[uid] = device + " " + pod.Status.InitContainerStatuses[0].State.Terminated.FinishedAt.String()
		for _, claim := range pod.Status.ResourceClaimStatuses {
			held[uid] += " " + *claim.ResourceClaimName
		}
	}
	return held
}

// weights adds an init container that fills an emptyDir.
func weights(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	folder := []corev1.VolumeMount{{Name: "weights", MountPath: "/weights"}}
	spec.Volumes, spec.Containers[0].VolumeMounts = []corev1.Volume{emptyFolder("weights")}, folder
	spec.InitContainers = []corev1.Container{{Name: "load", Image: appImage("v1"), Args: []string{"fill", "/weights"},
		Env: []corev1.EnvVar{{Name: "START_DELAY", Value: loading}}, VolumeMounts: folder}}
}

func emptyFolder(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// taking has each pod take one of an extended resource.
func taking(name corev1.ResourceName) option {
	one := corev1.ResourceList{name: resource.MustParse("1")}
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: one, Requests: one}
	}
}

// claiming has each pod make a claim from the template gpu.
func claiming(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
	spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
}

const oneDevice = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: %[1]s
spec:
  selectors:
    - cel:
        expression: device.driver == "%[2]s"
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: gpu
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly: {deviceClassName: %[1]s}
`

// plug has each node offer one of an extended resource, as long as the namespace exists. A node that still offers one, of a test before,
// would be given pods that its kubelet then refuses.
func (s *scenario) plug(resource string) {
	s.Helper()
	s.eventually("nodes that offer no "+resource, func(ctx context.Context) error {
		nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if offered := node.Status.Allocatable[corev1.ResourceName(resource)]; !offered.IsZero() {
				return fmt.Errorf("%s offers %s", node.Name, &offered)
			}
		}
		return nil
	})
	run(s.T, filepath.Join(binaries, "cluster"), "push", "device:latest", programOf("device"))
	data := filepath.Join(repository, ".cluster", "data")
	s.kubectl(fmt.Sprintf(devicePlugin, registry, resource, strings.ReplaceAll(resource, "/", "-"), data), "apply", "-f", "-")
}

const devicePlugin = `
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: device
spec:
  selector:
    matchLabels: {app: device}
  template:
    metadata:
      labels: {app: device}
    spec:
      containers:
        - name: plugin
          image: %[1]sdevice:latest
          args: [-resource=%[2]s, -name=$(NODE), -socket=/plugins/%[3]s.sock]
          env:
            - name: NODE
              valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
          securityContext: {runAsUser: 0}
          volumeMounts:
            - {name: kubelets, mountPath: /plugins, subPathExpr: kubelet-$(NODE)/root/plugins_registry}
      volumes:
        - name: kubelets
          hostPath: {path: %[4]s}
`

// startDrivers has each node offer one device by Kubernetes' own driver for tests of DRA. It ends when no pod has a claim any more, since
// kubelets ask it before such a pod is gone.
func startDrivers(t *testing.T) {
	t.Helper()
	for _, node := range kubelets(t) {
		sockets := filepath.Join(filepath.Dir(plugins(node)), "plugins")
		if err := os.MkdirAll(filepath.Join(sockets, draDriver), 0o750); err != nil {
			t.Fatal(err)
		}
		startProgram(t, programOf("dra"), "kubelet-plugin", "--drivername="+draDriver, "--node-name="+node, "--num-devices=1",
			"--kubeconfig="+kubeconfig, "--plugin-registration-path="+plugins(node), "--datadir="+sockets)
	}
	t.Cleanup(func() {
		err := poll(context.Background(), func(ctx context.Context) error {
			left, err := clients.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
			if err == nil && len(left.Items) > 0 {
				err = fmt.Errorf("%d ResourceClaims are left", len(left.Items))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		_ = os.Remove("/var/run/cdi") // where the drivers leave no file
	})
}

// programOf returns the path of a program that make has built: devices-build or systems-build.
func programOf(name string) string { return filepath.Join(binaries, "systems", name) }

func run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", filepath.Base(program), strings.Join(arguments, " "), err, output)
	}
}

// startProgram starts a program on this machine, which ends with the test.
func startProgram(t *testing.T, program string, arguments ...string) {
	t.Helper()
	var said bytes.Buffer
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", command, said.String())
		}
	})
}

// kubelets returns the nodes whose kubelets run on this machine.
func kubelets(t *testing.T) []string {
	t.Helper()
	nodes, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, node := range nodes.Items {
		if _, err := os.Stat(plugins(node.Name)); err == nil {
			names = append(names, node.Name)
		}
	}
	return names
}

// plugins returns the folder in which a kubelet looks for plugins.
func plugins(node string) string {
	return filepath.Join(repository, ".cluster", "data", "kubelet-"+node, "root", "plugins_registry")
}
