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

// ownNamespace is the namespace of Stayput's own objects in the manifests.
const ownNamespace = "stayput-system"

// patience limits every wait. It is much longer than expected, because the machine may be slow and loaded.
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

// connect makes the clients, and returns an error that says what is missing.
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
	// The Lease changes hands shortly after an installation.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return poll(ctx, precondition)
}

// precondition is a requirement of every test.
var precondition = managersServe

// managersServe returns nil when as many managers are ready as Stayput's Deployment asks for, and one of them leads.
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

// leadingPod returns the pod of the manager that renews the Lease. Without one updates are native.
func leadingPod(ctx context.Context) (*corev1.Pod, error) {
	lease, err := clients.CoordinationV1().Leases(ownNamespace).Get(ctx, ownName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("no manager leads: %w", err)
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" || lease.Spec.RenewTime == nil ||
		time.Since(lease.Spec.RenewTime.Time) > 5*time.Second {
		return nil, errors.New("no manager leads: the Lease is not renewed")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod, err := clients.CoreV1().Pods(ownNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("the leader is not there: %w", err)
	}
	return pod, nil
}

// TestTogether runs the scenarios that need only their own namespace, in parallel.
func TestTogether(t *testing.T) {
	themes := map[string]func(*testing.T){
		"images":      images,
		"undo":        undo,
		"pause":       pause,
		"scale":       scale,
		"native":      native,
		"admission":   admission,
		"halfway":     partial,
		"daemonset":   daemonSets,
		"statefulset": statefulSets,
		"pulled":      pulled,
		"surge":       surgeScenarios,
		"devices":     devices,
		"changes":     templateChanges,
		"drain":       drains,
		"pacing":      pacing,
		"budgets":     budgets,
		"hooks":       hooks,
		"partition":   partition,
		"ownpower":    ownPower,
		"dryrun":      dryRuns,
		"sidecars":    sidecars,
		"stuck":       stuck,
		"resize":      resizes,
		"restart":     restart,
		"rules":       rules,
		"tolerate":    tolerate,
		"plugin":      plugin,
		"auxiliary":   auxiliary,
		"examples":    examples,
		"readings":    readings,
		"meanwhile":   meanwhile,
		"requested":   requested,
		"window":      windowCloses,
	}
	for name, theme := range themes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theme(t)
		})
	}
}

// TestAlone runs the scenarios that break shared components, one after another, and repairs the component after each.
func TestAlone(t *testing.T) { disturbances(t) }

// long skips a scenario that takes long in make test, which runs the suite with -short.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("too long for make test; make e2e runs it")
	}
}
