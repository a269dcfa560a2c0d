//go:build helm

package charts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// free are values whose contents the schema leaves to Kubernetes.
var free = []string{"resources", "podSecurityContext", "securityContext", "labels", "annotations"}

// TestEveryValueHasAType checks that the schema refuses a value of another type than the default's, and that the error names the value.
func TestEveryValueHasAType(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	leaves, groups := wrongTypes(values, false), wrongTypes(values, true)
	each(t, func(t *testing.T, h helm) {
		checked := 0
		for _, wrong := range []map[string]any{leaves, groups} {
			refused := h.refusal(t, wrong)
			for _, path := range pathsOf("", wrong) {
				if checked++; !strings.Contains(refused, "at '"+path+"'") {
					t.Errorf("a wrong type of %s is not refused:\n%s", path, refused)
				}
			}
		}
		if checked < 70 {
			t.Errorf("there are only %d values", checked)
		}
	})
}

// refusal returns the error with which Helm refuses the values.
func (h helm) refusal(t *testing.T, values map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(values)
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err = errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err = h.render("--values", file); err == nil {
		t.Fatalf("these values are accepted:\n%s", text)
	}
	return err.Error()
}

// wrong is a value of another type than any value of the chart has.
type wrong struct {
	X []bool `json:"wrong"`
}

// wrongTypes returns the mapping with values of wrong types: all values that are no mappings, or else the mappings that are not free.
func wrongTypes(mapping map[string]any, groups bool) map[string]any {
	all := map[string]any{}
	for key, value := range mapping {
		nested, isGroup := value.(map[string]any)
		switch {
		case isGroup && (groups || slices.Contains(free, key)):
			all[key] = "wrong"
		case isGroup:
			all[key] = wrongTypes(nested, false)
		case !groups:
			all[key] = wrong{}
		}
	}
	return all
}

// pathsOf returns the paths of what is wrong in the mapping.
func pathsOf(prefix string, mapping map[string]any) []string {
	var paths []string
	for key, value := range mapping {
		if nested, isGroup := value.(map[string]any); isGroup {
			paths = append(paths, pathsOf(prefix+"/"+key, nested)...)
			continue
		}
		paths = append(paths, prefix+"/"+key)
	}
	return paths
}

// TestServiceAccountIsFollowed checks that what knows the managers by their service account knows them by its other name as well.
func TestServiceAccountIsFollowed(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		sets := []string{"--set", "serviceAccount.name=other,serviceAccount.annotations.cloud=role"}
		before, err := h.render()
		if err != nil {
			t.Fatal(err)
		}
		after, err := h.render(sets...)
		if err != nil {
			t.Fatal(err)
		}
		own, others := user+`"`, "system:serviceaccount:"+namespace+`:other"`
		if n := strings.Count(before, own); n < 10 || strings.Count(after, others) != n || strings.Contains(after, own) {
			t.Errorf("%d expressions name the managers, of these %d by the other name", n, strings.Count(after, others))
		}
		r := h.template(t, sets...)
		if account := of[corev1.ServiceAccount](t, r, "ServiceAccount other"); account.Annotations["cloud"] != "role" {
			t.Errorf("its annotations are %v", account.Annotations)
		}
		if name := of[appsv1.Deployment](t, r, "Deployment stayput").Spec.Template.Spec.ServiceAccountName; name != "other" {
			t.Errorf("the managers run as %s", name)
		}
		for what, name := range map[string]string{
			"Role":          of[rbacv1.RoleBinding](t, r, "RoleBinding stayput").Subjects[0].Name,
			"ClusterRole":   of[rbacv1.ClusterRoleBinding](t, r, "ClusterRoleBinding stayput").Subjects[0].Name,
			"queue":         of[flowcontrolv1.FlowSchema](t, r, "FlowSchema stayput").Spec.Rules[0].Subjects[0].ServiceAccount.Name,
			"lease's queue": of[flowcontrolv1.FlowSchema](t, r, "FlowSchema stayput-leader-election").Spec.Rules[0].Subjects[0].ServiceAccount.Name,
		} {
			if name != "other" {
				t.Errorf("the %s is %s's", what, name)
			}
		}
		if r := h.template(t, "--set", "serviceAccount.create=false,serviceAccount.name=given"); r["ServiceAccount given"] != nil {
			t.Error("the chart creates a service account that is there")
		}
	})
}

