//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admission checks what kubectl prints to the user, and for which requests the API server calls the webhooks.
func admission(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"in-place-only rejects":          onlyInPlace,
		"values that do not parse":       unknownValues,
		"names that do nothing":          wrongNames,
		"our priority is ours":           priorityIsStayputs,
		"Ready goes with the containers": readyOnlyWithContainers,
		"Ready waits for startup probes": readyAfterStartup,
		"Ready stays away":               func(t *testing.T) { readyStaysOut(t) },
		"warnings, events and metrics":   decisionsAreReported,
	})
	nightly(t, map[string]func(*testing.T){
		"Ready stays away without probe": func(t *testing.T) { readyStaysOut(t, unprobed) },
	})
}

func onlyInPlace(t *testing.T) {
	s := newScenario(t, inPlaceOnly)
	s.create(web(2))
	s.begin("rejected", noUpdates)
	before := s.deployment("web")
	s.expectIn(s.refused("set", "env", "deployment/web", "COLOUR=green"), "spec.template.spec.containers[0].env", "in-place-only")
	s.expectIn(s.refused("rollout", "restart", "deployment/web"), "spec.template.metadata.annotations")
	if after := s.deployment("web"); after.Generation != before.Generation {
		t.Errorf("rejected edits took the Deployment from generation %d to %d", before.Generation, after.Generation)
	}
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.inPlace("web", once, func() { s.rollout("undo", "web") })
}

// unknownValues checks that each policy about settings is in force. The tests of manifests/cel have more values.
func unknownValues(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(1, withSide))
	for _, of := range []string{"namespace/" + s.namespace, "deployment/web"} {
		s.expectIn(s.refused("label", of, updateLabel+"=inplace", "--overwrite"), "in-place", "in-place-only")
		s.expectIn(s.refused("annotate", of, drainSetting+"=soon", "--overwrite"), drainSetting, "soon")
	}
	s.expectIn(s.refused("annotate", "deployment/web", listAnnotation+"=*"), listAnnotation)
	s.expectIn(s.refused("annotate", "deployment/web", auxiliaryList+"=side,"), auxiliaryList, "shipper,metrics")
	s.expectIn(s.kubectl("", "annotate", "deployment/web", auxiliaryList+"=side, ghost"), "Warning:", "no container ghost")
}

// wrongNames checks that kubectl warns of settings that do nothing, and that they are stored. The tests of manifests/cel have more.
func wrongNames(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(1))
	s.begin("wrong settings", noUpdates)
	namespace, workload := "namespace/"+s.namespace, "deployment/web"
	for _, wrong := range []struct{ verb, of, setting, says string }{
		{"label", workload, "stayput.dev/partitions=1",
			"no such setting, so it does nothing; the nearest to stayput.dev/partitions is the annotation " + partitionSetting},
		{"label", workload, partitionSetting + "=1", "it counts as an annotation only"},
		{"annotate", namespace, kindsLabel + "=statefulsets", "it counts as a label only"},
		{"label", workload, kindsLabel + "=statefulsets", "it counts on a Namespace only"},
	} {
		key, _, _ := strings.Cut(wrong.setting, "=")
		s.expectIn(s.kubectl("", wrong.verb, wrong.of, wrong.setting), "Warning: ", key+": ", wrong.says)
		s.kubectl("", wrong.verb, wrong.of, key+"-")
	}
	native := newScenario(t, nil)
	native.create(web(1))
	native.expectIn(native.kubectl("", "label", workload, updateLabel+"=in-place"), "Warning: ", native.namespace+" has none")
}

// priorityIsStayputs checks that only the managers' pods may use the managers' PriorityClass to preempt others, in labelled and in other
// namespaces.
func priorityIsStayputs(t *testing.T) {
	run := func(class string) []string {
		return []string{"run", "thief", "--image=" + appImage("v1"), "--dry-run=server", "--overrides",
			`{"spec":{"priorityClassName":"` + class + `"}}`}
	}
	for _, labels := range []map[string]string{nil, labelled} {
		s := newScenario(t, labels)
		s.expectIn(s.refused(run("stayput")...), "priorityClassName stayput", ownNamespace)
		s.kubectl("", run("")...)
	}
	own, err := clients.CoreV1().Pods(ownNamespace).List(t.Context(), managers)
	if err != nil {
		t.Fatal(err)
	}
	for _, manager := range own.Items {
		if manager.Spec.PriorityClassName != "stayput" {
			t.Errorf("manager %s has priority class %q", manager.Name, manager.Spec.PriorityClassName)
		}
	}
}

