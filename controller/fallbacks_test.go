package controller

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// TestFallbacksGoWithTheirWorkloads checks that a workload's persisted fallback goes with the workload, even if the
// workload was deleted while no manager led.
func TestFallbacksGoWithTheirWorkloads(t *testing.T) {
	c := newCluster(t)
	fallbacks := c.fallbacks()
	fallbacks.Data = map[string]string{}
	for _, workload := range []types.UID{"web", "deleted", "deleted without a leader"} {
		fallback := revisions.Fallback{Hash: "hash", Code: inplace.CodeFailing}
		revisions.Fallbacks(fallbacks.Data).Add(&metav1.ObjectMeta{UID: workload}, fallback, time.Now())
	}
	if err := c.Update(t.Context(), fallbacks); err != nil {
		t.Fatal(err)
	}
	gone := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: fixture.Web.Namespace, Name: "deleted"}}
	if _, err := c.reconciler(nil).Reconcile(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if left := slices.Collect(maps.Keys(c.fallbacks().Data)); !slices.Equal(left, []string{"web"}) {
		t.Errorf("persisted are %q", left)
	}
}

// fellBack reports whether the update of a workload fell back.
func (c *cluster) fellBack(workload types.UID) bool {
	c.T.Helper()
	return revisions.Fallbacks(c.fallbacks().Data).Of(workload).Hash != ""
}

func (c *cluster) fallbacks() *corev1.ConfigMap {
	c.T.Helper()
	fallbacks := &corev1.ConfigMap{}
	if err := c.Get(c.T.Context(), fixture.Fallbacks, fallbacks); err != nil {
		c.T.Fatal(err)
	}
	return fallbacks
}
