//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// What the manifests call Stayput's own objects.
const (
	ownNamespace = "stayput-system"
	ownName      = "stayput"
)

// patience bounds every wait. It is no expectation: the machine may be slow and loaded.
const patience = 3 * time.Minute

var (
	repository = mustAbs("..")
	binaries   = filepath.Join(repository, ".cluster", "bin")
	kubeconfig = kubeconfigPath()
	clients    kubernetes.Interface
	began      = time.Now()
)

func mustAbs(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return absolute
}

func kubeconfigPath() string {
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return path
	}
	return filepath.Join(repository, ".cluster", "kubeconfig")
}

func TestMain(m *testing.M) {
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// connect prepares the clients and says what is missing.
func connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("no cluster at %s (make cluster starts one): %w", kubeconfig, err)
	}
	config.QPS = -1
	config.UserAgent = user
	if clients, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	// A moment after an installation the Lease changes hands.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return poll(ctx, precondition)
}

// precondition is what every test relies on.
var precondition = managersServe

// managersServe is nil when as many managers are ready as Stayput's Deployment asks for.
func managersServe(ctx context.Context) error {
	own, err := clients.AppsV1().Deployments(ownNamespace).Get(ctx, ownName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("Stayput is not installed (make install does it): %w", err)
	}
	if done, why := rolledOut(own); !done {
		return fmt.Errorf("Stayput is not up: %s", why)
	}
	if own.Status.AvailableReplicas == 0 {
		return errors.New("Stayput is not up: no manager is available")
	}
	_, err = leadingPod(ctx)
	return err
}

// leadingPod is the manager that renews the Lease: until there is one updates are native.
func leadingPod(ctx context.Context) (*corev1.Pod, error) {
	lease, err := clients.CoordinationV1().Leases(ownNamespace).Get(ctx, ownName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("nobody leads: %w", err)
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" || lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > 5*time.Second {
		return nil, errors.New("nobody leads: the Lease is not renewed")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod, err := clients.CoreV1().Pods(ownNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("the leader is not there: %w", err)
	}
	return pod, nil
}

// TestTogether runs the scenarios that need nothing but a namespace of their own, side by side.
func TestTogether(t *testing.T) {
	themes := map[string]func(*testing.T){
		"images":    images,
		"undo":      undo,
		"pause":     pause,
		"strategy":  strategy,
		"scale":     scale,
		"native":    native,
		"admission": admission,
		"halfway":   partial,
		"daemonset": daemonSets,
		"pulled":    pulled,
		"borrow":    borrow,
		"changes":   templateChanges,
		"drain":     drains,
		"pacing":    pacing,
		"partition": partition,
		"ownpower":  ownPower,
		"rehearsal": dryRuns,
		"sidecars":  sidecars,
		"stuck":     stuck,
		"resize":    resizes,
		"restart":   restart,
		"rules":     rules,
		"tolerate":  tolerate,
		"plugin":    plugin,
		"auxiliary": auxiliary,
		"meanwhile": meanwhile,
	}
	for name, theme := range themes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theme(t)
		})
	}
}

// TestAlone runs the scenarios that break something everybody shares, one after the other, and mends it after each.
func TestAlone(t *testing.T) { disturbances(t) }

// long keeps a scenario out of make test, which runs the suite with -short: it takes long, or shares its rule with another.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("too long for make test; make e2e runs it")
	}
}

// lengthy are scenarios without those of these names, which are long, where the suite is to be short.
func lengthy(scenarios map[string]func(*testing.T), names ...string) map[string]func(*testing.T) {
	for _, name := range names {
		if _, known := scenarios[name]; !known {
			panic("there is no scenario called " + name)
		}
		if testing.Short() {
			delete(scenarios, name)
		}
	}
	return scenarios
}
