//go:build helm

// Package charts has the Helm chart. It has no code, only tests of what the chart renders.
package charts

import (
	"bufio"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	chart = "stayput"
	// namespace is the namespace into which manifests/ installs. The user chooses the chart's namespace.
	namespace = "stayput-system"
	// user is the user name of the managers in that namespace.
	user = "system:serviceaccount:" + namespace + ":stayput"
)

// each runs a test with every Helm of $HELMS.
func each(t *testing.T, test func(t *testing.T, h helm)) {
	binaries := strings.Fields(os.Getenv("HELMS"))
	if len(binaries) == 0 {
		t.Fatal("$HELMS names no helm; make verify-chart does")
	}
	for _, binary := range binaries {
		t.Run(filepath.Base(binary), func(t *testing.T) { test(t, helm(binary)) })
	}
}

// helm is the path of a helm binary.
type helm string

// run runs helm and returns its output.
func (h helm) run(arguments ...string) (string, error) {
	output, err := exec.Command(string(h), arguments...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.New(string(exit.Stderr))
	}
	return string(output), err
}

// render runs helm template for Kubernetes 1.36, unless the options name another version. Without a cluster, Helm guesses the version.
func (h helm) render(options ...string) (string, error) {
	return h.run(append([]string{"template", "stayput", chart, "--namespace", namespace, "--kube-version", "1.36.0"}, options...)...)
}

func (h helm) template(t *testing.T, options ...string) rendering {
	t.Helper()
	output, err := h.render(options...)
	if err != nil {
		t.Fatalf("helm template %s: %v", strings.Join(options, " "), err)
	}
	return parse(t, output)
}

// rendering has the rendered objects, by kind and name.
type rendering map[string]map[string]any

func parse(t *testing.T, text string) rendering {
	t.Helper()
	all := rendering{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		var object map[string]any
		if err := errors.Join(err, yaml.UnmarshalStrict(document, &object)); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if object == nil {
			continue
		}
		metadata := object["metadata"].(map[string]any)
		key := object["kind"].(string) + " " + metadata["name"].(string)
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = object
	}
}

// of decodes one object. It fails if a field is unknown.
func of[T any](t *testing.T, r rendering, key string) T {
	t.Helper()
	var decoded T
	text, err := yaml.Marshal(r[key])
	if err == nil {
		err = yaml.UnmarshalStrict(text, &decoded)
	}
	if err != nil || r[key] == nil {
		t.Fatalf("%s: %v in:\n%s", key, err, text)
	}
	return decoded
}

// TestDefaultIsDist checks that the chart without options installs what kubectl apply of dist installs, except labels and the namespace.
func TestDefaultIsDist(t *testing.T) {
	want := dist(t)
	delete(want, "Namespace "+namespace)
	each(t, func(t *testing.T, h helm) {
		got := h.template(t, "--no-hooks")
		for key := range maps.Keys(got) {
			if want[key] == nil {
				t.Errorf("%s is not in dist/stayput.yaml", key)
			}
		}
		for key, object := range want {
			if withoutHelm(got[key]); !reflect.DeepEqual(got[key], object) {
				t.Errorf("%s differs:\n%v\nin dist/stayput.yaml:\n%v", key, got[key], object)
			}
		}
	})
}

// dist returns the objects in dist/stayput.yaml.
func dist(t *testing.T) rendering {
	t.Helper()
	content, err := os.ReadFile("../dist/stayput.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(content))
}

// withoutHelm removes Helm's labels.
func withoutHelm(object map[string]any) {
	if object == nil {
		return
	}
	labels := object["metadata"].(map[string]any)["labels"].(map[string]any)
	for _, label := range []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version",
		"helm.sh/chart"} {
		delete(labels, label)
	}
}

// TestEveryFieldIsKnown checks that the API knows every field of every object, including hooks.
func TestEveryFieldIsKnown(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		for key, object := range h.template(t) {
			kind := schema.FromAPIVersionAndKind(object["apiVersion"].(string), object["kind"].(string))
			typed, err := scheme.Scheme.New(kind)
			if runtime.IsNotRegisteredError(err) && kind.Group == "cert-manager.io" {
				continue
			}
			text, marshalErr := yaml.Marshal(object)
			if err = errors.Join(err, marshalErr); err == nil {
				err = yaml.UnmarshalStrict(text, typed)
			}
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
}

func TestLint(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		if output, err := h.run("lint", "--strict", chart); err != nil {
			t.Errorf("%v%s", err, output)
		}
	})
}

