//go:build e2e && chart

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() { precondition = notInstalled }

// TestChart installs, upgrades and uninstalls the chart with each version of Helm. Each part begins with the result of the part before, and
// does not run if that one failed.
func TestChart(t *testing.T) {
	for _, version := range []string{"helm3", "helm4"} {
		t.Run(version, func(t *testing.T) { chartLives(t, newHelm(t, version)) })
	}
}

func chartLives(t *testing.T, h helm) {
	image := builtImage(t)
	t.Cleanup(func() { h.clear(t) })
	parts := []struct {
		name string
		part func(*testing.T, helm)
	}{
		{"install", func(t *testing.T, h helm) { h.install(t, image, "") }},
		{"test", h.tests},
		{"update in place", updateInPlace},
		{"upgrade half-way", upgradeHalfway},
		{"rollback half-way", rollbackHalfway},
		{"a user's own chart", ownChart},
		{"uninstall half-way", uninstallHalfway},
	}
	for _, p := range parts {
		if !t.Run(p.name, func(t *testing.T) { p.part(t, h.in(t)) }) {
			t.FailNow()
		}
	}
}

// helm is one version of Helm, with its own folders.
type helm struct {
	*testing.T
	binary, home string
	// release is the name of Stayput's release.
	release string
}

const chartTimeout = "5m"

func newHelm(t *testing.T, version string) helm {
	t.Helper()
	h := helm{t, filepath.Join(binaries, version), t.TempDir(), ownName}
	if _, err := os.Stat(h.binary); err != nil {
		t.Fatalf("make helm builds it: %v", err)
	}
	return h
}

// in returns the same for a subtest.
func (h helm) in(t *testing.T) helm {
	h.T = t
	return h
}

// try runs Helm and returns its output.
func (h helm) try(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, h.binary, append([]string{"--kubeconfig", kubeconfig}, arguments...)...)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+h.home, "HELM_CONFIG_HOME="+h.home, "HELM_DATA_HOME="+h.home)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("helm %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return string(output), err
}

func (h helm) run(arguments ...string) string {
	h.Helper()
	output, err := h.try(h.Context(), arguments...)
	if err != nil {
		h.Fatal(err)
	}
	return output
}

// own runs Helm on the release of Stayput.
func (h helm) own(verb string, arguments ...string) string {
	h.Helper()
	return h.run(append([]string{verb, h.release, "--namespace", ownNamespace, "--timeout", chartTimeout}, arguments...)...)
}

var stayputChart = filepath.Join(repository, "charts", "stayput")

// install installs the chart with the image, and with further values as --set takes them.
func (h helm) install(t *testing.T, image, values string) {
	colon := strings.LastIndex(image, ":")
	h.own("install", stayputChart, "--create-namespace", "--wait", "--set", "image.repository="+image[:colon]+",image.tag="+image[colon+1:],
		"--set", values)
	mended(t)
}

// tests runs the chart's tests, which check the same preconditions as a scenario. Once they pass, the API server has the CA.
func (h helm) tests(t *testing.T, _ helm) {
	output := h.in(t).own("test", "--logs")
	for _, line := range []string{"ok         managers:", "ok         certificate: valid until", "ok         webhooks: the API server reaches",
		"ok         rights:", "ok         policies:", "Nothing is wrong."} {
		if !strings.Contains(output, line) {
			t.Errorf("%q is missing in:\n%s", line, output)
		}
	}
}

func updateInPlace(t *testing.T, _ helm) {
	s := newScenario(t, labelled)
	s.create(web(3))
	s.managed("web")
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.runs("web", "v2")
}

// upgradeHalfway checks that the managers of one chart revision hand over to those of the next during an update, and no pod is affected.
func upgradeHalfway(t *testing.T, h helm) {
	halfwayThrough(t, func() {
		h.own("upgrade", stayputChart, "--wait", "--reuse-values", "--set", "resources.requests.cpu=60m")
	})
	managersRequest(t, "60m")
}

