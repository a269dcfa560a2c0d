package webhook

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/port"
)

// TestAnnouncedBodiesTakeNoCapacity: an unknown client announces the largest bodies on ten connections, and sends next to nothing of
// them. Every edit is decided all the same.
func TestAnnouncedBodiesTakeNoCapacity(t *testing.T) {
	h := handlers(t, reader(t, namespace(inplace.ModeInPlaceOnly)), running(t, inplace.ModeInPlaceOnly))
	address := overTLS(t, h)
	for range 10 {
		announce(t, address, 7<<20-1)
	}
	rejected := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	for range 10 {
		response := askOver(t, client, "https://"+address+"/validate-in-place-only", rejected)
		if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity {
			t.Errorf("an edit that is to be rejected got %+v", response)
		}
	}
}

// overTLS serves as a manager does, and returns the address.
func overTLS(t *testing.T, h Handlers) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	identity := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
	server := port.New(ctrlwebhook.Options{Host: "127.0.0.1", TLSOpts: []func(*tls.Config){func(config *tls.Config) {
		config.Certificates = []tls.Certificate{identity}
	}}})
	Register(server, h)
	ended := make(chan error, 1)
	go func() { ended <- server.Start(t.Context()) }()
	t.Cleanup(func() { // the context of t is cancelled just before
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for server.StartedChecker()(nil) != nil {
		time.Sleep(5 * time.Millisecond)
	}
	return server.Address()
}

// announce begins a request with a body of that size, and waits until the server begins to read the body.
func announce(t *testing.T, address string, size int) {
	t.Helper()
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.NetConn().Close() }) // the server may have closed it
	fmt.Fprintf(connection, "POST /validate-workload HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", size)
	if line, err := bufio.NewReader(connection).ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("a body that is announced is not read: %q, %v", line, err)
	}
}

// askOver is ask over a network.
func askOver(t *testing.T, client *http.Client, url string, req admission.Request) admissionv1.AdmissionResponse {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: &req.AdmissionRequest}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read to its end
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("answered %d %q, %v", response.StatusCode, answer, err)
	}
	return *parse[admissionv1.AdmissionReview](t, string(answer)).Response
}
