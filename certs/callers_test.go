package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stayput/stayput/internal/port"
)

// authority signs client certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a := authority{template, key}
	a.certificate, err = x509.ParseCertificate(a.sign(t, template, key))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a authority) sign(t *testing.T, template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// issued returns a certificate for that use.
func (a authority) issued(t *testing.T, use x509.ExtKeyUsage) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{use}, KeyUsage: x509.KeyUsageDigitalSignature}
	return &tls.Certificate{Certificate: [][]byte{a.sign(t, template, key)}, PrivateKey: key}
}

// in writes the certificate of the CA to the file, and returns the file.
func (a authority) in(t *testing.T, file string) string {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOnlyCallersOfTheCA: only callers with a certificate of the CA are answered. The readiness check, which shows none, passes.
func TestOnlyCallersOfTheCA(t *testing.T) {
	dir, ca := t.TempDir(), newAuthority(t)
	write(t, dir, 1, time.Now().Add(time.Hour))
	watcher := watch(t, dir)
	callers, err := Callers(ca.in(t, filepath.Join(dir, "ca.crt")))
	if err != nil {
		t.Fatal(err)
	}
	address := free(t)
	server := port.New(webhook.Options{Host: "127.0.0.1", Port: address.Port, TLSOpts: []func(*tls.Config){TLS(watcher), callers}})
	server.Register("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }))
	start(t, server)
	eventually(t, "it is ready", func() bool { return server.StartedChecker()(nil) == nil })
	for name, test := range map[string]struct {
		shows *tls.Certificate
		want  string
	}{
		"an API server":                  {ca.issued(t, x509.ExtKeyUsageClientAuth), ""},
		"no certificate":                 {&tls.Certificate{}, "certificate required"},
		"one of another CA":              {newAuthority(t).issued(t, x509.ExtKeyUsageClientAuth), "certificate"},
		"a server certificate of the CA": {ca.issued(t, x509.ExtKeyUsageServerAuth), "bad certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			// The client shows it whatever CAs the server accepts.
			shown := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return test.shows, nil }
			config := &tls.Config{InsecureSkipVerify: true, GetClientCertificate: shown}
			transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
			response, err := (&http.Client{Transport: transport}).Post("https://"+address.String(), "", strings.NewReader("question"))
			if err == nil {
				_ = response.Body.Close()
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("answered %v, want %q", err, test.want)
			}
		})
	}
}

func TestCallersNeedsACertificate(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if _, err := Callers(empty); err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Callers(empty); err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("a file without a certificate: %v", err)
	}
}

// TestRenewedCAIsTaken: a renewed CA counts. A file that is missing for a moment changes nothing.
func TestRenewedCAIsTaken(t *testing.T) {
	file, first, second := filepath.Join(t.TempDir(), "ca.crt"), newAuthority(t), newAuthority(t)
	callers, err := Callers(first.in(t, file))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{}
	callers(config)
	expect := func(when string, want authority) {
		t.Helper()
		current, err := config.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		if pool, err := authorities(want.in(t, file+".want")); err != nil || !current.ClientCAs.Equal(pool) {
			t.Errorf("%s: another CA counts, %v", when, err)
		}
	}
	expect("unchanged", first)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect("missing", first)
	second.in(t, file)
	expect("renewed", second)
}
