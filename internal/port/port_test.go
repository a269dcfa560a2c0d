package port

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// started returns a server on a loopback address. Its one hook, at /, sends back what it is sent.
func started(t *testing.T, set func(*Server)) *Server {
	t.Helper()
	server := New(webhook.Options{Host: "127.0.0.1", TLSOpts: []func(*tls.Config){identified(t)}})
	set(server)
	server.Register("/", http.HandlerFunc(echo))
	ended := make(chan error, 1)
	go func() { ended <- server.Start(t.Context()) }()
	t.Cleanup(func() { // the context of t is cancelled just before
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the server has started", func() bool { return server.StartedChecker()(nil) == nil })
	return server
}

func echo(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(w, r.Body) // what is missing is seen by the caller
}

// identified returns an option by which a server shows a certificate of its own.
func identified(t *testing.T) func(*tls.Config) {
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
	return func(config *tls.Config) {
		config.Certificates = []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
	}
}

// caller returns an API server at that address: it keeps its connections.
func caller(t *testing.T, source string) *http.Client {
	t.Helper()
	transport := &http.Transport{
		DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}).DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask expects an answer, and reports whether it came on a connection that existed before.
func ask(t *testing.T, server *Server, caller *http.Client) (reused bool) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused }}
	request, err := http.NewRequestWithContext(
		httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, "https://"+server.Address(), strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := caller.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read to its end
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "question" || response.StatusCode != http.StatusOK {
		t.Fatalf("answered %d %q, %v", response.StatusCode, body, err)
	}
	return reused
}

// stranger opens a connection as an unknown client, which the server has accepted.
func stranger(t *testing.T, server *Server, source string) *tls.Conn {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	connection, err := tls.DialWithDialer(dialer, "tcp", server.Address(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.NetConn().Close() }) // the server may have closed it
	return connection
}

func few(most int) func(*Server) { return func(s *Server) { s.connections.most = most } }

// TestConnectionsOfStrangersCloseTheirOwn: when clients at two addresses have as many connections as may be open, those of the address
// with fewer stay.
func TestConnectionsOfStrangersCloseTheirOwn(t *testing.T) {
	server := started(t, few(8))
	apiServer := caller(t, "127.0.0.1")
	ask(t, server, apiServer)
	for range 20 {
		stranger(t, server, "127.0.0.2")
	}
	if !ask(t, server, apiServer) {
		t.Error("unknown clients had an API server's connection closed")
	}
	if n := open(server); n > 8 {
		t.Errorf("%d connections are open", n)
	}
}

// TestConnectionsOfOneAddress: API servers may have the same address as unknown clients. They are always let in.
func TestConnectionsOfOneAddress(t *testing.T) {
	server := started(t, few(8))
	for range 3 {
		for range 10 {
			stranger(t, server, "127.0.0.1")
		}
		ask(t, server, caller(t, "127.0.0.1"))
	}
}

func open(server *Server) int {
	server.connections.lock.Lock()
	defer server.connections.lock.Unlock()
	return len(server.connections.open)
}

// TestWhoIsJudgedStays: a request that has been read in full is answered, however many connections come.
func TestWhoIsJudgedStays(t *testing.T) {
	server := started(t, few(4))
	asked, answer := make(chan struct{}), make(chan struct{})
	server.Register("/slow", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		echo(w, r)
	}))
	first := stranger(t, server, "127.0.0.2")
	fmt.Fprint(first, "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody")
	<-asked
	for range 20 {
		stranger(t, server, "127.0.0.2")
	}
	close(answer)
	if got, err := io.ReadAll(first); err != nil || !strings.HasSuffix(string(got), "body") {
		t.Errorf("answered %q, %v", got, err)
	}
}

