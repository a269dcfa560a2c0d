package watchdog

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func TestOverdueWorkIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dog Watchdog
		endQuick := dog.Begin(Work{"quick", "shop", "web"}, time.Minute)
		endSlow := dog.Begin(Work{"slow", "shop", "web"}, 15*time.Second)
		time.Sleep(15 * time.Second)
		if err := dog.Check(nil); err != nil {
			t.Errorf("within its limit: %v", err)
		}
		time.Sleep(time.Second)
		if err := dog.Check(nil); err == nil || !strings.HasPrefix(err.Error(), "slow shop/web hangs: it began 16s ago") {
			t.Errorf("beyond its limit: %v", err)
		}
		endSlow()
		endQuick()
		time.Sleep(time.Hour)
		if err := dog.Check(nil); err != nil {
			t.Errorf("nothing is in flight any more: %v", err)
		}
	})
}

// TestNamespaceThatHangsIsLeftToItself: work in namespace shop never ends.
func TestNamespaceThatHangsIsLeftToItself(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile Work
		hangsToo  bool
		want      bool
	}{
		"work is done in another namespace":                      {meanwhile: Work{"updates", "other", "web"}, want: true},
		"other work is done in the same namespace":               {meanwhile: Work{"updates", "shop", "api"}},
		"work of another sort is done":                           {meanwhile: Work{"pods", "other", "web"}},
		"work is done in another namespace, and more work hangs": {meanwhile: Work{"updates", "other", "web"}, hangsToo: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dog Watchdog
				dog.Begin(Work{"updates", "other", "before"}, time.Minute)()
				time.Sleep(time.Second)
				defer dog.Begin(Work{"updates", "shop", "web"}, time.Minute)()
				time.Sleep(time.Second)
				dog.Begin(test.meanwhile, time.Minute)()
				time.Sleep(time.Second)
				dog.Begin(Work{"updates", "shop", "api"}, time.Minute)() // which does not hide the other
				if test.hangsToo {
					defer dog.Begin(Work{"pods", "third", "pod"}, time.Minute)()
				}
				time.Sleep(time.Hour)
				if err := dog.Check(nil); (err == nil) != test.want {
					t.Errorf("after an hour: %v", err)
				}
			})
		})
	}
}

// TestLeaderThatHangsStepsDown: a leader with a worker that hangs, even when told to end, gives up its Lease. A leader with a worker that
// works keeps it.
func TestLeaderThatHangsStepsDown(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		ends  bool
	}{
		"hangs": {time.Hour, true},
		"works": {59 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dog Watchdog
				lease := lease(fake.NewClientset())
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				err := leader(t, lease, &dog, worker(&dog, test.takes)).Start(ctx)
				if ended := err != nil && strings.Contains(err.Error(), "updates shop/web hangs"); ended != test.ends {
					t.Errorf("the manager ended with %v", err)
				}
				if record, _, err := lease.Get(t.Context()); err != nil || record.HolderIdentity != "" {
					t.Errorf("the Lease is still held by %q: %v", record.HolderIdentity, err)
				}
				time.Sleep(test.takes) // until the worker has ended, too
			})
		})
	}
}

// worker does one piece of work after the other, and ignores its context meanwhile.
func worker(dog *Watchdog, takes time.Duration) manager.RunnableFunc {
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			end := dog.Begin(Work{"updates", "shop", "web"}, time.Minute)
			time.Sleep(takes)
			end()
		}
		return nil
	}
}

func lease(clients *fake.Clientset) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "stayput-system", Name: "stayput"},
		Client:     clients.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "stayput-1"},
	}
}

// leader returns a manager with these runnables, without caches.
func leader(t *testing.T, lease resourcelock.Interface, runnables ...manager.Runnable) manager.Manager {
	t.Helper()
	m, err := manager.New(&rest.Config{}, manager.Options{
		Metrics:                             metricsserver.Options{BindAddress: "0"},
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lease,
		LeaderElectionReleaseOnCancel:       true,
		GracefulShutdownTimeout:             ptr.To(10 * time.Second),
		Logger:                              testr.New(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, runnable := range runnables {
		if err := m.Add(runnable); err != nil {
			t.Fatal(err)
		}
	}
	return m
}
