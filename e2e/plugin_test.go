//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plugin checks what kubectl's plugin prints before and during an update, for a user who may only edit the namespace.
func plugin(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"plan of both kinds":      planned,
		"plan by an editor":       plannedByEditor,
		"status during an update": oldStopped,
	})
	nightly(t, map[string]func(*testing.T){
		"plan of server-side apply": plannedServerSide,
	})
}

// ask runs the plugin through kubectl, and returns its output and its exit code.
func (s *scenario) ask(input string, arguments ...string) (said string, code int) {
	s.Helper()
	arguments = append([]string{"stayput"}, append(arguments, "--kubeconfig", kubeconfig, "-n", s.namespace, "--cache-dir", s.TempDir())...)
	command := exec.CommandContext(s.Context(), filepath.Join(binaries, "kubectl"), arguments...)
	command.Env = append(os.Environ(), "PATH="+binaries+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &out
	var ended *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &ended) {
		s.Fatal(err)
	}
	return out.String(), command.ProcessState.ExitCode()
}

// answers checks the exit code, and that the output has these parts, with any white space between their words.
func (s *scenario) answers(input string, code int, parts []string, arguments ...string) {
	s.Helper()
	said, got := s.ask(input, arguments...)
	if got != code {
		s.Errorf("kubectl stayput %s: exit code %d instead of %d", strings.Join(arguments, " "), got, code)
	}
	s.expectIn(strings.Join(strings.Fields(said), " "), parts...)
}

// manifests returns the manifests of a Deployment and a DaemonSet.
func manifests(t *testing.T, options ...option) string {
	ds := agent()
	ds.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}
	for _, set := range options {
		templated(set)(ds)
	}
	return manifest(t, web(2, options...)) + "\n---\n" + manifest(t, ds)
}

// coloured adds a variable, which no running pod can take.
func coloured(d *appsv1.Deployment) {
	app := &d.Spec.Template.Spec.Containers[0]
	app.Env = append(app.Env, corev1.EnvVar{Name: "COLOUR", Value: "green"})
}

// bothAtRest returns a namespace with a Deployment and a DaemonSet, in which nothing is to happen any more.
func bothAtRest(t *testing.T, labels map[string]string) *scenario {
	t.Helper()
	return bothMadeBy(t, "apply", labels)
}

func bothMadeBy(t *testing.T, command string, labels map[string]string) *scenario {
	t.Helper()
	s := newScenario(t, labels)
	s.kubectl(manifests(t), command, "-f", "-")
	s.completes("web")
	s.completes(agents)
	s.begin("planned", noUpdates)
	return s
}

