package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/stayput/stayput/e2e/cluster/internal/layout"
	"github.com/stayput/stayput/e2e/cluster/internal/plan"
)

func TestServerCertificateIsValidForItsAddresses(t *testing.T) {
	dir := ensured(t)
	pair, err := tls.LoadX509KeyPair(dir.PKI(APIServer+".crt"), dir.PKI(APIServer+".key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{plan.ControlPlaneIP, plan.KubernetesServiceIP, "127.0.0.1", "kubernetes.default.svc"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots(t, dir)}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestKubeconfigNamesTheNode(t *testing.T) {
	dir := ensured(t)
	config, err := clientcmd.BuildConfigFromFlags("", Kubeconfig(dir, "node-2"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	subject := pair.Leaf.Subject
	if subject.CommonName != "system:node:node-2" || subject.Organization[0] != "system:nodes" || config.Host != plan.APIServerURL {
		t.Errorf("user %s of %v at %s", subject.CommonName, subject.Organization, config.Host)
	}
}

func TestWhatIsThereIsKept(t *testing.T) {
	dir := ensured(t)
	before := read(t, dir.Kubeconfig())
	if err := os.Remove(dir.PKI("kube-proxy.crt")); err != nil { // as after an interruption
		t.Fatal(err)
	}
	if err := Ensure(dir, 4); err != nil {
		t.Fatal(err)
	}
	if after := read(t, dir.Kubeconfig()); after != before {
		t.Error("the administrator's kubeconfig has changed")
	}
	for _, name := range []string{"kube-proxy", "node-4"} {
		if _, err := tls.LoadX509KeyPair(dir.PKI(name+".crt"), dir.PKI(name+".key")); err != nil {
			t.Error(err)
		}
	}
}

func ensured(t *testing.T) layout.Dir {
	t.Helper()
	dir := layout.Dir(t.TempDir())
	if err := Ensure(dir, 3); err != nil {
		t.Fatal(err)
	}
	return dir
}

func roots(t *testing.T, dir layout.Dir) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(read(t, dir.PKI(CA+".crt")))) {
		t.Fatal("no certificate of the authority")
	}
	return pool
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
