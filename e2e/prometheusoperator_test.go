//go:build e2e && operators

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// prometheusSet is the StatefulSet that the Prometheus operator makes of the Prometheus web.
const prometheusSet = statefulSetPrefix + "prometheus-web"

// TestPrometheusOperator has the Prometheus operator itself upgrade a Prometheus in its pods, and then change its arguments, for which it
// needs new ones. The Prometheus asks for updates in place, and its operator passes that on to the StatefulSet. e2e/operators/server stands
// in for the program Prometheus.
func TestPrometheusOperator(t *testing.T) {
	run(t, filepath.Join(binaries, "kubectl"), "--kubeconfig", kubeconfig, "apply", "--server-side", "-f", os.Getenv("CRDS"))
	t.Cleanup(func() {
		if _, _, err := kubectl(context.Background(), "", "delete", "--wait=false", "-f", os.Getenv("CRDS")); err != nil {
			t.Error(err)
		}
	})
	image := pushed(t, operatorProgram("server"), 2)
	s := newStatefulScenario(t, labelled)
	s.operate()
	s.kubectl(fmt.Sprintf(prometheusManifest, image(1)), "apply", "-f", "-")
	s.wait(prometheusSet, func(w world) error { _, err := w.workload(prometheusSet); return err })
	s.completes(prometheusSet)

	s.inPlace(prometheusSet, restarts{"prometheus": exactly(1)}, func() {
		s.takes("an upgrade", `{"image":"`+image(2)+`","version":"v3.5.1"}`, func(template corev1.PodTemplateSpec) bool {
			return template.Labels["app.kubernetes.io/version"] == "3.5.1"
		})
	})
	s.saysOperator("2 2 True")
	s.recreatedUnder(recreatedMembers, prometheusSet, func() {
		s.takes("another argument", `{"retention":"2d"}`, func(template corev1.PodTemplateSpec) bool {
			return containsArgument(template.Spec.Containers, "--storage.tsdb.retention.time=2d")
		})
	})
	s.saysOperator("2 2 True")
}

func operatorProgram(name string) string { return filepath.Join(binaries, "operators", name) }

// prometheusManifest is a Prometheus, whose config-reloader is another program of the operator's. Images of the test cluster have their
// program at /app.
const prometheusManifest = `
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata:
  name: web
  labels: {stayput.dev/statefulsets: in-place}
spec:
  replicas: 2
  image: %s
  version: v3.5.0
  serviceMonitorSelector: {}
  containers: [{name: config-reloader, command: [/app]}]
  initContainers: [{name: init-config-reloader, command: [/app]}]
`

// operate runs the Prometheus operator for the scenario's namespace.
func (s *scenario) operate() {
	s.Helper()
	reloader := pushed(s.T, operatorProgram("prometheus-config-reloader"), 1)
	s.beside(exec.Command(operatorProgram("operator"), "--namespaces="+s.namespace, "--prometheus-config-reloader="+reloader(1),
		"--web.listen-address=127.0.0.1:0"))
}

// takes edits the spec of the Prometheus, and waits until the operator has edited the template of its StatefulSet.
func (s *scenario) takes(what, spec string, edited func(corev1.PodTemplateSpec) bool) {
	s.Helper()
	s.kubectl("", "patch", "prometheus", "web", "--type=merge", "-p", `{"spec":`+spec+`}`)
	s.wait(what, of(prometheusSet, func(now workload) error {
		if sts, is := now.Object.(*appsv1.StatefulSet); !is || !edited(sts.Spec.Template) {
			return fmt.Errorf("the template is as before")
		}
		return nil
	}))
}

func containsArgument(containers []corev1.Container, argument string) bool {
	for _, container := range containers {
		for _, has := range container.Args {
			if has == argument {
				return true
			}
		}
	}
	return false
}

// saysOperator waits until the operator says so of the Prometheus: how many pods are updated and available, and whether it is.
func (s *scenario) saysOperator(want string) {
	s.Helper()
	const counts = `jsonpath={.status.updatedReplicas} {.status.availableReplicas} {.status.conditions[?(@.type=="Available")].status}`
	s.eventually("the operator to say "+want, func(ctx context.Context) error {
		said, _, err := kubectl(ctx, "", "-n", s.namespace, "get", "prometheus", "web", "-o", counts)
		if err == nil && said != want {
			err = fmt.Errorf("it says %q", said)
		}
		return err
	})
}
