//go:build e2e && faults

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	randv2 "math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// start starts a process, which ends with the returned function.
func (p *twins) start(argv []string) (end func()) {
	p.Helper()
	process := exec.Command(argv[0], argv[1:]...)
	if err := process.Start(); err != nil {
		p.Fatal(err)
	}
	return func() {
		_ = process.Process.Kill()
		_ = process.Wait() // it says that it was killed
	}
}

// unreachableFromSecond lets the native controllers talk to an API server of their own for a minute, which reaches nothing in the cluster,
// so no webhook is asked about their writes.
func unreachableFromSecond(p *twins) {
	egress := filepath.Join(p.TempDir(), "egress.yaml")
	if err := os.WriteFile(egress, []byte(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
  - name: cluster
    connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: `+egress+`.socket}}}
`), 0o644); err != nil {
		p.Fatal(err)
	}
	const second = "https://10.244.0.1:6444"
	defer p.start(append(argumentsOf(p.component("kube-apiserver")),
		"--secure-port=6444", "--endpoint-reconciler-type=none", "--egress-selector-config-file="+egress))()
	p.inPlace.eventually("the second API server", func(ctx context.Context) error {
		_, _, err := kubectl(ctx, "", "--server="+second, "get", "--raw", "/readyz")
		return err
	})
	native := argumentsOf(p.component("kube-controller-manager"))
	component(p.T, "stop", "kube-controller-manager")
	defer component(p.T, "start", "kube-controller-manager")
	defer p.start(append(native, "--master="+second))()
	lasts(time.Minute)
}

// badConnection puts a proxy between the managers and the API server. Each request takes 200 ms more, and one of five is answered with 503.
func badConnection(p *twins) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		p.Fatal(err)
	}
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = nil, nil // managers show their tokens
	transport, err := rest.TransportFor(config)
	if err != nil {
		p.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		p.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	server := &http.Server{Addr: "10.244.0.1:7443", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(200 * time.Millisecond)
		if randv2.IntN(5) == 0 {
			w.Header().Set("Retry-After", "1") // as of an API server that is shutting down
			http.Error(w, "a fault", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	pki := filepath.Join(repository, ".cluster", "pki")
	go func() {
		_ = server.ListenAndServeTLS(filepath.Join(pki, "kube-apiserver.crt"), filepath.Join(pki, "kube-apiserver.key"))
	}()
	defer func() { _ = server.Close() }()
	direct := func(host, port string) {
		p.inPlace.kubectl("", "-n", ownNamespace, "set", "env", "deployment/"+ownName,
			"KUBERNETES_SERVICE_HOST"+host, "KUBERNETES_SERVICE_PORT"+port)
	}
	direct("=10.244.0.1", "=7443")
	defer func() { direct("-", "-"); mended(p.T) }()
	mended(p.T)
	p.edit()
	lasts(time.Minute)
}

// expiredCertificate gives the webhooks a certificate that has expired, while cert-manager is stopped. The API server notices with its next
// connection, so the managers are killed. Then all workloads are edited, and after a minute cert-manager starts again.
func expiredCertificate(p *twins) {
	component(p.T, "stop", "cert-manager")
	defer component(p.T, "start", "cert-manager")
	secrets := clients.CoreV1().Secrets(ownNamespace)
	secret, err := secrets.Get(p.Context(), "stayput-webhook", metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	issuer, err := secrets.Get(p.Context(), "stayput-ca", metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	secret.Data[corev1.TLSCertKey] = expired(p.T, pairIn(p.T, secret), pairIn(p.T, issuer))
	if _, err := secrets.Update(p.Context(), secret, metav1.UpdateOptions{}); err != nil {
		p.Fatal(err)
	}
	p.inPlace.eventually("managers that have the expired certificate", func(context.Context) error {
		for _, process := range p.inPlace.managerProcesses() {
			has, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/certificates/tls.crt", process))
			if err != nil {
				return err
			}
			if !bytes.Equal(has, secret.Data[corev1.TLSCertKey]) {
				return fmt.Errorf("process %d has another one", process)
			}
		}
		return nil
	})
	for _, process := range p.inPlace.managerProcesses() { // connections that are there last
		kill(p.inPlace, process)
	}
	p.inPlace.unmanaged("web")
	p.edit()
	lasts(time.Minute)
}

func pairIn(t *testing.T, secret *corev1.Secret) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// expired returns a certificate for the same key, by its issuer, that ended a minute ago.
func expired(t *testing.T, was, issuer tls.Certificate) []byte {
	t.Helper()
	template := *was.Leaf
	template.SerialNumber, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Minute)
	signed, err := x509.CreateCertificate(rand.Reader, &template, issuer.Leaf, was.Leaf.PublicKey, issuer.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
}

// diskPressure lets a kubelet evict pods for a minute.
func diskPressure(p *twins) {
	node := p.otherNode()
	name := "kubelet-" + node
	argv := argumentsOf(p.component("kubelet", "--hostname-override="+node))
	component(p.T, "stop", name)
	defer startKubelet(p.T, node)
	defer p.start(append(argv, "--eviction-hard=nodefs.available<100%"))()
	lasts(time.Minute)
}
