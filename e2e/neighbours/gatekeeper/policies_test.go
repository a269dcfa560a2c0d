// Package gatekeeper asks Gatekeeper's own client about the constraint of the page, for a pod of a real run: as it is created, and as
// Stayput patches it.
package gatekeeper

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator/verify"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

var blocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// block returns the block of YAML in the page that contains the text.
func block(t *testing.T, containing string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../docs/how-to/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range blocks.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(found[1], containing) {
			return []byte(found[1])
		}
	}
	t.Fatalf("the page has no block of YAML with %q", containing)
	return nil
}

// review returns the API server's question, with that image in a pod of inputs/.
func review(t *testing.T, operation admissionv1.Operation, image string) []byte {
	t.Helper()
	request := admissionv1.AdmissionRequest{UID: "1", Operation: operation, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:stayput-system:stayput"}}
	pod := read(t, "pod-after")
	pod.Spec.Containers[0].Image = image
	request.Name, request.Namespace, request.Object = pod.Name, pod.Namespace, raw(t, pod)
	if operation == admissionv1.Update {
		request.OldObject = raw(t, read(t, "pod-before"))
	} else {
		request.DryRun = ptr.To(true)
	}
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func read(t *testing.T, input string) *corev1.Pod {
	t.Helper()
	text, err := os.ReadFile("../inputs/" + input + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

func raw(t *testing.T, pod *corev1.Pod) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

func TestConstraint(t *testing.T) {
	const ours, foreign = "registry.example/app:v2", "docker.io/library/app:v2"
	violations := func(n int) []verify.Assertion { return []verify.Assertion{{Violations: gator.IntStrFromInt(n)}} }
	files := fstest.MapFS{
		"template.yaml":   {Data: block(t, "kind: ConstraintTemplate")},
		"constraint.yaml": {Data: block(t, "kind: ImagesFrom\nmetadata")},
	}
	test := verify.Test{Name: "images", Template: "template.yaml", Constraint: "constraint.yaml"}
	for name, about := range map[string]struct {
		operation  admissionv1.Operation
		image      string
		violations int
	}{
		"dry run":                  {admissionv1.Create, ours, 0},
		"dry run of a new image":   {admissionv1.Create, foreign, 1},
		"patch":                    {admissionv1.Update, ours, 0},
		"patch to a foreign image": {admissionv1.Update, foreign, 1},
	} {
		file := strings.ReplaceAll(name, " ", "-") + ".yaml"
		files[file] = &fstest.MapFile{Data: review(t, about.operation, about.image)}
		test.Cases = append(test.Cases, &verify.Case{Name: name, Object: file, Assertions: violations(about.violations)})
	}
	runner, err := verify.NewRunner(files, func(opts ...gator.Opt) (gator.Client, error) { return gator.NewOPAClient(false, opts...) })
	if err != nil {
		t.Fatal(err)
	}
	filter, err := verify.NewFilter("")
	if err != nil {
		t.Fatal(err)
	}
	result := runner.Run(context.Background(), filter, &verify.Suite{Tests: []verify.Test{test}})
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	for _, result := range result.TestResults {
		if result.Error != nil {
			t.Fatal(result.Error)
		}
		if len(result.CaseResults) != len(test.Cases) {
			t.Errorf("%d of %d cases ran", len(result.CaseResults), len(test.Cases))
		}
		for _, one := range result.CaseResults {
			if one.Error != nil || one.Skipped {
				t.Errorf("%s: %v", one.Name, one.Error)
			}
		}
	}
}
