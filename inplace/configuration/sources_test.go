package configuration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/apps"
)

const template = `{"metadata":{"labels":{"app":"web"}},"spec":{
	"initContainers":[{"name":"setup","envFrom":[{"configMapRef":{"name":"of-init"}}]}],
	"containers":[{"name":"app","envFrom":[{"secretRef":{"name":"from-secret"}}],"env":[{"name":"PLAIN","value":"x"},
		{"name":"A","valueFrom":{"configMapKeyRef":{"name":"of-variable","key":"a"}}},
		{"name":"B","valueFrom":{"secretKeyRef":{"name":"key-secret","key":"b"}}}]}],
	"volumes":[{"name":"v","configMap":{"name":"of-volume"}},{"name":"s","secret":{"secretName":"tls-secret"}},
		{"name":"p","projected":{"sources":[{"configMap":{"name":"projected"}},{"secret":{"name":"projected-secret"}},
		{"serviceAccountToken":{"path":"token"}}]}},{"name":"e","emptyDir":{}}]}}`

func TestFollowed(t *testing.T) {
	parsed, err := apps.ParseTemplate([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	namespace := Namespace{
		ConfigMaps: map[string]string{"of-init": "1", "of-variable": "2", "of-volume": "3", "stranger": "4"},
		Certificates: map[string]Certificate{"tls": {"tls-secret", "7"}, "key": {"key-secret", "8"}, "from": {"from-secret", "9"},
			"shown": {"projected-secret", ""}, "other": {"other-secret", "1"}},
	}
	for name, test := range map[string]struct {
		entries []string
		want    Record
	}{
		"all": {[]string{"*"}, Record{"configmap/of-init": "1", "configmap/of-variable": "2", "configmap/of-volume": "3",
			"configmap/projected": "", "certificate/tls": "7", "certificate/key": "8", "certificate/from": "9", "certificate/shown": ""}},
		"a list": {[]string{"configmap/of-volume", "configmap/stranger", "configmap/none", "certificate/other", "certificate/none"},
			Record{"configmap/of-volume": "3", "configmap/stranger": "4", "configmap/none": "", "certificate/other": "1", "certificate/none": ""}},
	} {
		got, err := namespace.Followed(test.entries, parsed)
		if err != nil || got.String() != test.want.String() {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.want)
		}
	}
}

func TestTooManySources(t *testing.T) {
	var entries []string
	for i := range 101 {
		entries = append(entries, fmt.Sprintf("configmap/c%d", i))
	}
	const want = "annotation stayput.dev/restart-on-change: these are 101 ConfigMaps and Certificates, more than 100; name those that matter"
	if _, err := (Namespace{}).Followed(entries, apps.Template{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if record, err := (Namespace{}).Followed(entries[1:], apps.Template{}); err != nil || len(record) != 100 {
		t.Errorf("%d sources, %v", len(record), err)
	}
}

func TestElectionsAreNoChanges(t *testing.T) {
	plain := &metav1.ObjectMeta{ResourceVersion: "7"}
	election := &metav1.ObjectMeta{ResourceVersion: "7", Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": "{}"}}
	if VersionOf(plain) != "7" || VersionOf(election) != "any" {
		t.Errorf("versions %s and %s", VersionOf(plain), VersionOf(election))
	}
}
