package statefulsets_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestRequestOfOnePod: a pod without a gate restarts while it serves, and never has another revision's label meanwhile. A pod that the
// native partition keeps restarts with the image that it has.
func TestRequestOfOnePod(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fixture.Members)
		want   []string
	}{
		"OrderedReady": {func(*fixture.Members) {}, []string{"renew db-0", "db-0 is db-1 app=" + fixture.Another}},
		"Parallel":     {fixture.Parallel, []string{"renew db-0", "close db-0", "db-0 is db-1 app=" + fixture.Another}},
		"at the partition": {func(m *fixture.Members) {
			fixture.Rolling(7, "")(m)
			m.Edit(fixture.App{Image: "v2"})
		}, []string{"renew db-0", "db-0 is db-1 app=" + fixture.Another}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 2, test.change)
			metav1.SetMetaDataAnnotation(&m.Member(0).ObjectMeta, inplace.AnnotationRestartContainers, "app")
			m.Rest()
			m.Expect(test.want...)
		})
	}
}
