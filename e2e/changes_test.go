//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/e2e/changes"
)

// templateChanges makes every change of docs/reference/changes.md in a Deployment and in a DaemonSet, and random changes. The same rules
// apply to all kinds. So a StatefulSet, whose pods change in another way, has all changes in place, and only one group of the others.
func templateChanges(t *testing.T) {
	scenarios, atNight := map[string]func(*testing.T){"random": randomChanges}, map[string]func(*testing.T){}
	for _, scenario := range changes.Scenarios() {
		if len(scenario.Flags()) > 0 {
			continue // see changesByFlags
		}
		for kind, install := range ofOnePod {
			if kind == "StatefulSet" && !scenario.InPlace() && scenario.Name != firstRecreated {
				continue
			}
			name := kind + ", " + scenario.Name
			made := func(t *testing.T) { makeChanges(t, install, scenario) }
			if inMakeTest(kind, scenario) {
				scenarios[name] = made
			} else {
				atNight[name] = made
			}
		}
	}
	together(t, scenarios)
	nightly(t, atNight)
}

// firstRecreated is a group of changes that recreate pods.
const firstRecreated = "recreated 1"

// inMakeTest reports whether make test makes the changes of the scenario in that kind. It makes those that running pods take, except those
// with a workload of their own that other scenarios use as well, and one group of those that recreate pods. The unit tests of inplace/edit
// cover the others. In a StatefulSet, it makes those that need no workload of their own.
func inMakeTest(kind string, scenario changes.Scenario) bool {
	single := []string{"lower limit of memory", "CPU and `kubectl rollout restart` together", firstRecreated}
	switch shared := strings.HasPrefix(scenario.Name, "in place "); kind {
	case "Deployment":
		return shared || slices.Contains(single, scenario.Name)
	case "StatefulSet":
		return shared
	}
	return false
}

// changesByFlags makes the changes for which the managers need flags.
func changesByFlags(t *testing.T) {
	long(t)
	for _, scenario := range changes.Scenarios() {
		if len(scenario.Flags()) == 0 {
			continue
		}
		t.Run(scenario.Name, func(t *testing.T) {
			withFlags(t, scenario.Flags())
			kinds := map[string]func(*testing.T){}
			for kind, install := range ofOnePod {
				kinds[kind] = func(t *testing.T) { makeChanges(t, install, scenario) }
			}
			together(t, kinds)
		})
	}
}

// makeChanges makes the changes one after another.
func makeChanges(t *testing.T, install func(*scenario, changes.Scenario) string, scenario changes.Scenario) {
	s := newScenario(t, stateful)
	name := install(s, scenario)
	for _, c := range scenario.Cases {
		edit := func() { s.told(name, c, s.editTemplate(name, c.Edit)) }
		if c.InPlace() {
			s.inPlace(name, onceEach(c.Restarts), edit)
		} else {
			s.recreated(name, edit)
		}
	}
}

// onceEach expects one restart of each of these containers, and of no other.
func onceEach(containers []string) restarts {
	expected := restarts{}
	for _, container := range containers {
		expected[container] = exactly(1)
	}
	return expected
}

// told checks that kubectl's output and the annotation of the workload have the decision word for word.
func (s *scenario) told(name string, c changes.Case, said string) {
	s.Helper()
	if warning := "Warning: stayput: " + c.Decision; !slices.Contains(strings.Split(said, "\n"), warning) {
		s.Errorf("%s: there is no line %q in:\n%s", c.Name, warning, said)
	}
	if aside := "Warning: stayput: " + c.Aside; c.Aside != "" && !slices.Contains(strings.Split(said, "\n"), aside) {
		s.Errorf("%s: there is no line %q in:\n%s", c.Name, aside, said)
	}
	if decision, _, _ := strings.Cut(s.workload(name).GetAnnotations()[decisionAnnotation], " (template "); decision != c.Decision {
		s.Errorf("%s: the recorded decision is %q instead of %q", c.Name, decision, c.Decision)
	}
}

