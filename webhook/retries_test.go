package webhook

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/revisions"
)

// triesAgain reports whether the Deployment controller would try again by itself after that answer: handleErr of its pkg/controller.
func triesAgain(t *testing.T, h Handlers) bool {
	t.Helper()
	before, now := revision(t, "web-1", v1Template, "3"), revision(t, "web-1", v1Template, "2")
	response := h.handle(context.Background(), request(t, deploymentController, admissionv1.Update, now, before), h.validateReplicaSet)
	expectDenied(t, response, 409, metav1.StatusReasonConflict)
	return !apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: *response.Result}, corev1.NamespaceTerminatingCause)
}

func TestFewRefusalsAreTriedAgain(t *testing.T) {
	fellBack := moving(t)
	fellBack[3].GetLabels()[inplace.LabelFallback] = "1"
	for name, test := range map[string]struct {
		live  client.Reader
		again bool
	}{
		"it is held in truth":                           {reader(t, moving(t)...), false},
		"it was released, which the cache has not seen": {reader(t, fellBack...), true},
		"nobody can say":                                {broken(t), true},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, reader(t, moving(t)...), test.live)
			for range retriesOfNamespace {
				if !triesAgain(t, h) {
					t.Fatal("one Deployment alone is not tried again")
				}
			}
			if again := triesAgain(t, h); again != test.again {
				t.Errorf("it is tried again: %t", again)
			}
		})
	}
}

// native is the queue of the Deployment controller with one Deployment that waits: pkg/controller/deployment, 5 ms to 1000 s, maxRetries 15.
type native struct {
	failures int
	next     time.Time
}

// refused notes a try in vain.
func (n *native) refused(now time.Time, again bool) {
	if n.failures++; !again || n.failures > 15 {
		*n = native{}
		return
	}
	n.next = now.Add(5 * time.Millisecond << (n.failures - 1))
}

// Deployments that wait for ten minutes are signed once a minute each, and what they are refused beyond that is bounded, however many they are.
func TestWaitingDeploymentsAreTriedSeldom(t *testing.T) {
	const waiting, minutes = 50, 10
	for name, namespaces := range map[string]int{"in one namespace": 1, "in many": waiting} {
		t.Run(name, func(t *testing.T) {
			r, begin := newRetries(), time.Unix(1_000_000, 0)
			var queue [waiting]native
			tries, signatures := 0, 0
			for now := begin; now.Before(begin.Add(minutes * time.Minute)); now = now.Add(5 * time.Millisecond) {
				for i := range queue {
					signed := now.Sub(begin)%revisions.RenewEvery == time.Duration(i)*time.Second
					if signed {
						signatures++
					}
					if signed || !queue[i].next.IsZero() && !now.Before(queue[i].next) {
						tries++
						queue[i].refused(now, r.allow(fmt.Sprint("shop-", i%namespaces), now))
					}
				}
			}
			most := signatures + min(retriesOfAll+retriesOfAllRate*minutes*60, namespaces*(retriesOfNamespace+int(minutes*time.Minute/retriesAgain)))
			if tries > most {
				t.Errorf("%d tries for %d signatures, want at most %d", tries, signatures, most)
			}
			t.Logf("%.1f tries a second, %.1f of them with the event of a signature", float64(tries)/(minutes*60), float64(signatures)/(minutes*60))
		})
	}
}
