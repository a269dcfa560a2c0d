package controller

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace"
)

// lease changes the leader's Lease.
func (c *cluster) lease(change func(*coordinationv1.LeaseSpec)) {
	c.T.Helper()
	lease := &coordinationv1.Lease{}
	if err := c.Get(c.T.Context(), types.NamespacedName{Namespace: fixture.Fallbacks.Namespace, Name: inplace.Lease}, lease); err != nil {
		c.T.Fatal(err)
	}
	change(&lease.Spec)
	if err := c.Update(c.T.Context(), lease); err != nil {
		c.T.Fatal(err)
	}
}

// TestReconcileTakesNoPodAfterItsTerm has a process that goes on after it was stopped. Meanwhile another leader has
// taken pods out of service, which the process's cache does not show.
func TestReconcileTakesNoPodAfterItsTerm(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*coordinationv1.LeaseSpec)
		want   string
	}{
		"another leads": {
			func(lease *coordinationv1.LeaseSpec) { lease.HolderIdentity = ptr.To("manager-b") },
			`no pod is taken out of service: "manager-b" holds the Lease, not "manager-a"`,
		},
		"its Lease has ended": {
			func(lease *coordinationv1.LeaseSpec) {
				lease.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-2 * time.Hour)))
			},
			"no pod is taken out of service: the Lease ended at ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			r := c.reconciler(nil)
			c.start(r)
			c.reconcile(r) // the revisions are marked; pods are next
			c.lease(test.change)
			before := c.Patches
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Web})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || c.Patches != before {
				t.Errorf("%v and %d patches, want %q and none", err, c.Patches-before, test.want)
			}
		})
	}
}
