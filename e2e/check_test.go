//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stayput/stayput/internal/check"
)

// breakage is a way to break an installation, and what the check must find then.
type breakage struct {
	// objects are broken, and restored afterwards.
	objects []string
	breaks  func(*checkup)
	want    check.Finding // with parts of its sentences
}

// checkup is an installation that is broken on purpose, one thing at a time.
type checkup struct {
	*scenario
}

// The objects that are broken, as kubectl names them.
const (
	inOwn      = "-n=" + ownNamespace
	mutating   = "mutatingwebhookconfiguration/" + ownName
	validating = "validatingwebhookconfiguration/" + ownName
	deployment = "deployment/" + ownName
	service    = "service/stayput-webhook"
	marks      = "stayput-marks"
)

// checks breaks the installation in many ways. Of each it expects the sentence that mends it. Before and afterwards nothing may be wrong.
func checks(t *testing.T) {
	c := &checkup{newScenario(t, labelled)}
	c.create(web(1))
	c.managed("web")
	c.sound()
	c.proves()
	for name, b := range breakages {
		t.Run(name, func(t *testing.T) {
			c := &checkup{c.in(t)}
			t.Cleanup(c.sound)
			for _, object := range b.objects {
				t.Cleanup(c.saved(object))
			}
			b.breaks(c)
			c.finds(b.want)
		})
	}
}

// in returns the same scenario for a subtest.
func (s *scenario) in(t *testing.T) *scenario {
	sub := *s
	sub.T = t
	return &sub
}