// TestNoConnectionIsForgotten: wrong counts would close connections without need.
func TestNoConnectionIsForgotten(t *testing.T) {
	server := started(t, few(8))
	for range 20 {
		stranger(t, server, "127.0.0.2")
		ask(t, server, caller(t, "127.0.0.1"))
		_ = stranger(t, server, "127.0.0.3").Close()
	}
	eventually(t, "they are counted right", func() bool {
		server.connections.lock.Lock()
		defer server.connections.lock.Unlock()
		counted := map[string]int{}
		for _, connection := range server.connections.open {
			counted[connection.source]++
		}
		return fmt.Sprint(counted) == fmt.Sprint(server.connections.from) && counted["127.0.0.3"] == 0
	})
}

func TestOnlyHTTP1(t *testing.T) {
	server := started(t, few(8))
	connection, err := tls.Dial("tcp", server.Address(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if spoken := connection.ConnectionState().NegotiatedProtocol; spoken != "http/1.1" {
		t.Errorf("it speaks %q", spoken)
	}
}

// pipes is a listener without a network: with it, time is the time of synctest.
type pipes struct{ accept chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	conn, more := <-p.accept
	if !more {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowRequestsEnd: slow requests end, whatever part of them is slow.
func TestSlowRequestsEnd(t *testing.T) {
	config := &tls.Config{}
	identified(t)(config)
	for name, test := range map[string]struct {
		tls  bool
		send string
	}{
		"nothing":                              {},
		"no handshake":                         {tls: true},
		"part of a header":                     {send: "POST / HTTP/1.1\r\nHost: "},
		"part of a body":                       {send: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nbo"},
		"part of a body that nothing asks for": {send: "POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nbo"},
		"chunks":                               {send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := New(webhook.Options{})
				server.Register("/{$}", http.HandlerFunc(echo))
				listener := pipes{make(chan net.Conn)}
				serving := server.http(t.Context())
				client, accepted := net.Pipe()
				go func() { listener.accept <- accepted }()
				if test.tls {
					go func() { _ = serving.Serve(tls.NewListener(listener, config)) }()
				} else {
					go func() { _ = serving.Serve(listener) }()
				}
				began := time.Now()
				go func() { fmt.Fprint(client, test.send) }()
				_, _ = io.Copy(io.Discard, client) // until it is closed
				if took := time.Since(began); took > Patience+time.Second {
					t.Errorf("it lasts %s", took)
				}
				close(listener.accept)
			})
		})
	}
}

// TestHeadersAreSmall: nothing else bounds the headers that are being read.
func TestHeadersAreSmall(t *testing.T) {
	server := started(t, few(8))
	connection := stranger(t, server, "127.0.0.1")
	fmt.Fprintf(connection, "POST / HTTP/1.1\r\nHost: a\r\nX: %s\r\n", strings.Repeat("x", 3*mostHeader))
	if answer, _ := io.ReadAll(connection); !strings.Contains(string(answer), "431") {
		t.Errorf("a header without end is answered with %q", answer)
	}
}

// stalled sends so much of a body, and then nothing until it is interrupted.
type stalled struct {
	left int
	gone chan struct{}
}

func (s *stalled) Read(into []byte) (int, error) {
	if s.left == 0 {
		<-s.gone
		return 0, errors.New("interrupted")
	}
	n := min(len(into), s.left)
	s.left -= n
	return n, nil
}

// stall makes a body of so many bytes wait. The channel gets the error with which it ends.
func stall(ctx context.Context, b *bodies, size int) <-chan error {
	gone := make(chan error, 1)
	s := &stalled{size, make(chan struct{})}
	go func() {
		_, _, err := b.await(ctx, s, func() { close(s.gone) })
		gone <- err
	}()
	return gone
}

// TestWhatIsReadTakesRoom: what has been read of bodies is limited, and the body that has waited longest is dropped.
func TestWhatIsReadTakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), Patience)
		defer cancel()
		b := newBodies()
		var gone []<-chan error
		for range 200 { // more than there is room for
			gone = append(gone, stall(ctx, b, small))
			synctest.Wait()
		}
		if b.held > waitingBytes || b.held < waitingBytes-small {
			t.Errorf("%d bytes are held", b.held)
		}
		if err := <-gone[0]; !errors.Is(err, errTooMany) {
			t.Errorf("the first: %v", err)
		}
		if len(gone[199]) > 0 {
			t.Errorf("the last: %v", <-gone[199])
		}
		whole, leave, err := b.await(ctx, strings.NewReader("question"), func() {})
		if err != nil || string(whole) != "question" {
			t.Fatalf("one more: %q, %v", whole, err)
		}
		leave()
		if err := <-gone[199]; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the last, in the end: %v", err)
		}
		synctest.Wait()
		if b.held != 0 || b.waiting.Len() != 0 {
			t.Errorf("then %d bytes of %d bodies are held", b.held, b.waiting.Len())
		}
	})
}

