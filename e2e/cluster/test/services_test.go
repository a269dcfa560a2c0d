package test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Each node has a pod with its own Service, so that it is known which pod answers: the pod on this node (itself), or the one on the next.
func TestServicesAnswerFromEverywhere(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	pods, addresses := podOnEachNode(t, namespace)
	for i, target := range pods {
		url := fmt.Sprintf("http://%s", addresses[i])
		awaitAnswer(t, url, target.Name)
		for _, source := range []*corev1.Pod{target, pods[(i+1)%len(pods)]} {
			awaitAnswerInPod(t, source, url, target.Name)
		}
	}
}

func TestClusterNamesResolveInPods(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	server, client := pod(namespace, "web", podSpec("v1")), pod(namespace, "client", podSpec("v2"))
	create(t, server, client, service(namespace, "web", 80))
	awaitPod(t, server)
	awaitPod(t, client)
	awaitAnswerInPod(t, client, "http://web", "v1")
	awaitAnswerInPod(t, client, "http://web."+namespace+".svc.cluster.local", "v1")
	awaitAnswerInPod(t, client, "https://kubernetes.default/version", "gitVersion")
}

// podOnEachNode returns the pods and the addresses of their Services. A pod's version is its name.
func podOnEachNode(t *testing.T, namespace string) (pods []*corev1.Pod, addresses []string) {
	t.Helper()
	for _, node := range realNodes(t) {
		spec := podSpec("v1", "VERSION", "on-"+node)
		spec.NodeName = node
		pod, service := pod(namespace, "on-"+node, spec), service(namespace, "on-"+node, 80)
		create(t, pod, service)
		pods, addresses = append(pods, pod), append(addresses, service.Spec.ClusterIP)
	}
	for _, pod := range pods {
		awaitPod(t, pod)
	}
	return pods, addresses
}

// awaitAnswerInPod waits until url, called from within pod, answers with a text that contains want.
func awaitAnswerInPod(t *testing.T, pod *corev1.Pod, url, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s answers %s in pod %s", url, want, pod.Name), func(ctx context.Context) (bool, string) {
		got, err := tryKubectl(ctx, "-n", pod.Namespace, "exec", pod.Name, "--", "/app", "get", url)
		return err == nil && strings.Contains(got, want), fmt.Sprintf("%q, error %v", got, err)
	})
}

// get calls url from the machine of the cluster, on a new connection.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s", response.Status)
	}
	body, err := io.ReadAll(response.Body)
	return strings.TrimSpace(string(body)), err
}
