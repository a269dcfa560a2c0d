package check

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// expected is a finding, with parts of its sentences.
type expected struct {
	level                  Level
	about, problem, remedy string
}

func (e expected) is(f Finding) bool {
	return f.Level == e.level && f.About == e.about && strings.Contains(f.Problem, e.problem) && strings.Contains(f.Remedy, e.remedy)
}

// TestCheckFinds breaks one thing at a time. It expects this one finding, and no other.
func TestCheckFinds(t *testing.T) {
	for name, test := range map[string]struct {
		broken func(*cluster)
		want   expected
	}{
		"an old cluster": {func(c *cluster) { c.version = "v1.34.9" },
			expected{Error, "Kubernetes", "Kubernetes v1.34.9", "upgrade the cluster"}},

		"no service account": {without[*corev1.ServiceAccount]("replicaset-controller"),
			expected{Error, "native controllers", "no service account replicaset-controller", "--use-service-account-credentials=true"}},

		"a node with an old containerd": {func(c *cluster) { c.with(node("two", "containerd://1.7.27")) },
			expected{Warning, "images first", "on node two", "containerd 2.1"}},
		"nodes that may not be read": {func(c *cluster) { c.unreadable = true },
			expected{Unchecked, "images first", "nodes is forbidden", "cluster-admin"}},

		"a CA that is not injected": {func(c *cluster) { c.bundles([]byte{}) },
			expected{Error, "certificate", "mutating webhook edits.stayput.dev has no caBundle", "cainjector"}},

		"no managers": {func(c *cluster) { c.manager = nil },
			expected{Error, "managers", "there is no Deployment stayput-system/stayput", "--stayput-namespace"}},
		"managers scaled to 0": {func(c *cluster) {
			c.manager.Status, c.manager.Spec.Replicas = appsv1.DeploymentStatus{}, ptr.To[int32](0)
		}, expected{Error, "managers", "is scaled to 0", "scale deployment stayput --replicas=2"}},
		"managers that are refused": {func(c *cluster) {
			c.manager.Status = appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "violates PodSecurity"}}}
		}, expected{Error, "managers", "violates PodSecurity. Until one is, every update is native", "describe pods"}},
		"an image that cannot be pulled": {func(c *cluster) {
			c.down(untrue(corev1.PodReady, ""))
			c.manager.Status = appsv1.DeploymentStatus{AvailableReplicas: 2, UpdatedReplicas: 1}
		}, expected{Warning, "managers", "1 of 2 managers are up to date and available: pod stayput-1 is not ready", "describe pods"}},
		"a manager that is not ready": {func(c *cluster) {
			c.readyz = "[-]caches-are-filled failed: reason withheld\n[+]webhook-port-answers ok\nhealthz check failed\n"
			c.down(untrue(corev1.PodReady, "containers with unready status: [manager]"))
		}, expected{Error, "managers", "pod stayput-1 is not ready, and its check caches-are-filled fails", ""}},
		"a manager that cannot be asked": {func(c *cluster) { c.down(untrue(corev1.PodReady, "unready status: [manager]")) },
			expected{Error, "managers", "pod stayput-1 is not ready. Until", ""}},
		"no pods yet": {func(c *cluster) { c.manager.Status = appsv1.DeploymentStatus{} },
			expected{Error, "managers", "have just started", "wait a minute"}},
		"no Lease": {func(c *cluster) { c.lease = nil }, expected{Error, "managers", "no manager leads", "logs deployment/stayput"}},
		"no leader": {func(c *cluster) { c.lease.Spec.RenewTime.Time = time.Now().Add(-2 * time.Minute) },
			expected{Error, "managers", "was not renewed in the last 1m0s", "clocks of nodes"}},

		"no ConfigMap for fallbacks": {without[*corev1.ConfigMap]("stayput-fallbacks"),
			expected{Error, "objects", "missing: ConfigMap stayput-fallbacks. ", again}},

		"no mutating webhooks": {func(c *cluster) {
			c.mutating = &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
		},
			expected{Error, "webhooks", "lack mutating webhook edits.stayput.dev, mutating webhook new-", again}},
		"one webhook is missing": {func(c *cluster) { c.validating.Webhooks = c.validating.Webhooks[1:] },
			expected{Error, "webhooks", "lack validating webhook edits.stayput.dev, so", again}},
		"a firewall": {func(c *cluster) { c.firewall = true }, expected{Error, "webhooks", "i/o timeout", "firewalls"}},
		"no Service": {func(c *cluster) {
			c.says = &apierrors.NewNotFound(corev1.Resource("services"), "stayput-webhook").ErrStatus
		}, expected{Error, "webhooks", `services "stayput-webhook" not found`, "let the Service select the managers' pods"}},
		"managers that are not ready by now": {func(c *cluster) {
			c.says = &apierrors.NewServiceUnavailable(`no endpoints available for service "web"`).ErrStatus
		}, expected{Error, "webhooks", `no endpoints available for service "web"`, "select the managers' pods"}},
		"a right that the user lacks": {func(c *cluster) {
			c.says = &apierrors.NewForbidden(corev1.Resource("services/proxy"), "web", nil).ErrStatus
		}, expected{Unchecked, "webhooks", `services/proxy "web" is forbidden`, "cluster-admin"}},
		"managers of another version": {func(c *cluster) { *c.validating.Webhooks[0].ClientConfig.Service.Path += "-2" },
			expected{Error, "webhooks", "validating webhook edits.stayput.dev does not answer", "another version"}},

		"a write that passes by": {func(c *cluster) { c.bypassing = true },
			expected{Error, "writes", "namespace shop passed without an answer", "failed calling webhook"}},
		"a write that is refused": {func(c *cluster) { c.refusing = errors.New("no team") },
			expected{Unchecked, "writes", "no team", "as a user who may"}},

		"a policy is missing": {without[*admissionv1.ValidatingAdmissionPolicy]("stayput-marks"),
			expected{Error, "objects", "missing: ValidatingAdmissionPolicy stayput-marks. ", again}},
		"a policy without binding": {without[*admissionv1.ValidatingAdmissionPolicyBinding]("stayput-marks"),
			expected{Error, "objects", "missing: ValidatingAdmissionPolicyBinding stayput-marks. ", again}},

		"a label that is no mode": {func(c *cluster) { c.with(labelled("till", "inplace")) },
			expected{Warning, "labels", "namespace till has the label stayput.dev/update=inplace", "set it to in-place, in-place-only, or"}},
		"a label on kube-system": {func(c *cluster) { c.with(labelled(kubeSystem, "in-place")) },
			expected{Warning, "labels", "Stayput never manages", "kubectl label namespace kube-system stayput.dev/update-"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := sound(t)
			test.broken(c)
			found, err := c.checker(t, true).Check(t.Context())
			if err != nil || len(found.Findings) != 1 || !test.want.is(found.Findings[0]) {
				t.Errorf("it finds %+v\nwant %+v: %v", found.Findings, test.want, err)
			}
		})
	}
}

