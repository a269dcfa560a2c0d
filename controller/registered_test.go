package controller

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace"
)

// TestNothingMovesWithoutWebhooks: without the webhooks nothing holds what native controllers do. A ReplicaSet that is lowered would delete
// a pod that moves at this moment. If the new ReplicaSet gets that deletion's event, the old one waits for it for five minutes.
func TestNothingMovesWithoutWebhooks(t *testing.T) {
	c := newCluster(t)
	webhooks := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: inplace.WebhookConfigurations}}
	if err := c.Delete(t.Context(), webhooks); err != nil {
		t.Fatal(err)
	}
	r := c.reconciler(nil)
	c.reconcile(r) // catches up
	for range 3 {
		_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Web})
		if err == nil || !strings.Contains(err.Error(), "there is no ValidatingWebhookConfiguration") {
			t.Fatalf("got error %v", err)
		}
	}
	if c.Patches != 0 {
		t.Errorf("%d patches were sent", c.Patches)
	}
	webhooks.ResourceVersion = ""
	if err := c.Create(t.Context(), webhooks); err != nil {
		t.Fatal(err)
	}
	if c.reconcile(r); c.Patches == 0 {
		t.Error("the webhooks are there again, and nothing is written")
	}
}
