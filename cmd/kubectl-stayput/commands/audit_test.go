package commands

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// revisionOf returns a ReplicaSet of the Deployment web.
func revisionOf(web *appsv1.Deployment, name, number string, change func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Annotations: map[string]string{"deployment.kubernetes.io/revision": number},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(web, appsv1.SchemeGroupVersion.WithKind("Deployment"))}}}
	rs.Spec.Template = *web.Spec.Template.DeepCopy()
	change(rs)
	return rs
}

// updated returns the namespace shop with a Deployment of four revisions: another image, a restart, another environment.
func updated() map[string]runtime.Object {
	web := web()
	web.Labels = map[string]string{"team": "blue"}
	image := func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Spec.Containers[0].Image = "app:2" }
	restarted := func(rs *appsv1.ReplicaSet) {
		image(rs)
		rs.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	}
	environment := func(rs *appsv1.ReplicaSet) {
		restarted(rs)
		rs.Spec.Template.Spec.Containers[0].Args = []string{"--verbose"}
	}
	return map[string]runtime.Object{shopPath: shop(""), webPath: web,
		inShop + "replicasets/web-1": revisionOf(web, "web-1", "1", func(*appsv1.ReplicaSet) {}),
		inShop + "replicasets/web-2": revisionOf(web, "web-2", "2", image),
		inShop + "replicasets/web-3": revisionOf(web, "web-3", "3", restarted),
		inShop + "replicasets/web-4": revisionOf(web, "web-4", "4", environment),
	}
}

func TestAuditPrintsTables(t *testing.T) {
	got, code := serve(t, updated()).run("audit", "-n", "shop", "--by-label", "team")
	const want = `Rollouts in the history: 3. Workloads: 1 with rollouts, 0 without.

WITH STAYPUT              ROLLOUTS   SHARE
in place                  1          33%
in place with a setting   1          33%
native                    1          33%

ROLLOUTS   SETTING THAT WOULD MAKE THEM IN PLACE
1          stayput.dev/restart-annotations: kubectl.kubernetes.io/restartedAt

ROLLOUTS   REASON WHY NATIVE   FIELD                     EXAMPLE
1          TemplateField       /spec/containers/*/args   deployment/web in shop, revision 4: /spec/containers/0/args added

NAMESPACE   ROLLOUTS   IN PLACE   WITH A SETTING   NATIVE
shop        3          1          1                1

LABEL team   ROLLOUTS   IN PLACE   WITH A SETTING   NATIVE
blue         3          1          1                1
`
	if got.out != want || got.err != "" || code != 0 {
		t.Errorf("exit code %d, errors %q, got:\n%s", code, got.err, got.out)
	}
}

func TestAuditOfNothing(t *testing.T) {
	got, code := serve(t, map[string]runtime.Object{shopPath: shop("")}).run("audit", "-n", "shop")
	if got.out != "Rollouts in the history: 0. Workloads: 0 with rollouts, 0 without.\n" || code != 0 {
		t.Errorf("exit code %d, got %+v", code, got)
	}
}

func TestAuditFlags(t *testing.T) {
	for arguments, want := range map[string]string{
		"-n shop -o json":                    `"withSetting": 1,`,
		"-n shop -o yaml":                    "withSetting: 1\n",
		"-n shop -o wide":                    `unknown output "wide"; it is json or yaml`,
		"-n shop deploy/web":                 `unknown command "deploy/web"`,
		"-n shop -l (":                       "found '(', expected",
		"-n kube-system":                     "namespace kube-system is never managed by Stayput",
		"-n shop --excluded-namespaces shop": "namespace shop is never managed by Stayput",
		"-n shop --stayput-namespace shop":   "namespace shop is never managed by Stayput",
		"-n elsewhere":                       "not found",
		"--help":                             "--by-label key",
	} {
		got, code := serve(t, updated()).run(append([]string{"audit"}, strings.Fields(arguments)...)...)
		if !strings.Contains(got.out+got.err, want) || (code != 0) != strings.HasPrefix(got.err, "kubectl stayput: ") {
			t.Errorf("%s: exit code %d, got %+v, want %q", arguments, code, got, want)
		}
	}
}