func TestManagerOptions(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		r := h.template(t, "--set", "hostNetwork=true,webhook.port=9444,metrics.port=9445,health.port=9446,replicas=3,image.repository=r.io/s",
			"--set", "image.tag=t,image.pullPolicy=Always,imagePullSecrets[0].name=pull,nodeSelector.pool=a,tolerations[0].operator=Exists",
			"--set", "podLabels.team=x,podAnnotations.note=y,resources.requests.cpu=1,goMemoryLimit=1GiB,goGC=100,affinity.nodeAffinity=null",
			"--set", "inPlaceAnnotations={a/b,c},restartAnnotations={checksum/config,d/*},excludedNamespaces={x,y}",
			"--set", `maxRestartingPods=10,maxRestartingPodsPerNode=1,maxRestartingPodsPerTopology.topology\.kubernetes\.io/zone=3`,
			"--set", "extraArgs={--zap-log-level=debug}")
		deployment := of[appsv1.Deployment](t, r, "Deployment stayput")
		pod := deployment.Spec.Template
		manager := pod.Spec.Containers[0]
		flags := []string{"--in-place-annotations=a/b,c", "--restart-annotations=checksum/config,d/*", "--excluded-namespaces=x,y",
			"--max-restarting-pods=10", "--max-restarting-pods-per-node=1", "--max-restarting-pods-per-topology=topology.kubernetes.io/zone=3",
			"--webhook-port=9444", "--metrics-address=[$(POD_IP)]:9445", "--health-address=127.0.0.1:9446", "--zap-log-level=debug"}
		if want := append([]string{"manager"}, flags...); !slices.Equal(manager.Args, want) {
			t.Errorf("args are %q, want %q", manager.Args, want)
		}
		hook := r["Job stayput-uninstall"]["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		uninstall := hook["containers"].([]any)[0]
		if args := uninstall.(map[string]any)["args"].([]any); len(args) != len(flags)+1 || args[0] != "uninstall" || args[1] != flags[0] {
			t.Errorf("the hook decides by other rules than the manager: %v", args)
		}
		for what, right := range map[string]bool{
			"replicas":     *deployment.Spec.Replicas == 3,
			"hostNetwork":  pod.Spec.HostNetwork && deployment.Spec.Strategy.RollingUpdate.MaxSurge.IntValue() == 0,
			"probes":       manager.LivenessProbe.HTTPGet.Host == "127.0.0.1" && manager.ReadinessProbe.HTTPGet.Host == "127.0.0.1",
			"image":        manager.Image == "r.io/s:t" && manager.ImagePullPolicy == "Always",
			"pull secrets": pod.Spec.ImagePullSecrets[0].Name == "pull",
			"ports": manager.Ports[0].ContainerPort == 9444 && manager.Ports[1].ContainerPort == 9445 &&
				manager.Ports[2].ContainerPort == 9446,
			"nodes":        pod.Spec.NodeSelector["pool"] == "a" && pod.Spec.Tolerations[0].Operator == "Exists",
			"labels":       pod.Labels["team"] == "x" && pod.Annotations["note"] == "y",
			"resources":    manager.Resources.Requests.Cpu().String() == "1" && !manager.Resources.Limits.Memory().IsZero(),
			"memory limit": manager.Env[2].Value == "1GiB" && manager.Env[3].Value == "100",
		} {
			if !right {
				t.Errorf("%s: not as the values say: %+v", what, deployment.Spec)
			}
		}
	})
}

// podsOf returns the specs of all pods that the chart makes, the hooks' included, by the object that makes them.
func podsOf(t *testing.T, r rendering) map[string]corev1.PodSpec {
	return map[string]corev1.PodSpec{
		"managers":  of[appsv1.Deployment](t, r, "Deployment stayput").Spec.Template.Spec,
		"uninstall": of[batchv1.Job](t, r, "Job stayput-uninstall").Spec.Template.Spec,
		"check":     of[corev1.Pod](t, r, "Pod stayput-check").Spec,
	}
}

