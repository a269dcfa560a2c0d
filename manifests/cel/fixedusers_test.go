//go:build helm

package cel

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/stayput/stayput/inplace/prepull"
)

// TestChartWithoutFixedUsers checks that with the values of docs/how-to/platforms.md no pod asks for a user or a group: no manager, no hook,
// and no pre-pull pod. With the chart's own values each of them does.
func TestChartWithoutFixedUsers(t *testing.T) {
	policy := compileRefusals(t, "testdata/fixed-users.yaml", "fixed-users")
	helms := strings.Fields(os.Getenv("HELMS"))
	if len(helms) == 0 {
		t.Fatal("$HELMS names no helm; make verify-chart does")
	}
	for _, helm := range helms {
		for values, refused := range map[string]bool{
			"replicas=2": true,
			"podSecurityContext.runAsUser=null,podSecurityContext.runAsGroup=null": false,
			"podSecurityContext=null": false,
		} {
			pods := chartPods(t, helm, values)
			if len(pods) != 4 {
				t.Fatalf("the chart makes the pods %v", slices.Sorted(maps.Keys(pods)))
			}
			for name, pod := range pods {
				if why := policy.of(nil, pod, &corev1.Namespace{}, &user.DefaultInfo{}); (why != "") != refused {
					t.Errorf("%s --set %s: %s is refused with %q", helm, values, name, why)
				}
			}
		}
	}
}

// chartPods returns the pods that the chart makes, and one that its managers make.
func chartPods(t *testing.T, helm, values string) map[string]*corev1.Pod {
	t.Helper()
	text, err := exec.Command(helm, "template", "stayput", "../../charts/stayput", "--kube-version", "1.36.0", "--set", values).Output()
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		err := yaml.Unmarshal(document, &kind)
		var template corev1.PodTemplateSpec
		switch kind.Kind {
		case "Deployment":
			var managers appsv1.Deployment
			err = yaml.Unmarshal(document, &managers)
			template = managers.Spec.Template
		case "Job":
			var job batchv1.Job
			err = yaml.Unmarshal(document, &job)
			template = job.Spec.Template
		case "Pod":
			err = yaml.Unmarshal(document, &template)
		default:
			continue
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		pods[kind.Kind] = &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: template.Spec}
	}
	workload := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	waiter := prepull.WaitImageOf(pods["Deployment"], "manager")
	pods["pre-pull"] = prepull.NewPod(prepull.OwnedBy(workload, "1", "Deployment", workload), &corev1.Pod{}, nil, waiter)
	pods["pre-pull"].TypeMeta = pods["Deployment"].TypeMeta
	return pods
}
