package apps

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

const rawDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"a":"b"}},
	"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"spec":{"newer":{"x":1},"containers":[{"name":"app"}]}}},
	"status":{"replicas":2}}`

func decodedDeployment(t *testing.T) *Deployment {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDeserializer(), []byte(rawDeployment))
	if err != nil {
		t.Fatal(err)
	}
	deployment, ok := object.(*Deployment)
	if !ok {
		t.Fatalf("apps/v1 Deployment is decoded as %T", object)
	}
	return deployment
}

func TestObjectsKeepNewerFields(t *testing.T) {
	deployment := decodedDeployment(t)
	if deployment.Name != "web" || *deployment.Spec.Replicas != 3 || deployment.Status.Replicas != 2 {
		t.Errorf("decoded as %+v", deployment)
	}
	if got := deployment.Spec.Template.Typed().Spec.Containers; len(got) != 1 || got[0].Name != "app" {
		t.Errorf("containers are %v", got)
	}
	raw, err := json.Marshal(deployment)
	if err != nil || !strings.Contains(string(raw), `"newer":{"x":1}`) {
		t.Errorf("encoded as %s, %v", raw, err)
	}
	if strings.Count(string(raw), `"template"`) != 1 {
		t.Errorf("two templates in %s", raw)
	}
}

func TestCopiesAreDeep(t *testing.T) {
	list := &DeploymentList{Items: []Deployment{*decodedDeployment(t)}}
	copied := list.DeepCopyObject().(*DeploymentList)
	copied.Items[0].Labels["a"] = "changed"
	*copied.Items[0].Spec.Replicas = 7
	copied.Items[0].Spec.Selector.MatchLabels["app"] = "changed"
	original := list.Items[0]
	if original.Labels["a"] != "b" || *original.Spec.Replicas != 3 || original.Spec.Selector.MatchLabels["app"] != "web" {
		t.Errorf("the copy shares memory: %+v", original)
	}
	if !SameTemplate(original.Spec.Template, copied.Items[0].Spec.Template) {
		t.Error("the copy lost its template")
	}
}

func TestAddToSchemeKnowsAllKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "DaemonSet"} {
		for _, kind := range []string{kind, kind + "List"} {
			object, err := scheme.New(appsv1.SchemeGroupVersion.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			if object.DeepCopyObject() == object {
				t.Errorf("%s is copied to itself", kind)
			}
		}
	}
}

func TestParseTemplate(t *testing.T) {
	for _, raw := range []string{``, `[]`, `{"spec": 1}`, `{"spec": {"containers": {}}}`} {
		if _, err := ParseTemplate([]byte(raw)); err == nil {
			t.Errorf("%q is taken for a template", raw)
		}
	}
	var empty Template
	if raw, err := json.Marshal(empty); err != nil || string(raw) != "{}" {
		t.Errorf("the empty template is %s, %v", raw, err)
	}
}