// TestSmallBodiesHaveMemoryOfTheirOwn: a small body is decided, however many larger ones wait.
func TestSmallBodiesHaveMemoryOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), Patience)
		defer cancel()
		b := newBodies()
		for range 3 {
			go func() {
				if _, leave, err := b.await(ctx, bytes.NewReader(make([]byte, largest)), func() {}); err == nil {
					<-ctx.Done()
					leave()
				}
			}()
		}
		synctest.Wait()
		_, leave, err := b.await(ctx, bytes.NewReader(make([]byte, small/perByte)), func() {})
		if err != nil {
			t.Fatal(err)
		}
		leave()
		<-ctx.Done()
		synctest.Wait()
		if !b.small.TryAcquire(smallMemory) || !b.large.TryAcquire(largeMemory) {
			t.Error("then some memory is not free")
		}
	})
}

func TestBodiesThatAreTooLarge(t *testing.T) {
	for body, want := range map[string]int{
		strings.Repeat("x", largest):      http.StatusOK,
		strings.Repeat("x", largest+1):    http.StatusRequestEntityTooLarge,
		strings.Repeat(",", mostElements): http.StatusOK,
		strings.Repeat(",", mostElements) + strings.Repeat("x", largest-mostElements): http.StatusOK,
		strings.Repeat(",", mostElements+1):                                           http.StatusRequestEntityTooLarge,
	} {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		bounded{http.HandlerFunc(echo), newBodies()}.ServeHTTP(recorder, request)
		if recorder.Code != want {
			t.Errorf("%d bytes like %q are answered with %d", len(body), body[:1], recorder.Code)
		}
	}
}

// TestRequestsOutliveTheEndOfTheirServer: a manager that shuts down has requests in progress, and for a moment API servers send more on
// connections that exist. A webhook allows a request if its reads fail: no native write may pass for that.
func TestRequestsOutliveTheEndOfTheirServer(t *testing.T) {
	told, tell := context.WithCancel(t.Context())
	var err error
	hook := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tell()
		err = r.Context().Err()
	})
	request := httptest.NewRequestWithContext(told, http.MethodPost, "/", nil) // with the context that Server.http gives to requests
	bounded{hook, newBodies()}.ServeHTTP(httptest.NewRecorder(), request)
	if err != nil {
		t.Errorf("once its manager shuts down, a request is decided with %v", err)
	}
}

// TestAnswersComeInTime: the API server says for how long it waits, and a decision has a little less than that.
func TestAnswersComeInTime(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"timeout=3s": 2500 * time.Millisecond, "timeout=1s": time.Second * 5 / 6, "timeout=30s": Patience,
		"": Patience, "timeout=soon": Patience, "timeout=-3s": Patience,
	} {
		synctest.Test(t, func(t *testing.T) {
			var left time.Duration
			hook := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				deadline, _ := r.Context().Deadline()
				left = time.Until(deadline)
			})
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?"+query, nil)
			bounded{hook, newBodies()}.ServeHTTP(httptest.NewRecorder(), request)
			if left.Round(time.Microsecond) != want.Round(time.Microsecond) {
				t.Errorf("%q leaves %s for a decision, want %s", query, left, want)
			}
		})
	}
}