func TestRegistry(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		for set, want := range map[string]string{
			"image.tag=t":                                                              "ghcr.io/stayput/stayput:t",
			"image.tag=t,image.registry=a.io":                                          "a.io/stayput/stayput:t",
			"image.tag=t,global.imageRegistry=b.io/mirror":                             "b.io/mirror/stayput/stayput:t",
			"image.tag=t,image.registry=a.io,global.imageRegistry=b.io":                "a.io/stayput/stayput:t",
			"image.tag=t,global.imageRegistry=b.io,image.repository=team/own":          "b.io/team/own:t",
			"image.tag=t,global.imageRegistry=b.io,image.repository=localhost/own":     "b.io/own:t",
			"image.tag=t,global.imageRegistry=b.io,image.repository=registry:5000/a/b": "b.io/a/b:t",
			"global=null,image.tag=t,image.repository=127.0.0.1:5000/own":              "127.0.0.1:5000/own:t",
		} {
			for name, pod := range podsOf(t, h.template(t, "--set", set)) {
				if got := pod.Containers[0].Image; got != want {
					t.Errorf("--set %s: %s run %s, want %s", set, name, got, want)
				}
			}
		}
	})
}

func TestPodDisruptionBudget(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		for set, want := range map[string]string{
			"replicas=2":                              `"minAvailable":1`,
			"podDisruptionBudget.minAvailable=50%":    `"minAvailable":"50%"`,
			"podDisruptionBudget.maxUnavailable=1":    `"maxUnavailable":1`,
			"podDisruptionBudget.maxUnavailable=0":    `"maxUnavailable":0`,
			"podDisruptionBudget.maxUnavailable=null": `"minAvailable":1`,
			"podDisruptionBudget.enabled=false":       "",
			"replicas=1":                              "",
		} {
			r := h.template(t, "--set", set)
			if there := r["PodDisruptionBudget stayput"] != nil; there != (want != "") {
				t.Errorf("--set %s: there is one: %t", set, there)
			} else if there {
				spec := of[policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget stayput").Spec
				spec.Selector, spec.UnhealthyPodEvictionPolicy = nil, nil
				if got, err := json.Marshal(spec); err != nil || string(got) != "{"+want+"}" {
					t.Errorf("--set %s: %s, %v, want %s", set, got, err, want)
				}
			}
		}
	})
}

// TestPriorityClass checks that managers and hooks have the class of the value, and that the chart installs only its own class.
func TestPriorityClass(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		for class, installed := range map[string]bool{"stayput": true, "system-cluster-critical": false, "": false} {
			r := h.template(t, "--set", "priorityClassName="+class)
			if (r["PriorityClass stayput"] != nil) != installed {
				t.Errorf("with %q the class stayput is installed: %t", class, !installed)
			}
			for name, pod := range podsOf(t, r) {
				if pod.PriorityClassName != class {
					t.Errorf("with %q: %s have %q", class, name, pod.PriorityClassName)
				}
			}
		}
	})
}

func TestTopologySpread(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		for set, want := range map[string]string{
			"replicas=2": "kubernetes.io/hostname", "topologySpreadConstraints[0].topologyKey=zone": "zone", "topologySpreadConstraints=null": "",
		} {
			got := ""
			for _, constraint := range of[appsv1.Deployment](t, h.template(t, "--set", set), "Deployment stayput").
				Spec.Template.Spec.TopologySpreadConstraints {
				got += constraint.TopologyKey
			}
			if got != want {
				t.Errorf("--set %s: spread over %q, want %q", set, got, want)
			}
		}
	})
}

