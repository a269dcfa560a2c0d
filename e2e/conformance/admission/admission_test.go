// Package admission checks that the API server's own validation accepts Stayput's policies and webhooks: each release of Kubernetes has its
// own CEL library. `go test -modfile=go-v1.37.2.mod ./admission` uses that of another release.
package admission

import (
	"errors"
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	"k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

func TestAdmissionIsValid(t *testing.T) {
	validated := map[string]int{}
	for _, object := range shipped(t) {
		if !legacyscheme.Scheme.Recognizes(object.kind) {
			t.Logf("this release has no %s", object.kind)
			continue
		}
		internal, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), object.json)
		if err != nil {
			t.Fatal(err)
		}
		if errs := validate(t, internal); len(errs) > 0 {
			t.Errorf("%s: %v", object.kind.Kind, errs.ToAggregate())
		}
		validated[object.kind.Kind]++
	}
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingWebhookConfiguration"} {
		if validated[kind] == 0 {
			t.Errorf("dist has no %s", kind)
		}
	}
	t.Logf("validated %v", validated)
}

func validate(t *testing.T, object runtime.Object) field.ErrorList {
	t.Helper()
	switch object := object.(type) {
	case *admissionregistration.ValidatingAdmissionPolicy:
		return validation.ValidateValidatingAdmissionPolicy(object)
	case *admissionregistration.ValidatingAdmissionPolicyBinding:
		return validation.ValidateValidatingAdmissionPolicyBinding(object)
	case *admissionregistration.MutatingAdmissionPolicy:
		return validation.ValidateMutatingAdmissionPolicy(object)
	case *admissionregistration.MutatingAdmissionPolicyBinding:
		return validation.ValidateMutatingAdmissionPolicyBinding(object)
	case *admissionregistration.ValidatingWebhookConfiguration:
		return validation.ValidateValidatingWebhookConfiguration(object)
	case *admissionregistration.MutatingWebhookConfiguration:
		return validation.ValidateMutatingWebhookConfiguration(object)
	}
	t.Fatalf("nothing here validates a %T", object)
	return nil
}

// object is an object of a manifest.
type object struct {
	kind schema.GroupVersionKind
	json []byte
}

// shipped returns the objects that are about admission in the file that make dist writes.
func shipped(t *testing.T) []object {
	t.Helper()
	const file = "../../../dist/stayput.yaml"
	content, err := os.Open(file)
	if err != nil {
		t.Fatalf("make dist writes it: %v", err)
	}
	defer content.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(content, 4096)
	var objects []object
	for {
		var document runtime.RawExtension
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kind, err := json.DefaultMetaFactory.Interpret(document.Raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if kind.Group == admissionregistration.GroupName {
			objects = append(objects, object{*kind, document.Raw})
		}
	}
}
