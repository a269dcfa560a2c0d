package test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const simulatedNodes = 1000

// simulatedPods returns a number of pods that takes little time; SIMULATED_PODS=5000 measures a cluster of that size.
func simulatedPods(t *testing.T) int {
	t.Helper()
	value, set := os.LookupEnv("SIMULATED_PODS")
	if !set {
		return 500
	}
	pods, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("SIMULATED_PODS must be a number: %v", err)
	}
	return pods
}

// The test has its own kwok, so that it neither needs nor disturbs the simulated nodes of the cluster. It is not parallel: it would slow
// down all others.
func TestThousandSimulatedNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	namespace, pods := newNamespace(t, nil), simulatedPods(t)
	mine := map[string]string{"test": namespace}
	kwok := startKwok(t, clusterFile("kubeconfig"), "kwok.x-k8s.io/node="+namespace)

	began := time.Now()
	createMany(t, simulatedNodes, func(i int) client.Object { return simulatedNode(t, namespace, i) })
	awaitReady(t, simulatedNodes, "nodes", readyNodes, client.MatchingLabels(mine))
	t.Logf("%d nodes are Ready after %s", simulatedNodes, time.Since(began).Round(time.Second))

	began = time.Now()
	createMany(t, pods, func(i int) client.Object { return simulatedPod(namespace, i) })
	awaitReady(t, pods, "pods", readyPods, client.InNamespace(namespace))
	t.Logf("%d pods are Ready after %s; kwok uses %d MiB", pods, time.Since(began).Round(time.Second), residentMiB(t, kwok))

	pod := simulatedPod(namespace, 0)
	if err := fetch(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	restartInPlace(t, pod)
	if pod.Status.ObservedGeneration != pod.Generation {
		t.Errorf("observedGeneration is %d, want %d", pod.Status.ObservedGeneration, pod.Generation)
	}
}

func simulatedNode(t *testing.T, namespace string, i int) *corev1.Node {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "simulated", "node.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{}
	if err := yaml.UnmarshalStrict(content, node); err != nil {
		t.Fatal(err)
	}
	node.Name = fmt.Sprintf("%s-%d", namespace, i)
	node.Annotations["kwok.x-k8s.io/node"] = namespace
	node.Labels["test"] = namespace
	return node
}

func simulatedPod(namespace string, i int) *corev1.Pod {
	pod, no := pod(namespace, fmt.Sprintf("pod-%d", i), podSpec("v1")), false
	pod.Spec.NodeName = fmt.Sprintf("%s-%d", namespace, i%simulatedNodes)
	pod.Spec.AutomountServiceAccountToken = &no
	return pod
}

// A watch of resource version 0 gets all pods once more: see cluster.mk.
func TestSimulatedPodsAreWatchedFromTheirList(t *testing.T) {
	t.Parallel()
	watched := make(chan string, 1)
	kubeconfig := proxied(t, func(request *http.Request) {
		if query := request.URL.Query(); request.URL.Path == "/api/v1/pods" && query.Get("watch") == "true" {
			select {
			case watched <- query.Get("resourceVersion"):
			default:
			}
		}
	})
	startKwok(t, kubeconfig, "kwok.x-k8s.io/node=none")
	select {
	case version := <-watched:
		if version == "" || version == "0" {
			t.Errorf("kwok watches pods from resource version %q, not from that of its list", version)
		}
	case <-time.After(patience):
		t.Error("kwok watches no pods")
	}
}

// proxied returns a kubeconfig whose requests are seen before they go to the cluster.
func proxied(t *testing.T, see func(*http.Request)) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", clusterFile("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(request *httputil.ProxyRequest) {
		see(request.In)
		request.SetURL(to)
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL}
	kubeconfig.Contexts["proxy"], kubeconfig.CurrentContext = &clientcmdapi.Context{Cluster: "proxy"}, "proxy"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// startKwok runs a kwok for the nodes with the annotation until the test ends, and returns its process ID.
func startKwok(t *testing.T, kubeconfig, annotation string) int {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "kwok.log"))
	if err != nil {
		t.Fatal(err)
	}
	kwok := exec.Command(clusterFile("bin", "kwok"),
		"--kubeconfig", kubeconfig,
		"--config", filepath.Join("..", "simulated", "stages.yaml"),
		"--manage-nodes-with-annotation-selector", annotation,
		"--cidr", "10.128.0.0/9")
	kwok.Stdout, kwok.Stderr = log, log
	if err := kwok.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = kwok.Process.Kill()
		_ = kwok.Wait()
		if content, err := os.ReadFile(log.Name()); err != nil || t.Failed() {
			t.Logf("kwok's log, error %v:\n%s", err, ending(content))
		}
	})
	return kwok.Process.Pid
}

// createMany creates count objects that are deleted at once when the test ends, one by one: the API server stops deleting a collection
// after a minute.
func createMany(t *testing.T, count int, object func(int) client.Object) {
	t.Helper()
	objects := make([]client.Object, count)
	for i := range objects {
		objects[i] = object(i)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		forEach(ctx, t, objects, func(ctx context.Context, object client.Object) error {
			return client.IgnoreNotFound(cluster.Delete(ctx, object, client.GracePeriodSeconds(0)))
		})
	})
	forEach(t.Context(), t, objects, func(ctx context.Context, object client.Object) error { return cluster.Create(ctx, object) })
}

// forEach calls handle for the objects, many at a time.
func forEach(ctx context.Context, t *testing.T, objects []client.Object, handle func(context.Context, client.Object) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for _, object := range objects {
		group.Go(func() error { return handle(ctx, object) })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func awaitReady(t *testing.T, want int, what string, count func(context.Context, client.ListOption) (int, error), of client.ListOption) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d %s are Ready", want, what), func(ctx context.Context) (bool, string) {
		ready, err := count(ctx, of)
		return err == nil && ready == want, fmt.Sprintf("%d, error %v", ready, err)
	})
}

func readyNodes(ctx context.Context, of client.ListOption) (ready int, err error) {
	var nodes corev1.NodeList
	err = cluster.List(ctx, &nodes, of)
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready, err
}

func readyPods(ctx context.Context, of client.ListOption) (ready int, err error) {
	var pods corev1.PodList
	err = cluster.List(ctx, &pods, of)
	for i := range pods.Items {
		if isReady(&pods.Items[i]) {
			ready++
		}
	}
	return ready, err
}

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	match := resident.FindSubmatch(status)
	if match == nil {
		t.Fatalf("no VmRSS in %s", status)
	}
	kibibytes, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes / 1024
}
