// Package test checks what the running cluster must be able to do, through its API. Every test has its own namespaces and waits for
// conditions, never for time.
package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is the time for a single condition on a slow and busy machine.
const patience = 3 * time.Minute

// cluster is the administrator's client of the running cluster.
var cluster client.Client

func TestMain(m *testing.M) {
	var err error
	if cluster, err = connect(); err != nil {
		fmt.Fprintln(os.Stderr, "these tests need the test cluster, which make cluster starts:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func connect() (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", clusterFile("kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's own priority and fairness is the limit
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientscheme.AddToScheme, certmanager.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, err
	}
	connected, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return connected, connected.List(ctx, &corev1.NodeList{}, client.Limit(1))
}

// clusterFile returns a path below .cluster in the repository's root.
func clusterFile(elements ...string) string {
	return filepath.Join(append([]string{"..", "..", "..", ".cluster"}, elements...)...)
}

// newNamespace makes a namespace that is deleted when the test ends. Its events are logged if the test fails.
func newNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}
	create(t, namespace)
	awaitServiceAccount(t, namespace.Name)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pods and events of %s:\n%s", namespace.Name, goings(namespace.Name))
		}
	})
	return namespace.Name
}

// awaitServiceAccount waits for the default service account. No pod can be created before a controller has made it.
func awaitServiceAccount(t *testing.T, namespace string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	eventually(t, "service account default of "+namespace, func(ctx context.Context) (bool, string) {
		err := fetch(ctx, account)
		return err == nil, fmt.Sprint(err)
	})
}

func goings(namespace string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pods, _ := kubectlCommand(ctx, "-n", namespace, "get", "pods", "-o", "wide").CombinedOutput()
	events, _ := kubectlCommand(ctx, "-n", namespace, "get", "events", "--sort-by=.lastTimestamp").CombinedOutput()
	return ending(pods) + ending(events)
}

// ending returns the end of text, which may be long.
func ending(text []byte) string {
	return string(text[max(0, len(text)-5000):])
}

// create creates objects that are deleted when the test ends.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
		t.Cleanup(func() { remove(t, object) })
	}
}

func remove(t *testing.T, object client.Object) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := client.IgnoreNotFound(cluster.Delete(ctx, object)); err != nil {
		t.Errorf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// fetch reads the live state of object into it.
func fetch(ctx context.Context, object client.Object) error {
	return cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
}

// eventually asks until the answer is yes. When patience ends, it fails the test with the last state. It asks for at most half of the time,
// however long an answer takes.
func eventually(t *testing.T, what string, ask func(context.Context) (yes bool, state string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		asked := time.Now()
		yes, state := ask(ctx)
		if yes {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s; last seen: %s", what, patience, state)
		case <-time.After(max(200*time.Millisecond, time.Since(asked))):
		}
	}
}

// kubectl runs kubectl and returns its output; the test ends if it fails.
func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := tryKubectl(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func tryKubectl(ctx context.Context, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	output, err := kubectlCommand(ctx, arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return string(output), nil
}

func kubectlCommand(ctx context.Context, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, clusterFile("bin", "kubectl"),
		append([]string{"--kubeconfig", clusterFile("kubeconfig")}, arguments...)...)
}

// realNodes returns the names of the nodes with a kubelet.
func realNodes(t *testing.T) []string {
	t.Helper()
	var nodes corev1.NodeList
	if err := cluster.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, node := range nodes.Items {
		if node.Labels["type"] != "simulated" {
			names = append(names, node.Name)
		}
	}
	return names
}
