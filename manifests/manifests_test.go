// Package manifests has Stayput's manifests, for kustomize. make manifests renders them from the Helm chart. The package has no code, only
// tests that the manifests agree with the program and with what docs/explanation/limits.md says about webhooks.
package manifests

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/webhook"
)

// onlyFailing is the path of the webhooks that fail closed for edits of templates in in-place-only namespaces. movedPods fails closed as
// long as a pod runs a container that is to stop since it has moved.
const onlyFailing, movedPods = "/validate-in-place-only", "moved-pods.stayput.dev"

// call is a mutating or validating webhook, with what both have in common.
type call struct {
	admissionv1.ValidatingWebhook
	annotations map[string]string
}

func TestEveryWebhookIsHarmless(t *testing.T) {
	for _, c := range calls(t) {
		t.Run(c.Name, func(t *testing.T) {
			if want := failurePolicy(c); c.FailurePolicy == nil || *c.FailurePolicy != want {
				t.Errorf("failurePolicy = %v, want %v", c.FailurePolicy, want)
			}
			if most := patience(c); c.TimeoutSeconds == nil || *c.TimeoutSeconds > most {
				t.Errorf("timeoutSeconds is not %d or less", most)
			}
			if c.SideEffects == nil || *c.SideEffects != admissionv1.SideEffectClassNone {
				t.Error("sideEffects is not None: dry runs would be refused")
			}
			if c.MatchPolicy == nil || *c.MatchPolicy != admissionv1.Equivalent {
				t.Error("matchPolicy is not Equivalent")
			}
			if len(c.MatchConditions) == 0 {
				t.Error("no matchConditions: the API server would call for every write of the kind")
			}
			if c.annotations["cert-manager.io/inject-ca-from"] != "stayput-system/stayput-webhook" {
				t.Error("cert-manager does not inject the CA")
			}
		})
	}
}

func failurePolicy(c call) admissionv1.FailurePolicyType {
	if path(c) == onlyFailing || c.Name == movedPods {
		return admissionv1.Fail
	}
	return admissionv1.Ignore
}

// patience returns how many seconds a client may wait for the webhook if no manager answers. A native controller has only a handful of
// workers for the whole cluster.
func patience(c call) int32 {
	if path(c) == "/mutate-pod-status" || strings.HasPrefix(path(c), "/throttle-") {
		return 1 // a kubelet reports its pods one after the other; without throttling nothing is lost
	}
	if path(c) == "/mutate-workload" {
		return 2 // the API server asks again each time the workload has changed meanwhile
	}
	return 5
}

func TestOnlyLabelledNamespacesAreCalledFor(t *testing.T) {
	for _, c := range calls(t) {
		selector, err := metav1.LabelSelectorAsSelector(c.NamespaceSelector)
		if err != nil {
			t.Fatal(c.Name, err)
		}
		for _, test := range []struct {
			namespace, mode string
			want            bool
		}{
			{"shop", "", false},
			{"shop", "in-place", path(c) != onlyFailing},
			{"kube-system", "in-place", false},
			{"stayput-system", "in-place", false},
			{"kube-system", "in-place-only", false},
			{"stayput-system", "in-place-only", false},
		} {
			if got := selector.Matches(namespaceLabels(test.namespace, test.mode)); got != test.want {
				t.Errorf("%s in namespace %s labelled %q: called %t, want %t", c.Name, test.namespace, test.mode, got, test.want)
			}
		}
	}
}

// TestEditsAreValidatedByExactlyOneWebhook checks which webhook validates the edits of a workload, by the labels of its namespace and its
// own. One whose mode is not in-place-only must not depend on a webhook that fails closed.
func TestEditsAreValidatedByExactlyOneWebhook(t *testing.T) {
	const usual, strict = "/validate-workload", onlyFailing
	kinds := func(value string) labels.Set { return labels.Set{inplace.LabelKinds: value} }
	itself := func(mode inplace.Mode) labels.Set { return labels.Set{inplace.LabelUpdate: string(mode)} }
	for _, test := range []struct {
		resource, mode      string
		namespace, workload labels.Set
		want                []string
	}{
		{"deployments", "in-place", nil, nil, []string{usual}},
		{"deployments", "misspelt", nil, nil, []string{usual}},
		{"deployments", "in-place-only", nil, nil, []string{strict}},
		{"deployments", "in-place-only", kinds("statefulsets"), nil, nil},
		{"deployments", "in-place-only", nil, itself(inplace.ModeNative), nil},
		{"deployments", "in-place-only", kinds("daemonsets"), itself(inplace.ModeInPlaceOnly), []string{strict}},
		{"daemonsets", "in-place-only", kinds("deployments.daemonsets.statefulsets"), nil, []string{strict}},
		{"daemonsets", "in-place-only", kinds("deployments"), nil, nil},
		{"daemonsets", "in-place-only", nil, itself(inplace.ModeInPlaceOnly), []string{strict}},
		{"statefulsets", "in-place", nil, nil, []string{usual}},
		{"statefulsets", "in-place-only", nil, nil, nil},
		{"statefulsets", "in-place-only", kinds("deployments.statefulsets"), nil, []string{strict}},
		{"statefulsets", "in-place-only", kinds("statefulsets"), itself(inplace.ModeInPlaceOnly), []string{strict}},
		{"statefulsets", "in-place-only", nil, itself(inplace.ModeInPlaceOnly), []string{strict}},
		{"statefulsets", "in-place-only", nil, itself(inplace.ModeInPlace), nil},
	} {
		var called []string
		for _, c := range calls(t) {
			ofResource := func(rule admissionv1.RuleWithOperations) bool { return slices.Contains(rule.Resources, test.resource) }
			if (path(c) == usual || path(c) == strict) && slices.ContainsFunc(c.Rules, ofResource) &&
				selects(t, c.NamespaceSelector, labels.Merge(namespaceLabels("shop", test.mode), test.namespace)) &&
				selects(t, c.ObjectSelector, test.workload) {
				called = append(called, path(c))
			}
		}
		if !slices.Equal(called, test.want) {
			t.Errorf("edits of %s in a namespace %s %v, labelled %v, are validated at %v, want %v",
				test.resource, test.mode, test.namespace, test.workload, called, test.want)
		}
	}
}

