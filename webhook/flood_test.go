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
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/port"
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

// flood is how long TestFloodsDelayNoEdit sends bodies. With -flood=1m -v it measures what a flood costs.
var flood = flag.Duration("flood", time.Second, "how long strangers send the most expensive bodies")

// TestFloodsDelayNoEdit: unknown clients send the bodies that cost most, on ten connections, as fast as they are answered. Every edit is
// decided all the same, in the time that it has, and the bodies together take no more memory than they may.
func TestFloodsDelayNoEdit(t *testing.T) {
	address := overTLS(t, handlers(t, reader(t, namespace(inplace.ModeInPlaceOnly)), running(t, inplace.ModeInPlaceOnly)))
	rejected := editing(t, deployment(t, envTemplate), deployment(t, v1Template))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	delays := func(edits int) (all []time.Duration) {
		for range edits {
			began := time.Now()
			if answer := askOver(t, client, "https://"+address+"/validate-in-place-only", rejected); answer.Allowed {
				t.Error("an edit that is to be rejected is allowed")
			}
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all
	}
	quiet, before := delays(10), heap()
	var strangers sync.WaitGroup
	var decided atomic.Int64
	until := time.Now().Add(*flood)
	for i := range 10 {
		strangers.Go(func() { floods(address, i, until, &decided) })
	}
	var flooded []time.Duration
	highest := before
	for time.Now().Before(until) {
		flooded, highest = append(flooded, delays(1)...), max(highest, heap())
	}
	strangers.Wait()
	slices.Sort(flooded)
	t.Logf("edits take %s, in a flood of which %d bodies are decided %s, at most %s; the heap grows by %d MiB",
		quiet[5], decided.Load(), flooded[len(flooded)/2], flooded[len(flooded)-1], (highest-before)>>20)
	if decided.Load() == 0 {
		t.Error("no body of the flood is decided")
	}
	if highest-before > 512<<20 {
		t.Errorf("bodies take %d MiB at a time", (highest-before)>>20)
	}
}

func heap() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapInuse
}

// floods sends expensive bodies over one connection until that time. Each differs from all others.
func floods(address string, stranger int, until time.Time, decided *atomic.Int64) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for i := 0; time.Now().Before(until); i++ {
		kind, now, before := expensive(i, fmt.Sprint(stranger, ".", i))
		path, sub := "/validate-workload", ""
		if kind == "Pod" {
			path, sub = "/mutate-pod-status", "status"
		}
		body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`+
			`"request":{"uid":"1","kind":{"kind":%q},"subResource":%q,"name":"web","namespace":"shop","operation":"UPDATE",`+
			`"object":%s,"oldObject":%s}}`, kind, sub, now, before)
		response, err := client.Post("https://"+address+path, "application/json", strings.NewReader(body))
		if err != nil {
			continue // the server closes the connection if too many bodies wait
		}
		if response.StatusCode == http.StatusOK {
			decided.Add(1)
		}
		_ = response.Body.Close() // whatever it says
	}
}

// expensive returns a kind, and one of the most expensive pairs of objects of that kind.
func expensive(i int, note string) (kind, now, before string) {
	many := func(element string, count int) string { return strings.Repeat(element+",", count) + element }
	workload := func(field, value string) string {
		return `{"metadata":{"namespace":"shop","name":"web"},"spec":{"template":{"metadata":{"name":"` + note + `"},"spec":{` +
			`"containers":[{"name":"app","image":"web:v1"}],"` + field + `":` + value + `}}}}`
	}
	nested := func(last string) string {
		return workload("x", strings.Repeat("[", 4000)+many("0", 25_000)+","+last+strings.Repeat("]", 4000))
	}
	switch i % 4 {
	case 0:
		return "Deployment", nested("1"), nested("2")
	case 1:
		return "Deployment", workload("ephemeralContainers", "["+many("{}", 30_000)+"]"), workload("hostname", `"a"`)
	case 2:
		return "Deployment", workload("hostname", `"`+strings.Repeat("a", 3<<20)+`"`), workload("hostname", `"`+strings.Repeat("b", 3<<20)+`"`)
	}
	return "Pod", `{"metadata":{"name":"` + note + `"},"status":{},"spec":{"containers":[` + many("{}", 30_000) + `]}}`, `{"metadata":{}}`
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