// TestSecurityContexts checks that every pod has the security contexts of the values, and that null leaves out a field or all of them, also
// if a parent chart says so.
func TestSecurityContexts(t *testing.T) {
	parent := parentChart(t)
	none := corev1.SecurityContext{}
	user := func(user, group *int64) corev1.PodSecurityContext {
		return corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: user, RunAsGroup: group,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	}
	restricted := corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	each(t, func(t *testing.T, h helm) {
		for _, test := range []struct {
			sets      []string
			pod       corev1.PodSecurityContext
			container corev1.SecurityContext
		}{
			{nil, user(new(int64(65532)), new(int64(65532))), restricted},
			{[]string{"podSecurityContext.runAsUser=1000"}, user(new(int64(1000)), new(int64(65532))), restricted},
			{[]string{"podSecurityContext.runAsUser=null", "podSecurityContext.runAsGroup=null"}, user(nil, nil), restricted},
			{[]string{"podSecurityContext=null", "securityContext=null"}, corev1.PodSecurityContext{}, none},
		} {
			own, dependency := []string{}, []string{"template", "mine", parent, "--namespace", namespace, "--kube-version", "1.36.0"}
			for _, set := range test.sets {
				own, dependency = append(own, "--set", set), append(dependency, "--set", "stayput."+set)
			}
			output, err := h.run(dependency...)
			if err != nil {
				t.Fatal(err)
			}
			for chart, r := range map[string]rendering{"chart": h.template(t, own...), "dependency": parse(t, output)} {
				for name, spec := range podsOf(t, r) {
					pod, container := valueOf(spec.SecurityContext), valueOf(spec.Containers[0].SecurityContext)
					if !reflect.DeepEqual(pod, test.pod) || !reflect.DeepEqual(container, test.container) {
						t.Errorf("%s with %q: %s have %+v and %+v", chart, test.sets, name, pod, container)
					}
				}
			}
		}
	})
}

// valueOf returns what is pointed to, or the zero value.
func valueOf[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}

// TestClientCA checks that without a client CA there is no flag, and that probes go to the pod's own address.
func TestClientCA(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		for set, flags := range map[string][]string{"": nil, "callers": {"--client-ca=/client-ca/ca.crt"}} {
			deployment := of[appsv1.Deployment](t, h.template(t, "--set", "webhook.clientCAConfigMap="+set), "Deployment stayput")
			pod := deployment.Spec.Template.Spec
			if args := pod.Containers[0].Args[1:]; !slices.Equal(args, flags) {
				t.Errorf("with %q flags are %q, want %q", set, args, flags)
			}
			if name := pod.Volumes[1].ConfigMap.Name; set != "" && name != set {
				t.Errorf("the CA is read from %s, want %s", name, set)
			}
			if pod.Containers[0].LivenessProbe.HTTPGet.Host != "" {
				t.Errorf("it is probed elsewhere than at its own address")
			}
		}
	})
}

func TestCertificates(t *testing.T) {
	bundle := base64.StdEncoding.EncodeToString([]byte("PEM"))
	each(t, func(t *testing.T, h helm) {
		for _, test := range []struct {
			set                      string
			certificate, ca, injects bool
			secret                   string
		}{
			{"replicas=2", true, true, true, "stayput-webhook"},
			{"certificates.issuer.name=mine", true, false, true, "stayput-webhook"},
			{"certificates.secretName=given,certificates.caBundle=" + bundle, false, false, false, "given"},
		} {
			r := h.template(t, "--set", test.set)
			if (r["Certificate stayput-webhook"] != nil) != test.certificate || (r["Issuer stayput-ca"] != nil) != test.ca {
				t.Errorf("%s: certificate and CA are %v and %v", test.set, r["Certificate stayput-webhook"], r["Issuer stayput-ca"])
			}
			hooks := of[admissionv1.ValidatingWebhookConfiguration](t, r, "ValidatingWebhookConfiguration stayput")
			if (hooks.Annotations["cert-manager.io/inject-ca-from"] == namespace+"/stayput-webhook") != test.injects {
				t.Errorf("%s: annotations are %v", test.set, hooks.Annotations)
			}
			if bundled := string(hooks.Webhooks[0].ClientConfig.CABundle) == "PEM"; bundled == test.injects {
				t.Errorf("%s: caBundle is %q", test.set, hooks.Webhooks[0].ClientConfig.CABundle)
			}
			pod := of[appsv1.Deployment](t, r, "Deployment stayput").Spec.Template.Spec
			if got := pod.Volumes[0].Secret.SecretName; got != test.secret {
				t.Errorf("%s: the managers read Secret %s", test.set, got)
			}
		}
	})
}

