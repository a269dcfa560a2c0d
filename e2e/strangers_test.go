//go:build e2e

package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// frontProxyCA signed the certificate that the test cluster's API server shows webhooks which ask for one.
var frontProxyCA = filepath.Join(repository, ".cluster", "pki", "front-proxy-ca.crt")

// onlyAPIServers checks that managers with the CA of API servers answer those, and end the handshake of every other client.
func onlyAPIServers(t *testing.T) {
	long(t)
	ca, err := os.ReadFile(frontProxyCA)
	if err != nil {
		t.Fatal(err)
	}
	authority := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stayput-client-ca"}, Data: map[string]string{"ca.crt": string(ca)}}
	if _, err := clients.CoreV1().ConfigMaps(ownNamespace).Create(t.Context(), authority, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { onCluster(t, "-n", ownNamespace, "delete", "configmap", authority.Name) })
	withFlags(t, []string{"--client-ca=/client-ca/ca.crt"})
	s := newScenario(t, labelled)
	s.create(web(3))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	for _, address := range webhookAddresses(t) {
		answer, err := uncertified().Get("https://" + address + "/validate-workload")
		if err == nil {
			_ = answer.Body.Close() // its body is not read
		}
		if err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("a stranger got %v, %v of %s, want that a certificate is required", answer, err, address)
		}
	}
}

// uncertified returns a client that shows no certificate.
func uncertified() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
}

// webhookAddresses returns the address of each manager's webhook server.
func webhookAddresses(t *testing.T) []string {
	t.Helper()
	found, err := clients.CoreV1().Pods(ownNamespace).List(t.Context(), managers)
	if err != nil || len(found.Items) == 0 {
		t.Fatal("no manager", err)
	}
	var addresses []string
	for _, pod := range found.Items {
		for _, port := range pod.Spec.Containers[0].Ports {
			if port.Name == "webhook" {
				addresses = append(addresses, net.JoinHostPort(pod.Status.PodIP, fmt.Sprint(port.ContainerPort)))
			}
		}
	}
	return addresses
}
