package webhook

import (
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/revisions"
)

// triesAgain reports whether the Deployment controller would retry by itself after that answer: handleErr in
// pkg/controller/deployment/deployment_controller.go. That many of the three pods of the ReplicaSet are available.
func triesAgain(t *testing.T, h Handlers, available int32) bool {
	t.Helper()
	before, now := revision(t, "web-1", v1Template, "3"), revision(t, "web-1", v1Template, "2")
	before.Status.Replicas, before.Status.AvailableReplicas = 3, available
	response := h.handle(t.Context(), request(t, deploymentController, admissionv1.Update, now, before), h.nativeWrites().validateReplicaSet)
	expectDenied(t, response, 409)
	return !apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: *response.Result}, corev1.NamespaceTerminatingCause)
}

// TestRetriesWhilePodsReturn: a pod that becomes available makes the controller look again. No retry is needed for that, nor spent.
func TestRetriesWhilePodsReturn(t *testing.T) {
	h := handlers(t, reader(t, moving(t)...), broken(t))
	for range 2 * retriesOfNamespace {
		if triesAgain(t, h, 2) {
			t.Fatal("it is tried again while a pod is out of service")
		}
	}
	if !triesAgain(t, h, 3) {
		t.Error("all pods are available, so no event is to come, and it is not tried again")
	}
}

func TestFewRefusalsAreTriedAgain(t *testing.T) {
	settled := editedTo(t, v1Template)
	for name, test := range map[string]struct {
		live  client.Reader
		again bool
	}{
		"the API server says that it is held": {reader(t, moving(t)...), false},
		"it was undone, unknown to the cache": {reader(t, settled...), true},
		"the API server cannot be read":       {broken(t), true},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, reader(t, moving(t)...), test.live)
			for range retriesOfNamespace {
				if !triesAgain(t, h, 3) {
					t.Fatal("one Deployment alone is not tried again")
				}
			}
			if again := triesAgain(t, h, 3); again != test.again {
				t.Errorf("it is tried again: %t", again)
			}
		})
	}
}

// native is the queue of the Deployment controller with one Deployment that waits (pkg/controller/deployment): delays of 5 ms to 1000 s,
// and maxRetries 15.
type native struct {
	failures int
	next     time.Time
}

// refused notes a futile try.
func (n *native) refused(now time.Time, again bool) {
	if n.failures++; !again || n.failures > 15 {
		*n = native{}
		return
	}
	n.next = now.Add(5 * time.Millisecond << (n.failures - 1))
}

// TestWaitingDeploymentsAreTriedSeldom: each Deployment that waits for ten minutes has a renewal once a minute. The tries beyond that are
// bounded, however many Deployments wait.
func TestWaitingDeploymentsAreTriedSeldom(t *testing.T) {
	const waiting, minutes = 50, 10
	for name, namespaces := range map[string]int{"in one namespace": 1, "in many": waiting} {
		t.Run(name, func(t *testing.T) {
			r, begin := newRetries(), time.Unix(1_000_000, 0)
			var queue [waiting]native
			tries, renewals := 0, 0
			for now := begin; now.Before(begin.Add(minutes * time.Minute)); now = now.Add(5 * time.Millisecond) {
				for i := range queue {
					renewed := now.Sub(begin)%revisions.RenewEvery == time.Duration(i)*time.Second
					if renewed {
						renewals++
					}
					if renewed || !queue[i].next.IsZero() && !now.Before(queue[i].next) {
						tries++
						queue[i].refused(now, r.allow(fmt.Sprint("shop-", i%namespaces), now))
					}
				}
			}
			most := renewals + min(
				retriesOfAll+retriesOfAllRate*minutes*60, namespaces*(retriesOfNamespace+int(minutes*time.Minute/retriesAgain)))
			if tries > most {
				t.Errorf("%d tries for %d renewals, want at most %d", tries, renewals, most)
			}
			t.Logf("%.1f tries a second, %.1f of them with the event of a renewal", float64(tries)/(minutes*60), float64(renewals)/(minutes*60))
		})
	}
}