// TestIssuer checks that the issuer may be of any kind.
func TestIssuer(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		r := h.template(t, "--set", "certificates.issuer.name=mine,certificates.issuer.kind=Issuer,certificates.issuer.group=example.com")
		ref := r["Certificate stayput-webhook"]["spec"].(map[string]any)["issuerRef"]
		if want := map[string]any{"name": "mine", "kind": "Issuer", "group": "example.com"}; !reflect.DeepEqual(ref, want) {
			t.Errorf("issuerRef is %v, want %v", ref, want)
		}
	})
}

// TestUninstallMayDeleteWhatAsks checks that the hook may delete every webhook configuration and policy that is installed.
func TestUninstallMayDeleteWhatAsks(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		r := h.template(t)
		var may []string
		for _, rule := range of[rbacv1.ClusterRole](t, r, "ClusterRole stayput-uninstall").Rules {
			for _, resource := range rule.Resources {
				for _, name := range rule.ResourceNames {
					may = append(may, resource+" "+name)
				}
			}
		}
		for key := range r {
			kind, name, _ := strings.Cut(key, " ")
			resource := strings.ToLower(kind) + "s"
			if kind == "ValidatingAdmissionPolicy" {
				resource = "validatingadmissionpolicies"
			}
			asks := strings.HasSuffix(kind, "WebhookConfiguration") || strings.HasPrefix(kind, "ValidatingAdmissionPolicy")
			if asks && !slices.Contains(may, resource+" "+name) {
				t.Errorf("stayput-uninstall may not delete %s", key)
			}
		}
	})
}

// TestUninstallHasRightsOfManagers checks that the hook has those rights of the managers that it needs to let updates fall back: it watches
// nothing, creates nothing, and warns of nothing.
func TestUninstallHasRightsOfManagers(t *testing.T) {
	needless := []string{"watch", "create", "events", "resourcequotas", "horizontalpodautoscalers", "poddisruptionbudgets",
		"validatingwebhookconfigurations"}
	without := func(list []string) []string {
		return slices.DeleteFunc(list, func(each string) bool { return slices.Contains(needless, each) })
	}
	each(t, func(t *testing.T, h helm) {
		r := h.template(t)
		var want []rbacv1.PolicyRule
		for _, rule := range of[rbacv1.ClusterRole](t, r, "ClusterRole stayput").Rules {
			if rule.Verbs, rule.Resources = without(rule.Verbs), without(rule.Resources); len(rule.Verbs) > 0 && len(rule.Resources) > 0 {
				want = append(want, rule)
			}
		}
		got := slices.DeleteFunc(of[rbacv1.ClusterRole](t, r, "ClusterRole stayput-uninstall").Rules,
			func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.APIGroups, "admissionregistration.k8s.io")
			})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the hook may\n%v\nand the managers\n%v", got, want)
		}
	})
}

func TestMonitoring(t *testing.T) {
	for value, want := range map[string]string{"podMonitor": "PodMonitor stayput", "serviceMonitor": "ServiceMonitor stayput",
		"prometheusRule": "PrometheusRule stayput", "dashboard": "ConfigMap stayput-dashboard"} {
		each(t, func(t *testing.T, h helm) {
			object := h.template(t, "--set", value+".enabled=true,"+value+".labels.release=prom")[want]
			if object == nil || object["metadata"].(map[string]any)["labels"].(map[string]any)["release"] != "prom" {
				t.Errorf("%s: %v", value, object)
			}
		})
	}
}