// TestCheckFindsNothing has clusters that are not like the others, and are right.
func TestCheckFindsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		other func(*cluster)
		says  string
	}{
		"as installed":          {func(*cluster) {}, "webhooks: the API server reaches the managers, and all 16 answer"},
		"a dry run":             {func(*cluster) {}, "writes: a dry run in namespace shop passed through the webhooks"},
		"on 1.35 of a vendor":   {func(c *cluster) { c.version = "v1.35.2-gke.1200" }, "Kubernetes: v1.35.2-gke.1200"},
		"without cert-manager":  {func(c *cluster) { c.noCertManager = true }, "certificate: no webhook waits"},
		"API servers only":      {func(c *cluster) { c.callers = tls.RequireAnyClientCert }, "all 16 answer"},
		"no namespace labelled": {without[*corev1.Namespace]("shop"), "labels: labelled namespaces: 0"},
		"two namespaces":        {func(c *cluster) { c.with(labelled("till", "in-place-only")) }, "labels: labelled namespaces: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sound(t)
			test.other(c)
			found, err := c.checker(t, true).Check(t.Context())
			var said strings.Builder
			if err := errors.Join(err, found.PrintText(&said)); err != nil {
				t.Fatal(err)
			}
			if len(found.Findings) > 0 || !strings.Contains(said.String(), test.says) {
				t.Errorf("it must find nothing, and say %q:\n%s", test.says, said.String())
			}
		})
	}
}

