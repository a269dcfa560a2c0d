// Package kyverno asks Kyverno's own engine about the policies of the page, for a pod of a real run: as it is created, and as Stayput
// patches it.
package kyverno

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	kyvernov2 "github.com/kyverno/kyverno/api/kyverno/v2"
	"github.com/kyverno/kyverno/pkg/config"
	"github.com/kyverno/kyverno/pkg/engine"
	engineapi "github.com/kyverno/kyverno/pkg/engine/api"
	"github.com/kyverno/kyverno/pkg/engine/factories"
	"github.com/kyverno/kyverno/pkg/engine/jmespath"
	"github.com/kyverno/kyverno/pkg/engine/policycontext"
	imageverifycache "github.com/kyverno/kyverno/pkg/image/verification/cache"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	// registry is where the images of the test cluster are; the page says registry.example instead.
	registry  = "127.0.0.1:5000/"
	manager   = "system:serviceaccount:stayput-system:stayput"
	container = "app"
)

var blocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// policy returns the ClusterPolicy of that name in the page.
func policy(t *testing.T, name string) *kyvernov1.ClusterPolicy {
	t.Helper()
	text, err := os.ReadFile("../../../docs/how-to/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(block[1], "kind: ClusterPolicy") || !strings.Contains(block[1], "name: "+name) {
			continue
		}
		var p kyvernov1.ClusterPolicy
		if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(block[1], "registry.example/", registry)), &p); err != nil {
			t.Fatal(err)
		}
		return &p
	}
	t.Fatalf("the page has no ClusterPolicy %s", name)
	return nil
}