func rollbackHalfway(t *testing.T, h helm) {
	halfwayThrough(t, func() {
		h.own("rollback", "1", "--wait")
	})
	managersRequest(t, "50m")
}

// halfwayThrough calls happens while an update is in progress, and checks that the update replaces no pod.
func halfwayThrough(t *testing.T, happens func()) {
	t.Helper()
	m := meet(t, web(4, slow), agent(lasting))
	m.inPlace(func() {
		m.partial()
		happens()
	})
	m.each(func(name string) { m.runs(name, "v2") })
	mended(t)
}

// managersRequest checks by their CPU request that the managers are those of the expected revision.
func managersRequest(t *testing.T, cpu string) {
	t.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(t.Context(), managers)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if got := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); pod.DeletionTimestamp == nil && got != cpu {
			t.Errorf("manager %s requests %s instead of %s", pod.Name, got, cpu)
		}
	}
}

// ownValues are values for the chart of helm create, with the test application instead of nginx.
const ownValues = `
fullnameOverride: web
replicaCount: 4
image: {repository: ` + registry + `app, tag: v1}
service: {port: 8080}
readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 1}
`

// ownChart checks that a release of the chart of helm create is updated and rolled back in place, and that --wait succeeds.
func ownChart(t *testing.T, h helm) {
	s := newScenario(t, labelled)
	folder := t.TempDir()
	values := filepath.Join(folder, "values.yaml")
	if err := os.WriteFile(values, []byte(ownValues), 0o600); err != nil {
		t.Fatal(err)
	}
	chart := filepath.Join(folder, "app")
	h.run("create", chart)
	in := []string{"--namespace", s.namespace, "--wait", "--timeout", chartTimeout}
	h.run(append([]string{"install", "web", chart, "--values", values}, in...)...)
	s.completes("web")
	s.managed("web")
	s.inPlace("web", once, func() {
		h.run(append([]string{"upgrade", "web", chart, "--values", values, "--set", "image.tag=v2"}, in...)...)
	})
	s.runs("web", "v2")
	s.inPlace("web", once, func() { h.run(append([]string{"rollback", "web", "1"}, in...)...) })
	s.runs("web", "v1")
}

// uninstallHalfway checks that the native controller replaces the pods that are not updated yet, and that nothing of Stayput affects the
// pods.
func uninstallHalfway(t *testing.T, h helm) {
	m := meetHalfway(t, outlasting)
	m.phase("native", recreated, anyChurn) // the hook's pod has to start first, and three agents may be done before that
	h.own("uninstall", "--wait")
	m.end("v2")
	m.eventually("nothing of Stayput to be left", notInstalled)
}

// notInstalled returns nil if no part of Stayput is installed that acts on other objects, or may act on them.
func notInstalled(ctx context.Context) error {
	left, _, err := kubectl(ctx, "", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,"+
		"validatingadmissionpolicybindings,clusterroles,clusterrolebindings,priorityclasses,flowschemas",
		"-l", "app.kubernetes.io/part-of=stayput", "-o", "name")
	if err != nil {
		return err
	}
	if left != "" {
		return fmt.Errorf("there still is (make uninstall removes it): %s", strings.Join(strings.Fields(left), ", "))
	}
	_, err = clients.AppsV1().Deployments(ownNamespace).Get(ctx, ownName, metav1.GetOptions{})
	if err == nil {
		return errors.New("the managers' Deployment is still there; make uninstall removes it")
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// clear uninstalls everything at the end of the test, wherever it ended.
func (h helm) clear(t *testing.T) {
	ctx := context.Background()
	if _, err := h.try(ctx, "uninstall", h.release, "--namespace", ownNamespace, "--ignore-not-found", "--wait", "--timeout",
		chartTimeout); err != nil {
		t.Error(err)
	}
	if _, _, err := kubectl(ctx, "", "delete", "namespace", ownNamespace, "--ignore-not-found", "--timeout=2m"); err != nil {
		t.Error(err)
	}
	if err := poll(ctx, notInstalled); err != nil {
		t.Error(err)
	}
}