// TestCheckBeforeInstallation checks that only the cluster is judged where nothing of Stayput is.
func TestCheckBeforeInstallation(t *testing.T) {
	c := sound(t)
	found, err := c.checker(t, false).Check(t.Context())
	if err != nil || found.Installed || len(found.Findings) > 0 || len(found.Passed) != 4 {
		t.Errorf("it reports %+v: %v", found, err)
	}
	c.noCertManager = true
	want := expected{Warning, "certificate", "does not have cert-manager", "certificates.secretName"}
	if found, err := c.checker(t, false).Check(t.Context()); err != nil || len(found.Findings) != 1 || !want.is(found.Findings[0]) {
		t.Errorf("without cert-manager it finds %+v: %v", found, err)
	}
}

// TestWithoutManagersNothingElseIsWrong checks that what follows from one finding is not found again.
func TestWithoutManagersNothingElseIsWrong(t *testing.T) {
	c := sound(t)
	c.manager.Status = appsv1.DeploymentStatus{}
	c.lease, c.firewall, c.bypassing = nil, true, true
	if found, err := c.checker(t, true).Check(t.Context()); err != nil || len(found.Findings) != 1 || found.Findings[0].About != "managers" {
		t.Errorf("it finds %+v: %v", found.Findings, err)
	}
}

// TestAFirewallExplainsTheDryRun checks that a dry run without an answer is no finding of its own if another says why.
func TestAFirewallExplainsTheDryRun(t *testing.T) {
	c := sound(t)
	c.firewall, c.bypassing = true, true
	if found, err := c.checker(t, true).Check(t.Context()); err != nil || len(found.Findings) != 1 || found.Findings[0].About != "webhooks" {
		t.Errorf("it finds %+v: %v", found.Findings, err)
	}
}

// TestNamesAreThoseOfTheManifests checks the lists of what must be installed.
func TestNamesAreThoseOfTheManifests(t *testing.T) {
	c := sound(t)
	var hooks, policies, bindings []string
	for _, each := range c.mutating.Webhooks {
		hooks = append(hooks, mutating+each.Name)
	}
	for _, each := range c.validating.Webhooks {
		hooks = append(hooks, validating+each.Name)
	}
	for _, each := range manifests[admissionv1.ValidatingAdmissionPolicy](t, "ValidatingAdmissionPolicy") {
		policies = append(policies, each.Name)
	}
	for _, each := range manifests[admissionv1.ValidatingAdmissionPolicyBinding](t, "ValidatingAdmissionPolicyBinding") {
		if bindings = append(bindings, each.Name); each.Spec.PolicyName != each.Name {
			t.Errorf("binding %s is for policy %s", each.Name, each.Spec.PolicyName)
		}
	}
	for what, lists := range map[string][2][]string{
		"webhooks": {hooks, hookNames}, "policies": {policies, Policies}, "bindings": {bindings, Policies},
	} {
		if got, want := slices.Sorted(slices.Values(lists[0])), slices.Sorted(slices.Values(lists[1])); !slices.Equal(got, want) {
			t.Errorf("the manifests have the %s %q, and the check %q", what, got, want)
		}
	}
}

func TestPrintText(t *testing.T) {
	for want, of := range map[string]Report{
		`ok         Kubernetes: v1.36.3
error      managers: no manager leads: there is no Lease
           Mend it: look at the log
unchecked  rights: forbidden
           Mend it: ask an administrator
Findings: 2.
`: {Installed: true, Passed: []Passed{{"Kubernetes", "v1.36.3"}}, Findings: []Finding{
			{Error, "managers", "no manager leads:\nthere is no Lease", "look at the log"},
			{Unchecked, "rights", "forbidden", "ask an administrator"},
		}},
		"Nothing is wrong.\n": {Installed: true},
		"Nothing is wrong with the cluster. Stayput is not installed.\n": {},
	} {
		var out strings.Builder
		if err := of.PrintText(&out); err != nil || out.String() != want {
			t.Errorf("it prints\n%s\nwant\n%s: %v", out.String(), want, err)
		}
	}
}

// TestReportForPrograms checks the names of the fields, which programs read. Lists are lists also where they are empty.
func TestReportForPrograms(t *testing.T) {
	c := sound(t)
	c.version = "v1.34.0"
	found, err := c.checker(t, true).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"installed":true`, `"findings":[{"level":"error","about":"Kubernetes","problem":"the API server`,
		`"remedy":"upgrade the cluster`, `"passed":[{"about":"native controllers","says":"they have`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
	if found, err = sound(t).checker(t, true).Check(t.Context()); err != nil || found.Findings == nil {
		t.Errorf("%v: findings are no list in %+v", err, found)
	}
}