// decisionsAreReported checks that an update in place and a native one are reported by kubectl, on the Deployment, by events and by
// metrics.
func decisionsAreReported(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(2))
	s.inPlace("web", once, func() {
		s.expectIn(s.setImage("web", "app=v2"), "Warning:", "in place", "app")
		s.expectIn(s.deployment("web").Annotations[decisionAnnotation], "in place", "app")
	})
	s.reported("Deployment", "InPlaceUpdateStarted")
	s.reported("Deployment", "InPlaceUpdateCompleted")
	s.reported("Pod", "UpdatedInPlace")
	s.countedByMetrics()
	s.recreated("web", func() {
		s.expectIn(s.setEnv("web", "COLOUR=green"), "Warning:", "recreate", "/spec/containers/0/env")
		s.expectIn(s.deployment("web").Annotations[decisionAnnotation], "recreate", "/spec/containers/0/env")
	})
	s.reported("Deployment", "UpdateRecreatesPods")
	s.leavesMetrics()
}

// countedByMetrics checks that, after an update, every metric has been counted by at least one manager.
func (s *scenario) countedByMetrics() {
	s.Helper()
	here := map[string]string{namespaceLabel: s.namespace}
	mode := map[string]string{namespaceLabel: s.namespace, "mode": "in-place"}
	s.eventually("all metrics", func(ctx context.Context) error {
		all, err := metricsOf(ctx)
		if err != nil {
			return err
		}
		for metric, labels := range map[string]map[string]string{
			"stayput_updates_started_total":     mode,
			"stayput_updates_completed_total":   mode,
			"stayput_update_duration_seconds":   here,
			"stayput_pods_moved_total":          here,
			"stayput_pod_unavailable_seconds":   here,
			"stayput_updates_in_flight":         here,
			"stayput_held_writes_total":         nil,
			"stayput_admission_decisions_total": here,
			"leader_election_master_status":     {"name": ownName}, // as the alert StayputNoLeader asks for it
		} {
			if !slices.ContainsFunc(all, func(manager scraped) bool { return manager.has(metric, labels) }) {
				return fmt.Errorf("%s is missing, with the labels %v", metric, labels)
			}
		}
		return nil
	})
}

// namespaceLabel is the label of metrics that has the namespace of a workload.
const namespaceLabel = "workload_namespace"

// leavesMetrics removes the namespace's label, and waits until no manager has a series of the namespace.
func (s *scenario) leavesMetrics() {
	s.Helper()
	s.kubectl("", "label", "namespace", s.namespace, "stayput.dev/update-")
	s.eventually("no metrics of the namespace", func(ctx context.Context) error {
		all, err := metricsOf(ctx)
		if err != nil {
			return err
		}
		for _, manager := range all {
			for metric := range manager {
				if manager.has(metric, map[string]string{namespaceLabel: s.namespace}) {
					return fmt.Errorf("%s still has the namespace", metric)
				}
			}
		}
		return nil
	})
}

// metricsOf returns the metrics of all managers, fetched through the API server.
func metricsOf(ctx context.Context) ([]scraped, error) {
	managers, err := clients.CoreV1().Pods(ownNamespace).List(ctx, managers)
	if err != nil {
		return nil, err
	}
	var all []scraped
	for _, manager := range managers.Items {
		text, _, err := kubectl(ctx, "", "get", "--raw", "/api/v1/namespaces/"+ownNamespace+"/pods/"+manager.Name+":8080/proxy/metrics")
		if err != nil {
			return nil, err
		}
		read, err := parseMetrics(text)
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", manager.Name, err)
		}
		all = append(all, read)
	}
	return all, nil
}

// configuration holds what mutating and validating webhook configurations have in common.
type configuration struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Webhooks []hook            `json:"webhooks"`
}

type hook struct {
	Name              string                           `json:"name"`
	ClientConfig      admissionv1.WebhookClientConfig  `json:"clientConfig"`
	NamespaceSelector metav1.LabelSelector             `json:"namespaceSelector"`
	TimeoutSeconds    int32                            `json:"timeoutSeconds"`
	SideEffects       admissionv1.SideEffectClass      `json:"sideEffects"`
	FailurePolicy     admissionv1.FailurePolicyType    `json:"failurePolicy"`
	Rules             []admissionv1.RuleWithOperations `json:"rules"`
}

// own reports whether the webhook calls Stayput's Service.
func (h hook) own() bool {
	return h.ClientConfig.Service != nil && h.ClientConfig.Service.Namespace == ownNamespace
}

// ownConfigurations returns the webhook configurations with webhooks of Stayput.
func ownConfigurations(t *testing.T) []configuration {
	t.Helper()
	var found struct {
		Items []configuration `json:"items"`
	}
	output, _, err := kubectl(context.Background(), "", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(output), &found); err != nil {
		t.Fatalf("kubectl get: %v", err)
	}
	return slices.DeleteFunc(found.Items, func(c configuration) bool { return !slices.ContainsFunc(c.Webhooks, hook.own) })
}