func TestExtras(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		pods := podsOf(t, h.template(t, "--set", "extraEnv[0].name=PROXY,extraEnv[0].value=p,logLevel=3,logEncoder=console",
			"--set", "extraVolumes[0].name=v,extraVolumes[0].emptyDir.medium=Memory",
			"--set", "extraVolumeMounts[0].name=v,extraVolumeMounts[0].mountPath=/v"))
		for name, pod := range pods {
			env, args := pod.Containers[0].Env, pod.Containers[0].Args[1:]
			if last := env[len(env)-1]; last.Name != "PROXY" || last.Value != "p" || len(env) < 2 {
				t.Errorf("the environment of %s is %v", name, env)
			}
			if want := []string{"--zap-log-level=3", "--zap-encoder=console"}; !slices.Equal(args, want) {
				t.Errorf("the flags of %s are %q", name, args)
			}
		}
		managers := pods["managers"]
		volume, mount := managers.Volumes[2], managers.Containers[0].VolumeMounts[2]
		if volume.Name != "v" || volume.EmptyDir.Medium != "Memory" || mount.Name != "v" || mount.MountPath != "/v" {
			t.Errorf("volume and mount are %v and %v", volume, mount)
		}
	})
}

// TestCommonLabels checks that every object and every pod has the common labels, and that the pods' own labels go before them. Selectors do
// not have them: they cannot be changed later.
func TestCommonLabels(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		r := h.template(t, "--set", "commonLabels.team=a,commonLabels.stage=x,podLabels.stage=y,image.tag=v1+b",
			"--set", "podMonitor.enabled=true,serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true")
		for key, object := range r {
			labels := object["metadata"].(map[string]any)["labels"].(map[string]any)
			if labels["team"] != "a" || labels["stage"] != "x" || labels["app.kubernetes.io/version"] != "v1_b" {
				t.Errorf("%s has the labels %v", key, labels)
			}
		}
		managers, hook := of[appsv1.Deployment](t, r, "Deployment stayput").Spec, r["Job stayput-uninstall"]["spec"].(map[string]any)
		if labels := managers.Template.Labels; labels["team"] != "a" || labels["stage"] != "y" || len(managers.Selector.MatchLabels) != 2 {
			t.Errorf("the managers have %v, selected are %v", labels, managers.Selector)
		}
		if labels := fmt.Sprint(hook["template"].(map[string]any)["metadata"]); !strings.Contains(labels, "team:a") {
			t.Errorf("the hook's pods have %s", labels)
		}
	})
}

// TestCommonAnnotations checks that every object has the common annotations beside its own.
func TestCommonAnnotations(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		r := h.template(t, "--set", "commonAnnotations.team=a,serviceAccount.annotations.cloud=role,webhook.annotations.note=x",
			"--set", "podMonitor.enabled=true,serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true")
		for key, object := range r {
			annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
			if annotations["team"] != "a" {
				t.Errorf("%s has the annotations %v", key, annotations)
			}
			for of, own := range map[string][]string{"ServiceAccount stayput": {"cloud"}, "Job stayput-uninstall": {"helm.sh/hook"},
				"Pod stayput-check":                    {"helm.sh/hook"},
				"MutatingWebhookConfiguration stayput": {"note", "admissions.enforcer/disabled", "cert-manager.io/inject-ca-from"}} {
				for _, name := range own {
					if key == of && annotations[name] == nil {
						t.Errorf("%s lacks %s: %v", key, name, annotations)
					}
				}
			}
		}
	})
}

// TestExtraObjects checks that objects and texts are installed, and that texts are templates.
func TestExtraObjects(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		r := h.template(t, "--set", "extraObjects[0].apiVersion=v1,extraObjects[0].kind=Secret,extraObjects[0].metadata.name=a",
			"--set", "extraObjects[1]=apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-b'}")
		if r["Secret a"] == nil || r["ConfigMap stayput-b"] == nil {
			t.Errorf("the objects are %v and %v", r["Secret a"], r["ConfigMap stayput-b"])
		}
	})
}

