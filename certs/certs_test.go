package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/stayput/stayput/internal/port"
)

func TestWatchNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, err := Watch(dir)
	if err == nil || !strings.Contains(err.Error(), "tls.crt") || !strings.Contains(err.Error(), dir) {
		t.Errorf("Watch of an empty folder = %v, want an error naming tls.crt and the folder", err)
	}
}

func TestLoadedRefusesAnExpiredCertificate(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1, time.Now().Add(-time.Minute))
	err := Loaded(watch(t, dir))(nil)
	if err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("Loaded = %v, want an error that says expired", err)
	}
}

func TestRenewedCertificateIsServedWithoutRestart(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1, time.Now().Add(time.Hour))
	watcher := watch(t, dir)
	server, address := newServer(t, watcher)
	start(t, server)
	start(t, watcher.WithWatchInterval(100*time.Millisecond))

	eventually(t, "the first certificate is served", func() bool { return serial(address) == 1 })
	write(t, dir, 2, time.Now().Add(time.Hour))
	eventually(t, "the renewed certificate is served", func() bool { return serial(address) == 2 })
}

func watch(t *testing.T, dir string) *certwatcher.CertWatcher {
	t.Helper()
	watcher, err := Watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	return watcher
}

// newServer returns a webhook server for a port that was free a moment ago, and its address.
func newServer(t *testing.T, watcher *certwatcher.CertWatcher) (webhook.Server, string) {
	t.Helper()
	address := free(t)
	server := port.New(webhook.Options{Host: "127.0.0.1", Port: address.Port, TLSOpts: []func(*tls.Config){TLS(watcher)}})
	return server, address.String()
}

func free(t *testing.T) *net.TCPAddr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().(*net.TCPAddr)
}

// serial dials the address, and returns the serial number of the certificate that the server presents; 0 if it does not answer.
func serial(address string) int64 {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// write puts a self-signed certificate and its key into dir.
func write(t *testing.T, dir string, serial int64, expiry time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: "stayput"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     expiry,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "tls.key"), "PRIVATE KEY", private)
	writePEM(t, filepath.Join(dir, "tls.crt"), "CERTIFICATE", certificate)
}

func writePEM(t *testing.T, path, kind string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs a runnable until the test ends and fails the test if it ends with an error.
func start(t *testing.T, runnable manager.Runnable) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- runnable.Start(t.Context()) }()
	t.Cleanup(func() { // the context of t is cancelled just before
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
	}
}
