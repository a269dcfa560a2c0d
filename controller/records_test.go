package controller

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// What is on record of a workload goes with it, whenever that was seen.
func TestRecordsGoWithTheirWorkloads(t *testing.T) {
	c := newCluster(t)
	releases := c.releases()
	releases.Data = map[string]string{}
	for _, workload := range []types.UID{"web", "deleted", "deleted while nobody led"} {
		revisions.Records(releases.Data).Add(workload, revisions.Record{Hash: "hash", Code: inplace.CodeFailing}, time.Now())
	}
	if err := c.Update(t.Context(), releases); err != nil {
		t.Fatal(err)
	}
	gone := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: fixture.Web.Namespace, Name: "deleted"}}
	if _, err := c.reconciler(nil).Reconcile(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if left := slices.Collect(maps.Keys(c.releases().Data)); !slices.Equal(left, []string{"web"}) {
		t.Errorf("on record are %q", left)
	}
}

func (c *cluster) releases() *corev1.ConfigMap {
	c.T.Helper()
	releases := &corev1.ConfigMap{}
	if err := c.Get(c.T.Context(), fixture.Releases, releases); err != nil {
		c.T.Fatal(err)
	}
	return releases
}