// selects reports whether the selector selects an object with these labels. No selector selects every object.
func selects(t *testing.T, selector *metav1.LabelSelector, of labels.Set) bool {
	t.Helper()
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(of)
}

func TestEveryPathIsServed(t *testing.T) {
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{})
	webhook.Register(server, webhook.Handlers{})
	for _, c := range calls(t) {
		request := httptest.NewRequest(http.MethodPost, path(c), nil)
		if _, pattern := server.WebhookMux().Handler(request); pattern != path(c) {
			t.Errorf("%s calls %s, which the managers do not serve", c.Name, path(c))
		}
	}
}

func TestNamesAgreeWithTheProgram(t *testing.T) {
	for file, names := range map[string][]string{
		"base/policy.yaml": {`"` + inplace.LabelUpdate + `"`, `"` + inplace.LabelKinds + `"`, `"` + inplace.DefaultKinds + `"`,
			`"` + inplace.SelectorForm + `"`, `"` + inplace.LabelKeyForm + `"`, `"` + inplace.WindowForm + `"`, `"` + inplace.HookNamesForm + `"`,
			`"` + inplace.PartitionForm + `"`, inplace.PreRestartHookPrefix + "lb"},
		"base/own-power.yaml": {
			`"` + inplace.LabelUpdate + `"].orValue("") in ["` + string(inplace.ModeInPlace) + `", "` + string(inplace.ModeInPlaceOnly) + `"]`,
			`"` + inplace.LabelPrePull + `"`, `["` + inplace.AnnotationMove + `", "` + inplace.AnnotationSurgePod + `"`,
			`"` + readiness.ReasonUpdating + `"`},
		"base/webhooks.yaml": {"key: " + inplace.LabelUpdate + ",", `"` + inplace.AnnotationDecision + `"`,
			`"` + readiness.ReasonUpdating + `"`},
		"base/rbac.yaml":      {"resourceNames: [" + inplace.Lease + "]", "resourceNames: [" + inplace.Fallbacks + "]"},
		"base/fallbacks.yaml": {"name: " + inplace.Fallbacks},
		"install.mk":          {"RELEASED := " + image(t)},
	} {
		for _, want := range names {
			if !strings.Contains(read(t, file), want) {
				t.Errorf("%s does not contain %q", file, want)
			}
		}
	}
}

func TestKustomizationHasEveryFile(t *testing.T) {
	var kustomization struct{ Resources []string }
	decode(t, read(t, "base/kustomization.yaml"), &kustomization)
	files, err := filepath.Glob("base/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" && !slices.Contains(kustomization.Resources, name) {
			t.Errorf("%s is not among the resources", file)
		}
	}
}

// calls returns the webhooks of all webhook configurations.
func calls(t *testing.T) []call {
	t.Helper()
	var found []call
	for document := range strings.SplitSeq(read(t, "base/webhooks.yaml"), "\n---\n") {
		var configuration admissionv1.ValidatingWebhookConfiguration
		decode(t, document, &configuration)
		for _, hook := range configuration.Webhooks {
			found = append(found, call{hook, configuration.Annotations})
		}
	}
	if len(found) == 0 {
		t.Fatal("base/webhooks.yaml has no webhooks")
	}
	return found
}

func path(c call) string { return *c.ClientConfig.Service.Path }

func namespaceLabels(name, mode string) labels.Set {
	set := labels.Set{"kubernetes.io/metadata.name": name}
	if mode != "" {
		set[inplace.LabelUpdate] = mode
	}
	return set
}

// TestUninstallMayFallBack checks that uninstall may write whatever the managers may write, because they may have left it partially
// patched. A test in charts checks that it may write nothing else.
func TestUninstallMayFallBack(t *testing.T) {
	may := rightsOf(clusterRole(t, "uninstall/job.yaml", "stayput-uninstall"))
	for right := range rightsOf(clusterRole(t, "base/rbac.yaml", "stayput")) {
		if (right.verb == "patch" || right.verb == "update") && right.resource != "events" && !may[right] {
			t.Errorf("make uninstall may not %s %s", right.verb, right.resource)
		}
	}
}

type right struct{ group, resource, verb string }

func rightsOf(role rbacv1.ClusterRole) map[right]bool {
	rights := map[right]bool{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights[right{group, resource, verb}] = true
				}
			}
		}
	}
	return rights
}

func clusterRole(t *testing.T, file, name string) rbacv1.ClusterRole {
	t.Helper()
	for document := range strings.SplitSeq(read(t, file), "\n---\n") {
		if !strings.Contains(document, "\nkind: ClusterRole\n") {
			continue
		}
		var role rbacv1.ClusterRole
		decode(t, document, &role)
		if role.Name == name {
			return role
		}
	}
	t.Fatalf("%s has no ClusterRole %s", file, name)
	return rbacv1.ClusterRole{}
}

// image returns the image that manager.yaml names.
func image(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(read(t, "base/manager.yaml")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "image: "); ok {
			return name
		}
	}
	t.Fatal("base/manager.yaml names no image")
	return ""
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func decode(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}
