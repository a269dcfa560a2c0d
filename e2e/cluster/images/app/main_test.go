package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDelaysComeFromTheEnvironment(t *testing.T) {
	t.Setenv("VERSION", "v1")
	t.Setenv("START_DELAY", "1s")
	t.Setenv("READY_DELAY", "2s")
	t.Setenv("STOP_DELAY", "3s")
	got, err := settingsFromEnvironment()
	want := settings{version: "v1", port: "8080", startDelay: time.Second, readyDelay: 2 * time.Second, stopDelay: 3 * time.Second}
	if err != nil || got != want {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
	t.Setenv("STOP_DELAY", "soon")
	if _, err := settingsFromEnvironment(); err == nil || !strings.Contains(err.Error(), "STOP_DELAY=soon") {
		t.Errorf("error %v, want one that names STOP_DELAY=soon", err)
	}
}

func TestReadyOnlyAfterItsDelay(t *testing.T) {
	for delay, want := range map[time.Duration]int{0: http.StatusOK, time.Hour: http.StatusServiceUnavailable} {
		recorder := httptest.NewRecorder()
		handler(settings{readyDelay: delay}).ServeHTTP(recorder, httptest.NewRequest("GET", "/ready", nil))
		if recorder.Code != want {
			t.Errorf("GET /ready with a delay of %s answers %d, want %d", delay, recorder.Code, want)
		}
	}
}

func TestRequestInFlightIsAnsweredBeforeTheEnd(t *testing.T) {
	port := freePort(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, settings{version: "v1", port: port}) }()
	waitForPort(t, port)

	// As soon as the request is in the log, so in its handler, the server is told to stop.
	log.SetOutput(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("for=300ms")) {
			stop()
		}
		return len(line), nil
	}))
	defer log.SetOutput(os.Stderr)
	response, err := http.Get("http://127.0.0.1:" + port + "/?for=300ms")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "v1\n" {
		t.Errorf("body %q, error %v; want v1", body, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (write writerFunc) Write(line []byte) (int, error) { return write(line) }

func TestReviewNamesWhoAsks(t *testing.T) {
	const body = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
		"uid": "1", "operation": "CREATE", "resource": {"resource": "pods"}, "userInfo": {"username": "someuser"}}}`
	for path, want := range map[string]string{
		"/deny":  `"allowed":false,"status":{"message":"version v1 denies CREATE pods by someuser"}`,
		"/allow": `"allowed":true,"status":{"message":"version v1 allows CREATE pods by someuser"}`,
	} {
		recorder := httptest.NewRecorder()
		handler(settings{version: "v1"}).ServeHTTP(recorder, httptest.NewRequest("POST", path, strings.NewReader(body)))
		if got := recorder.Body.String(); !strings.Contains(got, want) || !strings.Contains(got, `"uid":"1"`) {
			t.Errorf("POST %s answers %s, want %s", path, got, want)
		}
	}
}

func TestGetWritesTheAnswer(t *testing.T) {
	server := httptest.NewServer(handler(settings{version: "v1"}))
	defer server.Close()
	var out bytes.Buffer
	if err := get(&out, server.URL); err != nil || out.String() != "v1\n" {
		t.Errorf("got %q, error %v; want v1", out.String(), err)
	}
	if err := get(&out, server.URL+"/nothing"); err == nil {
		t.Error("no error for an address that does not exist")
	}
}

func TestFillLeavesSomethingBehindAfterItsTime(t *testing.T) {
	t.Setenv("START_DELAY", "50ms")
	folder, from := t.TempDir(), time.Now()
	if err := run([]string{"fill", folder}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(from); took < 50*time.Millisecond {
		t.Errorf("it took %s instead of START_DELAY, 50ms", took)
	}
	if written, err := os.Stat(filepath.Join(folder, "cache")); err != nil || written.Size() != filled {
		t.Errorf("%v, error %v; want a file of %d bytes", written, err, filled)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func waitForPort(t *testing.T, port string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		connection, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = connection.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestRenewedCertificateIsServed(t *testing.T) {
	folder, port := t.TempDir(), freePort(t)
	writeCertificate(t, folder, "first")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, settings{version: "v1", port: port, tlsDir: folder}) }()
	waitForPort(t, port)
	for _, name := range []string{"first", "renewed"} {
		writeCertificate(t, folder, name)
		connection, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := connection.ConnectionState().PeerCertificates[0].Subject.CommonName; got != name {
			t.Errorf("served is %q, want %q", got, name)
		}
		connection.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func writeCertificate(t *testing.T, folder, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"tls.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