// pod returns a pod of inputs/ with that image.
func pod(t *testing.T, input, image string) *corev1.Pod {
	t.Helper()
	text, err := os.ReadFile("../inputs/" + input + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	pod.Spec.Containers[0].Image = image
	return &pod
}

// created is the request in which Stayput asks for a dry run of a new pod.
func created(t *testing.T, image string) admissionv1.AdmissionRequest {
	new := pod(t, "pod-after", image)
	new.UID, new.ResourceVersion, new.Spec.NodeName, new.Status = "", "", "", corev1.PodStatus{}
	dry := true
	return request(t, admissionv1.AdmissionRequest{Operation: admissionv1.Create, DryRun: &dry}, new, nil)
}

// moved is the request in which Stayput patches a running pod.
func moved(t *testing.T, from, to string) admissionv1.AdmissionRequest {
	return request(t, admissionv1.AdmissionRequest{Operation: admissionv1.Update}, pod(t, "pod-after", to), pod(t, "pod-before", from))
}

func request(t *testing.T, r admissionv1.AdmissionRequest, new, old *corev1.Pod) admissionv1.AdmissionRequest {
	t.Helper()
	r.Kind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	r.Resource = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	r.RequestKind, r.RequestResource = &r.Kind, &r.Resource
	r.Namespace, r.Name = new.Namespace, new.Name
	r.UserInfo = authenticationv1.UserInfo{Username: manager, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	r.Object = raw(t, new)
	if old != nil {
		r.OldObject = raw(t, old)
	}
	return r
}

func raw(t *testing.T, pod *corev1.Pod) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

// ask returns Kyverno's context for the request and its engine.
func ask(t *testing.T, p *kyvernov1.ClusterPolicy, r admissionv1.AdmissionRequest) (engineapi.Engine, *policycontext.PolicyContext) {
	t.Helper()
	settings := config.NewDefaultConfiguration(false)
	paths := jmespath.New(settings)
	about, err := policycontext.NewPolicyContextFromAdmissionRequest(paths, r, kyvernov2.RequestInfo{AdmissionUserInfo: r.UserInfo},
		corev1.SchemeGroupVersion.WithKind("Pod"), settings)
	if err != nil {
		t.Fatal(err)
	}
	return engine.NewEngine(settings, paths, nil, nil, imageverifycache.DisabledImageVerifyCache(),
		factories.DefaultContextLoaderFactory(nil), nil, nil), about.WithPolicy(p)
}

// image is what the policy makes of the container's image.
func image(t *testing.T, p *kyvernov1.ClusterPolicy, r admissionv1.AdmissionRequest) string {
	t.Helper()
	e, about := ask(t, p, r)
	answer := e.Mutate(context.Background(), about)
	for _, rule := range answer.PolicyResponse.Rules {
		if rule.Status() == engineapi.RuleStatusError {
			t.Fatalf("rule %s: %s", rule.Name(), rule.Message())
		}
	}
	containers, _, err := unstructured.NestedSlice(answer.PatchedResource.Object, "spec", "containers")
	if err != nil || len(containers) == 0 {
		t.Fatalf("no containers in Kyverno's answer: %v", err)
	}
	return containers[0].(map[string]any)["image"].(string)
}

// TestValidation says that a rule without operations, like most, decides about both requests.
func TestValidation(t *testing.T) {
	p := policy(t, "images-from-our-registry")
	for name, test := range map[string]struct {
		request admissionv1.AdmissionRequest
		want    engineapi.RuleStatus
	}{
		"dry run of a new pod":       {created(t, registry+"app:v2"), engineapi.RuleStatusPass},
		"dry run of a foreign image": {created(t, "docker.io/library/app:v2"), engineapi.RuleStatusFail},
		"patch of a running pod":     {moved(t, registry+"app:v1", registry+"app:v2"), engineapi.RuleStatusPass},
		"patch to a foreign image":   {moved(t, registry+"app:v1", "docker.io/library/app:v2"), engineapi.RuleStatusFail},
		"restart in place":           {moved(t, registry+"app:v1", registry+"app:v1@sha256:"+strings.Repeat("0", 64)), engineapi.RuleStatusPass},
	} {
		t.Run(name, func(t *testing.T) {
			e, about := ask(t, p, test.request)
			rules := e.Validate(context.Background(), about).PolicyResponse.Rules
			if len(rules) != 1 || rules[0].Status() != test.want {
				t.Errorf("Kyverno answers %v, and not with one rule and %s", rules, test.want)
			}
		})
	}
}

// TestMutation says what a rule that renames images does to a pod that has its name already.
func TestMutation(t *testing.T) {
	const mirror = "mirror.example/"
	good := policy(t, "images-from-mirror")
	bad := good.DeepCopy()
	bad.Spec.Rules[0].Mutation.ForEachMutation[0].AnyAllConditions = nil
	for name, test := range map[string]struct {
		policy  *kyvernov1.ClusterPolicy
		request admissionv1.AdmissionRequest
		want    string
	}{
		"new pod":                        {good, created(t, "app:v2"), mirror + "app:v2"},
		"running pod":                    {good, moved(t, mirror+"app:v1", mirror+"app:v2"), mirror + "app:v2"},
		"new pod, no precondition":       {bad, created(t, "app:v2"), mirror + "app:v2"},
		"running pod, no precondition":   {bad, moved(t, mirror+"app:v1", mirror+"app:v2"), mirror + mirror + "app:v2"},
		"running pod, only for creation": {onlyCreation(bad), moved(t, mirror+"app:v1", mirror+"app:v2"), mirror + "app:v2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := image(t, test.policy, test.request); got != test.want {
				t.Errorf("Kyverno makes the image of container %s %s, and not %s", container, got, test.want)
			}
		})
	}
}

func onlyCreation(p *kyvernov1.ClusterPolicy) *kyvernov1.ClusterPolicy {
	p = p.DeepCopy()
	for i := range p.Spec.Rules[0].MatchResources.Any {
		p.Spec.Rules[0].MatchResources.Any[i].Operations = []kyvernov1.AdmissionOperation{kyvernov1.Create}
	}
	return p
}