// TestPullSecrets checks that all pods have the pull secrets of the chart and those of a parent chart, by name or as objects.
func TestPullSecrets(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		r := h.template(t, "--set", "imagePullSecrets[0].name=a,global.imagePullSecrets[0]=b,global.imagePullSecrets[1].name=c")
		for name, pod := range podsOf(t, r) {
			if want := []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}, {Name: "c"}}; !slices.Equal(pod.ImagePullSecrets, want) {
				t.Errorf("%s have %v", name, pod.ImagePullSecrets)
			}
		}
	})
}

func TestMetricsNamespaces(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		r := h.template(t, "--set", "networkPolicy.metricsNamespaces={monitoring,b}")
		from := of[networkingv1.NetworkPolicy](t, r, "NetworkPolicy stayput").Spec.Ingress[1].From
		if len(from) != 2 || from[0].NamespaceSelector.MatchLabels["metrics"] != "enabled" {
			t.Fatalf("metrics may be read from %+v", from)
		}
		named := from[1].NamespaceSelector.MatchExpressions[0]
		if named.Key != corev1.LabelMetadataName || named.Operator != "In" || !slices.Equal(named.Values, []string{"monitoring", "b"}) {
			t.Errorf("metrics may be read from %+v", named)
		}
	})
}

// TestMonitorOptions checks what is added to PodMonitor and ServiceMonitor, and that a monitor in another namespace looks for the managers
// in the release's.
func TestMonitorOptions(t *testing.T) {
	each(t, func(t *testing.T, h helm) {
		for value, endpoints := range map[string]string{"podMonitor": "podMetricsEndpoints", "serviceMonitor": "endpoints"} {
			key := strings.ToUpper(value[:1]) + value[1:] + " stayput"
			sets := strings.ReplaceAll("V.enabled=true,V.namespace=mon,V.interval=1m,V.scrapeTimeout=10s,V.relabelings[0].targetLabel=a,"+
				"V.metricRelabelings[0].action=drop", "V", value)
			monitor := h.template(t, "--set", sets)[key]
			spec := monitor["spec"].(map[string]any)
			want := map[string]any{"port": "metrics", "interval": "1m", "scrapeTimeout": "10s",
				"relabelings": []any{map[string]any{"targetLabel": "a"}}, "metricRelabelings": []any{map[string]any{"action": "drop"}}}
			if got := spec[endpoints].([]any)[0]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v, want %v", value, got, want)
			}
			if in := monitor["metadata"].(map[string]any)["namespace"]; in != "mon" ||
				!reflect.DeepEqual(spec["namespaceSelector"], map[string]any{"matchNames": []any{namespace}}) {
				t.Errorf("%s is in %v, and looks in %v", value, in, spec["namespaceSelector"])
			}
			plain := h.template(t, "--set", value+".enabled=true")[key]["spec"].(map[string]any)
			if got := plain[endpoints].([]any)[0]; !reflect.DeepEqual(got, map[string]any{"port": "metrics", "interval": "30s"}) ||
				plain["namespaceSelector"] != nil {
				t.Errorf("%s without options: %v", value, plain)
			}
		}
	})
}

// TestLinksExist checks that what Chart.yaml and README.md link to in the repository exists.
func TestLinksExist(t *testing.T) {
	links := regexp.MustCompile(`https://(?:raw\.githubusercontent\.com/stayput/stayput|github\.com/stayput/stayput/(?:blob|tree))/main/([\w./-]+)`)
	for file, least := range map[string]int{"Chart.yaml": 4, "README.md": 3} {
		text, err := os.ReadFile(filepath.Join(chart, file))
		if err != nil {
			t.Fatal(err)
		}
		found := links.FindAllSubmatch(text, -1)
		if len(found) < least {
			t.Errorf("%s has only %d links", file, len(found))
		}
		for _, link := range found {
			if _, err := os.Stat(filepath.Join("..", string(link[1]))); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
