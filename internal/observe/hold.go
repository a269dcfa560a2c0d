package observe

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// Hold reads whether a leader renews its Lease, whether the webhooks are registered, and which fallbacks are persisted. It compares
// renewals with the local clock. Where the clocks of nodes differ by more than inplace.LeaderPatience, nothing is held and rollouts are
// native.
type Hold struct {
	client.Reader
	// Namespace is Stayput's own namespace. The Lease and the ConfigMap with the persisted fallbacks are there.
	Namespace string
}

// Alive reports whether the leader renewed its Lease within inplace.LeaderPatience. If not, the reason says why, as a clause.
func (h Hold) Alive(ctx context.Context) (alive bool, reason string, err error) {
	lease, err := leaseIn(ctx, h.Reader, h.Namespace)
	if apierrors.IsNotFound(err) {
		return false, fmt.Sprintf("there is no Lease %s/%s", h.Namespace, inplace.Lease), nil
	} else if err != nil {
		return false, "", err
	}
	alive, reason = renewed(lease, time.Now())
	return alive, reason, nil
}

// Webhooks is what Hold reads of the webhook configuration by which native writes are held.
func Webhooks() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	return object
}

// Registered returns an error unless the API server has the webhooks that hold native writes.
func (h Hold) Registered(ctx context.Context) error {
	err := h.Get(ctx, types.NamespacedName{Name: inplace.WebhookConfigurations}, Webhooks())
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("no pod is updated, since native writes are not held: there is no ValidatingWebhookConfiguration %s",
			inplace.WebhookConfigurations)
	}
	return err
}

// leaseIn returns the leader's Lease in Stayput's own namespace.
func leaseIn(ctx context.Context, reader client.Reader, namespace string) (coordinationv1.LeaseSpec, error) {
	key := types.NamespacedName{Namespace: namespace, Name: inplace.Lease}
	var lease coordinationv1.Lease
	if err := reader.Get(ctx, key, &lease); err != nil {
		return coordinationv1.LeaseSpec{}, fmt.Errorf("read Lease %s: %w", key, err)
	}
	return lease.Spec, nil
}

// PersistedFallback returns the persisted fallback of the workload; the zero value if there is none.
func (h Hold) PersistedFallback(ctx context.Context, workload types.UID) (revisions.Fallback, error) {
	fallbacks, err := h.Fallbacks(ctx)
	return fallbacks.Of(workload), err
}

// Fallbacks returns all persisted fallbacks. Callers must not change the map.
func (h Hold) Fallbacks(ctx context.Context) (revisions.Fallbacks, error) {
	if h.Reader == nil {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: h.Namespace, Name: inplace.Fallbacks}
	var fallbacks corev1.ConfigMap
	if err := h.Get(ctx, key, &fallbacks, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	return fallbacks.Data, nil
}

// renewed reports whether the Lease was renewed within inplace.LeaderPatience, and if not, why. It looks at the time only, not at
// the holder. A leader that steps down leaves a fresh Lease without a holder (client-go/tools/leaderelection:
// ReleaseOnCancel), which the next leader takes within seconds. The hold spans that gap.
func renewed(lease coordinationv1.LeaseSpec, now time.Time) (bool, string) {
	if lease.RenewTime == nil {
		return false, "no leader has held the Lease yet"
	}
	if age := now.Sub(lease.RenewTime.Time); age > inplace.LeaderPatience {
		return false, fmt.Sprintf("the leader renewed its Lease %s ago, more than %s", age.Round(time.Second), inplace.LeaderPatience)
	}
	return true, ""
}