// editTemplate does what `kubectl edit` does, and returns the warnings.
func (s *scenario) editTemplate(name string, edit func(*corev1.PodTemplateSpec)) string {
	s.Helper()
	template := s.templateOf(name)
	edit(template)
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": template}})
	if err != nil {
		s.Fatal(err)
	}
	return s.kubectl("", "patch", ref(name), "--type=json", "-p", string(patch))
}

// templateOf returns a copy of the workload's template.
func (s *scenario) templateOf(name string) *corev1.PodTemplateSpec {
	s.Helper()
	switch object := s.workload(name).Object.(type) {
	case *appsv1.Deployment:
		return object.Spec.Template.DeepCopy()
	case *appsv1.DaemonSet:
		return object.Spec.Template.DeepCopy()
	case *appsv1.StatefulSet:
		return object.Spec.Template.DeepCopy()
	default:
		s.Fatalf("%s is a %T", name, object)
		return nil
	}
}

// ofOnePod has, by kind, a function that creates a workload for a scenario and returns its name.
var ofOnePod = map[string]func(*scenario, changes.Scenario) string{
	"Deployment": func(s *scenario, scenario changes.Scenario) string {
		d := web(1)
		d.Spec.Template = changing(d, scenario)
		s.create(d)
		return "web"
	},
	"DaemonSet": func(s *scenario, scenario changes.Scenario) string {
		s.Cleanup(s.nativeIsCalm)
		ds := agent()
		ds.Spec.Template = changing(ds, scenario)
		ds.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: onlyOn(s.realNodes()[0])}
		s.install(ds)
		return agents
	},
	"StatefulSet": func(s *scenario, scenario changes.Scenario) string {
		s.Cleanup(s.nativeDeletesAreTrue)
		sts := db(1)
		sts.Spec.Template = changing(sts, scenario)
		s.form(sts)
		return members
	},
}

// changing sets the workload's annotations for the scenario, and returns its template.
func changing(workload metav1.Object, scenario changes.Scenario) corev1.PodTemplateSpec {
	workload.SetAnnotations(scenario.Cases[0].Annotations)
	template := scenario.Template()
	template.Labels[changes.AppLabel] = workload.GetName()
	return template
}

// onlyOn returns a node affinity, because the scenarios use the node selector.
func onlyOn(node string) *corev1.NodeAffinity {
	here := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{here}}},
	}}
}

// withFlags runs the managers with these flags until the test ends.
func withFlags(t *testing.T, flags []string) {
	t.Helper()
	own, err := clients.AppsV1().Deployments(ownNamespace).Get(t.Context(), ownName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	usual := own.Spec.Template.Spec.Containers[0].Args
	t.Cleanup(func() { runManagers(context.Background(), t, usual) })
	runManagers(t.Context(), t, slices.Concat(usual, flags))
}

// runManagers waits until managers with these arguments run, and no others: a manager that shuts down answers until its end.
func runManagers(ctx context.Context, t *testing.T, arguments []string) {
	t.Helper()
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": arguments}})
	if err == nil {
		_, err = clients.AppsV1().Deployments(ownNamespace).Patch(ctx, ownName, types.JSONPatchType, patch,
			metav1.PatchOptions{FieldManager: user})
	}
	if err == nil {
		err = poll(ctx, func(ctx context.Context) error { return errors.Join(managersServe(ctx), managersHave(ctx, arguments)) })
	}
	if err != nil {
		t.Fatalf("managers with arguments %q: %v", arguments, err)
	}
}

func managersHave(ctx context.Context, arguments []string) error {
	found, err := clients.CoreV1().Pods(ownNamespace).List(ctx, managers)
	if err != nil {
		return err
	}
	for _, pod := range found.Items {
		if has := pod.Spec.Containers[0].Args; !slices.Equal(has, arguments) {
			return fmt.Errorf("pod %s has arguments %q", pod.Name, has)
		}
	}
	return nil
}