// report runs the plugin, and returns what it reports and its exit code.
func (c *checkup) report(ctx context.Context, flags ...string) (report check.Report, code int, err error) {
	arguments := append([]string{"stayput", "check", "-o", "json", "--kubeconfig", kubeconfig}, flags...)
	command := exec.CommandContext(ctx, filepath.Join(binaries, "kubectl"), arguments...)
	command.Env = append(os.Environ(), "PATH="+binaries+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr = &out, &messages
	if err := command.Run(); command.ProcessState == nil {
		return report, 0, err
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return report, 0, fmt.Errorf("%w in %q: %s", err, out.String(), messages.String())
	}
	return report, command.ProcessState.ExitCode(), nil
}

// proves has the native controllers prove their user names, and checks that the proof leaves nothing behind.
func (c *checkup) proves() {
	c.Helper()
	c.eventually("the native controllers to prove who they are", func(ctx context.Context) error {
		report, code, err := c.report(ctx, "--prove")
		proved := slices.ContainsFunc(report.Passed, func(each check.Passed) bool { return strings.HasPrefix(each.Says, "proved: ") })
		if err == nil && (code != 0 || !proved) {
			err = fmt.Errorf("exit code %d: %+v", code, report)
		}
		return err
	})
	c.eventually("the proof to be gone", func(ctx context.Context) error {
		left, _, err := kubectl(ctx, "", "get", "namespaces,validatingadmissionpolicies,validatingadmissionpolicybindings",
			"-l", "app.kubernetes.io/name=stayput-prove", "-o", "name")
		if err == nil && left != "" {
			err = fmt.Errorf("it has left %s", left)
		}
		return err
	})
}

// sound waits until the check finds nothing.
func (c *checkup) sound() {
	c.Helper()
	if err := poll(context.Background(), func(ctx context.Context) error {
		report, code, err := c.report(ctx)
		if err == nil && (len(report.Findings) > 0 || code != 0 || !report.Installed) {
			err = fmt.Errorf("exit code %d, and it finds %+v", code, report.Findings)
		}
		return err
	}); err != nil {
		c.Errorf("the installation is not sound: %v", err)
	}
}

// finds waits until the check finds what is wanted, and checks the exit code.
func (c *checkup) finds(want check.Finding) {
	c.Helper()
	c.eventually("the check to find it", func(ctx context.Context) error {
		report, code, err := c.report(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(report.Findings, func(each check.Finding) bool {
			return each.Level == want.Level && each.About == want.About && strings.Contains(each.Problem, want.Problem) &&
				strings.Contains(each.Remedy, want.Remedy)
		})
		if at < 0 {
			return fmt.Errorf("it finds %+v, and not %+v", report.Findings, want)
		}
		if report.Has(check.Error) != (code == 2) {
			return fmt.Errorf("exit code %d with findings %+v", code, report.Findings)
		}
		c.Logf("%+v", report.Findings[at])
		return nil
	})
}

// saved returns a function that restores the object as it is now.
func (c *checkup) saved(object string) (restore func()) {
	c.Helper()
	var kept unstructured.Unstructured
	if err := json.Unmarshal([]byte(c.kubectl("", "get", object, inOwn, "-o", "json")), &kept.Object); err != nil {
		c.Fatal(err)
	}
	kept.SetResourceVersion("")
	kept.SetUID("")
	text, err := kept.MarshalJSON()
	if err != nil {
		c.Fatal(err)
	}
	return func() {
		ctx := context.Background()
		if _, _, err := kubectl(ctx, string(text), "replace", "-f", "-"); err != nil {
			if _, _, err := kubectl(ctx, string(text), "create", "-f", "-"); err != nil {
				c.Errorf("%s is not restored: %v", object, err)
			}
		}
	}
}

// deletes deletes the object of Stayput.
func deletes(object string) func(*checkup) {
	return func(c *checkup) { c.kubectl("", "delete", object, inOwn, "--timeout=1m") }
}

// patches patches the object of Stayput: with a JSON patch if that is a list.
func patches(object, patch string) func(*checkup) {
	kind := "merge"
	if strings.HasPrefix(patch, "[") {
		kind = "json"
	}
	return func(c *checkup) { c.kubectl("", "patch", object, inOwn, "--type="+kind, "-p", patch) }
}

const again = "install Stayput again"

// breakages are by name, so they run in any order.
var breakages = map[string]breakage{
	"managers scaled to 0": {[]string{deployment}, func(c *checkup) { dismissManagers(c.scenario) },
		check.Finding{Level: check.Error, About: "managers", Problem: "is scaled to 0", Remedy: "scale deployment stayput --replicas=2"}},
	"an image that is missing": {[]string{deployment}, func(c *checkup) {
		c.kubectl("", "set", "image", inOwn, deployment, "manager="+registry+"stayput:missing")
	}, check.Finding{Level: check.Warning, About: "managers", Problem: "is not ready", Remedy: "describe pods"}},
	"managers that a policy refuses": {[]string{deployment}, patches(deployment,
		`{"spec":{"template":{"spec":{"hostNetwork":true}}}}`),
		check.Finding{Level: check.Warning, About: "managers", Problem: "violates PodSecurity", Remedy: "mend what this says"}},

	"no ConfigMap": {[]string{"configmap/stayput-fallbacks"}, deletes("configmap/stayput-fallbacks"),
		check.Finding{Level: check.Error, About: "objects", Problem: "ConfigMap stayput-fallbacks", Remedy: again}},

	"no webhook configuration": {[]string{mutating}, deletes(mutating),
		check.Finding{Level: check.Error, About: "webhooks", Problem: "lack mutating webhook edits.stayput.dev, mutating", Remedy: again}},
	"one webhook is missing":       withoutWebhook(validating, "replicasets.stayput.dev"),
	"kubelets' reports go unasked": withoutWebhook(mutating, "kubelet-reports.stayput.dev"),
	"webhooks of another version": {[]string{mutating},
		patches(mutating, `[{"op":"replace","path":"/webhooks/0/clientConfig/service/path","value":"/mutate-everything"}]`),
		check.Finding{Level: check.Error, About: "webhooks", Problem: "404", Remedy: "another version than the managers"}},
	"a Service that selects nothing": {[]string{service}, patches(service, `{"spec":{"selector":{"app.kubernetes.io/name":"other"}}}`),
		check.Finding{Level: check.Error, About: "webhooks", Problem: "no endpoints available", Remedy: "select the managers' pods"}},
	"no Service": {[]string{service}, deletes(service),
		check.Finding{Level: check.Error, About: "webhooks", Problem: "does not answer the API server", Remedy: again}},
	"a port that is not served": {[]string{mutating, validating}, func(c *checkup) { portWebhooks(c.T, 444) },
		check.Finding{Level: check.Error, About: "writes", Problem: "passed without an answer", Remedy: "failed calling webhook"}},

	"a CA that is not injected": {nil, withoutCertManager(patches(mutating, `[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)),
		check.Finding{Level: check.Error, About: "certificate", Problem: "has no caBundle", Remedy: "cainjector runs"}},
	"another CA": {[]string{mutating}, withoutCertManager(otherCA),
		check.Finding{Level: check.Error, About: "writes", Problem: "it does not trust their certificate", Remedy: "certificates.caBundle"}},

	"a policy is missing": {[]string{"validatingadmissionpolicy/" + marks}, deletes("validatingadmissionpolicy/" + marks),
		check.Finding{Level: check.Error, About: "objects", Problem: marks, Remedy: again}},
	"a policy without its binding": {[]string{"validatingadmissionpolicybinding/" + marks},
		deletes("validatingadmissionpolicybinding/" + marks),
		check.Finding{Level: check.Error, About: "objects", Problem: marks, Remedy: again}},

	"a label that is no mode": {nil, labelledWrongly,
		check.Finding{Level: check.Warning, About: "labels", Problem: "stayput.dev/update=inplace, which is no mode",
			Remedy: "in-place, in-place-only"}},
}

// withoutWebhook deletes a webhook of a configuration.
func withoutWebhook(configuration, name string) breakage {
	return breakage{[]string{configuration}, func(c *checkup) {
		c.kubectl("", "patch", configuration, "--type=strategic", "-p", `{"webhooks":[{"name":"`+name+`","$patch":"delete"}]}`)
	}, check.Finding{Level: check.Error, About: "webhooks", Problem: "webhook " + name, Remedy: again}}
}

// withoutCertManager breaks what cainjector would mend: it may still be about to write a CA for an annotation that it has read before.
func withoutCertManager(breaks func(*checkup)) func(*checkup) {
	return func(c *checkup) {
		component(c.T, "stop", "cert-manager")
		c.Cleanup(func() { component(c.T, "start", "cert-manager") })
		breaks(c)
	}
}

// otherCA has API servers trust the CA of the cluster instead of Stayput's.
func otherCA(c *checkup) {
	other := c.kubectl("", "get", "configmap", "kube-root-ca.crt", inOwn, "-o", `jsonpath={.data.ca\.crt}`)
	patches(mutating, fmt.Sprintf(`[{"op":"remove","path":"/metadata/annotations"},
		{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":%q}]`, base64.StdEncoding.EncodeToString([]byte(other))))(c)
}

// labelledWrongly labels a namespace as the policy stayput-namespaces would not allow.
func labelledWrongly(c *checkup) {
	const binding = "validatingadmissionpolicybinding/stayput-namespaces"
	restore := c.saved(binding)
	defer restore()
	deletes(binding)(c)
	namespace := nameOf(c.T)
	c.kubectl("", "create", "namespace", namespace)
	c.Cleanup(func() { deleteNamespace(c.T, namespace) })
	c.eventually("the label to be accepted", func(ctx context.Context) error {
		_, _, err := kubectl(ctx, "", "label", "namespace", namespace, updateLabel+"=inplace")
		return err
	})
}
