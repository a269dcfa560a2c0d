//go:build e2e && bench

package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bystanderPause is the time from one request of each kind to the next one.
const bystanderPause = 200 * time.Millisecond

// bystander is a client of another namespace. It gets an object, and creates and deletes a pod that is never scheduled, at a fixed rate.
type bystander struct {
	namespace string
	stop      context.CancelFunc
	pending   sync.WaitGroup

	mutex   sync.Mutex
	gets    []float64 // milliseconds
	creates []float64 // milliseconds
	writes  float64   // requests
	failed  float64
}

// newBystander makes the namespace.
func newBystander(t *testing.T, labels map[string]string) *bystander {
	t.Helper()
	return &bystander{namespace: unjudged(t, labels).namespace}
}

// begin sends requests until rest. Requests do not wait for one another, so that slow answers do not lower the rate.
func (b *bystander) begin() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.pending.Go(func() {
		tick := time.NewTicker(bystanderPause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				b.pending.Go(b.get)
				b.pending.Go(b.create)
			}
		}
	})
}

// rest waits for the answers that are due.
func (b *bystander) rest() {
	b.stop()
	b.pending.Wait()
}

func (b *bystander) get() {
	from := time.Now()
	_, err := clients.CoreV1().ServiceAccounts(b.namespace).Get(context.Background(), "default", metav1.GetOptions{})
	b.note(&b.gets, from, 0, err)
}

// create creates a pod and deletes it. Only the creation is timed.
func (b *bystander) create() {
	pods, from := clients.CoreV1().Pods(b.namespace), time.Now()
	pod, err := pods.Create(context.Background(), unscheduled(), metav1.CreateOptions{})
	b.note(&b.creates, from, 1, err)
	if err == nil {
		err = pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{})
		b.note(nil, from, 1, err)
	}
}

// note keeps the outcome of a request: how long it took unless that is not asked for, and whether it failed.
func (b *bystander) note(times *[]float64, from time.Time, writes float64, err error) {
	took := milliseconds(time.Since(from))
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.writes += writes
	switch {
	case err != nil:
		b.failed++
	case times != nil:
		*times = append(*times, took)
	}
}

// add adds the requests of another one, which has ended.
func (b *bystander) add(other *bystander) {
	b.gets, b.creates = append(b.gets, other.gets...), append(b.creates, other.creates...)
	b.failed += other.failed
}

func milliseconds(d time.Duration) float64 { return 1000 * d.Seconds() }

func (b *bystander) figures() []figure {
	return []figure{
		{"GET beside it, milliseconds, p50", quantile(b.gets, 0.5)},
		{"GET beside it, milliseconds, p99", quantile(b.gets, 0.99)},
		{"CREATE of a pod beside it, milliseconds, p50", quantile(b.creates, 0.5)},
		{"CREATE of a pod beside it, milliseconds, p99", quantile(b.creates, 0.99)},
		{"requests beside it that failed", b.failed},
	}
}

// unscheduled returns a pod that no scheduler takes, so that nothing is started.
func unscheduled() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "unscheduled-"},
		Spec: corev1.PodSpec{
			SchedulerName:                "none",
			Containers:                   []corev1.Container{container("app", 8080)},
			AutomountServiceAccountToken: new(bool),
		},
	}
}