func planned(t *testing.T) {
	s := bothAtRest(t, labelled)
	s.managed("web")
	const restartsBoth = "restarts app in"
	s.answers(manifests(t, image("v2")), 0,
		[]string{"deployment/web in place " + restartsBoth + " 2 pods, 1 at a time",
			"daemonset/agent in place " + restartsBoth + " 3 pods, 1 at a time"},
		"plan", "-f", "-")
	s.answers(manifests(t, coloured), 2, []string{"deployment/web recreate /spec/containers/0/env changed", "daemonset/agent recreate"},
		"plan", "-f", "-")
	s.answers(manifests(t), 0, []string{"deployment/web unchanged", "daemonset/agent unchanged"}, "plan", "-f", "-")
	s.answers(manifest(t, web(1, named("new"))), 0, []string{"deployment/new created"}, "plan", "-f", "-")
	s.answers(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`, 0, []string{"configmap/other skipped"}, "plan", "-f", "-")
	s.answers(strings.Replace(manifests(t, image("v2")), `"replicas":2`, `"replicsa":2`, 1), 1,
		[]string{"deployment/web error", "replicsa", "daemonset/agent in place"}, "plan", "-f", "-")
	s.answers("", 0, []string{"update in-place namespace", "drain 500ms namespace", "pre-pull-parallelism 10 default"},
		"settings", "deployment/web")
	s.inJSON()
	s.plansKustomization()
}

// inJSON checks the output as JSON.
func (s *scenario) inJSON() {
	s.Helper()
	said, _ := s.ask(manifests(s.T, image("v2")), "plan", "-o", "json", "-f", "-")
	var told struct {
		Objects []struct {
			Name, Plan, DecidedBy string
			Containers            []string
			Pods, AtATime         int
		}
	}
	if err := json.Unmarshal([]byte(said), &told); err != nil {
		s.Fatalf("%v: %s", err, said)
	}
	if len(told.Objects) != 2 || told.Objects[0].Plan != "InPlace" || told.Objects[0].DecidedBy != "Stayput" || told.Objects[1].Pods != 3 ||
		told.Objects[1].Containers[0] != "app" {
		s.Errorf("-o json says %s", said)
	}
}

// plansKustomization plans the changes of a kustomization folder.
func (s *scenario) plansKustomization() {
	s.Helper()
	folder := s.TempDir()
	for name, text := range map[string]string{
		"all.yaml":           manifests(s.T),
		"kustomization.yaml": "resources: [all.yaml]\nnamespace: " + s.namespace + "\nimages: [{name: '" + registry + "app', newTag: v2}]\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	s.answers("", 0, []string{"deployment/web in place restarts app", "daemonset/agent in place restarts app"}, "plan", "-k", folder)
}

// plannedServerSide checks that the API server detects who owns the image, unless the image was applied before.
func plannedServerSide(t *testing.T) {
	s := bothMadeBy(t, "create", labelled)
	s.answers(manifests(t, image("v2")), 1, []string{"deployment/web error", "conflict"}, "plan", "--server-side", "-f", "-")
	s.answers(manifests(t, image("v2")), 0, []string{"deployment/web in place restarts app", "daemonset/agent in place"},
		"plan", "--server-side", "--force-conflicts", "-f", "-")
	s.answers(manifests(t, coloured), 2, []string{"/spec/containers/0/env changed"}, "plan", "--server-side", "--force-conflicts", "-f", "-")
}

// editor returns the kubectl flag for a service account that may only edit the namespace.
func (s *scenario) editor() string {
	s.Helper()
	s.kubectl("", "create", "serviceaccount", "editor")
	s.kubectl("", "create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount="+s.namespace+":editor")
	as := "--as=system:serviceaccount:" + s.namespace + ":editor"
	s.eventually("the rights of an editor", func(ctx context.Context) error {
		_, _, err := kubectl(ctx, "", "-n", s.namespace, "auth", "can-i", "patch", "deployments", as)
		return err
	})
	return as
}

func plannedByEditor(t *testing.T) {
	s := bothAtRest(t, labelled)
	s.managed("web")
	as := s.editor()
	s.answers(manifests(t, image("v2")), 0,
		[]string{"deployment/web in place restarts app in 2 pods", "daemonset/agent in place restarts app in 3 pods"}, "plan", "-f", "-", as)
	s.answers(manifests(t, coloured), 2, []string{"deployment/web recreate"}, "plan", "-f", "-", as)
	s.answers("", 0, []string{"Mode: in-place", "updated"}, "status", "deploy/web", as)
	s.answers("", 0, []string{"Mode: in-place", "updated"}, "status", "ds/agent", as)
}

func oldStopped(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, slow))
	s.managed("web")
	as := s.editor()
	s.inPlace("web", once, func() {
		s.setImage("web", "app=v2")
		s.reaches("web", partly)
		s.answers("", 0, []string{"Last edit: in place: restarts app", "Update: in place", "updated", "waiting its turn", "InPlaceUpdateStarted"},
			"status", "deploy/web", as)
		s.answers("", 0, []string{"updating", "Update: none, 3 of 3 pods updated"}, "status", "deployment", "web", "--watch", as)
	})
}