// TestNonsenseIsRefused checks that the schema refuses wrong values, and that the error names the value.
func TestNonsenseIsRefused(t *testing.T) {
	for set, named := range map[string]string{
		"replica=3":                                 "replica",
		"replicas=0":                                "replicas",
		"certificates.secretName=given":             "caBundle",
		"certificates.caBundle=UEVN":                "caBundle",
		"hostNetwork=true":                          "port",
		"extraArgs={manager}":                       "extraArgs",
		"image.digest=latest":                       "digest",
		"webhook.port=443":                          "port",
		"podMonitor.interval=often":                 "interval",
		"certificates.issuer.namespace=x":           "namespace",
		"enabled=maybe":                             "enabled",
		"image.registry=mirror.example/":            "registry",
		"global.imageRegistry=a/":                   "imageRegistry",
		"logLevel=loud":                             "logLevel",
		"logLevel=0":                                "logLevel",
		"logEncoder=xml":                            "logEncoder",
		"extraEnv[0].value=a":                       "extraEnv",
		"extraVolumes[0].emptyDir.a=b":              "extraVolumes",
		"extraVolumeMounts[0].mountPath=a":          "extraVolumeMounts",
		"serviceAccount.name=Capital":               "name",
		"podDisruptionBudget.minAvailable=half":     "minAvailable",
		"podDisruptionBudget.maxUnavailable=-1":     "maxUnavailable",
		"networkPolicy.metricsNamespaces[0]=":       "metricsNamespaces",
		"podMonitor.scrapeTimeout=soon":             "scrapeTimeout",
		"serviceMonitor.namespace=A":                "namespace",
		"commonLabels.app\\.kubernetes\\.io/name=x": "app.kubernetes.io/name",
		"global=x":                                  "global",
		"global.imagePullSecrets=x":                 "imagePullSecrets",
		"extraObjects[0]=1":                         "extraObjects",
		"commonAnnotations.helm\\.sh/hook=x":        "helm.sh/hook",
	} {
		each(t, func(t *testing.T, h helm) {
			if _, err := h.render("--set", set); err == nil || !strings.Contains(err.Error(), named) {
				t.Errorf("--set %s: %v, want an error about %s", set, err, named)
			}
		})
	}
}

// TestAnotherNamespace checks that a chart in another namespace does not name the namespace into which manifests/ installs.
func TestAnotherNamespace(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		output, err := h.render("--namespace", "elsewhere")
		if err != nil || strings.Contains(output, namespace) || !strings.Contains(output, "system:serviceaccount:elsewhere:stayput") {
			t.Errorf("%v; %s is named: %t", err, namespace, strings.Contains(output, namespace))
		}
	})
}

// TestAsADependency checks that a parent chart can switch this one on and off by a condition, and sets its values.
func TestAsADependency(t *testing.T) {
	parent := parentChart(t)
	each(t, func(t *testing.T, h helm) {
		for set, replicas := range map[string]int32{
			"stayput.enabled=true":                    2,
			"stayput.enabled=true,stayput.replicas=3": 3,
			"global.team=x":                           2,
			"stayput.enabled=false":                   0,
		} {
			output, err := h.run("template", "mine", parent, "--namespace", namespace, "--kube-version", "1.36.0", "--set", set)
			if err != nil {
				t.Errorf("--set %s: %v", set, err)
				continue
			}
			r := parse(t, output)
			if replicas == 0 && len(r) == 0 {
				continue
			}
			if got := *of[appsv1.Deployment](t, r, "Deployment stayput").Spec.Replicas; got != replicas {
				t.Errorf("--set %s: there are %d replicas, want %d", set, got, replicas)
			}
		}
	})
}

// parentChart returns the folder of a chart that depends on Stayput's.
func parentChart(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	err := os.CopyFS(filepath.Join(folder, "charts", "stayput"), os.DirFS(chart))
	description := "apiVersion: v2\nname: mine\nversion: 1.0.0\n" +
		"dependencies: [{name: stayput, version: '*', condition: stayput.enabled}]\n"
	if err = errors.Join(err, os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte(description), 0o600)); err != nil {
		t.Fatal(err)
	}
	return folder
}
