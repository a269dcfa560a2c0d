package port

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// plain returns the address of a plain server that sends back what it is sent.
func plain(t *testing.T) (address string) {
	t.Helper()
	server, err := Plain("echo", "127.0.0.1:0", http.HandlerFunc(echo))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Start(t.Context()) }()
	t.Cleanup(func() { // the context of t is cancelled just before
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server.Listener.Addr().String()
}

func dialled(t *testing.T, source, address string) net.Conn {
	t.Helper()
	connection, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// TestPlainConnectionsOfStrangersCloseTheirOwn: a kubelet is answered, however many connections a stranger keeps open.
func TestPlainConnectionsOfStrangersCloseTheirOwn(t *testing.T) {
	address := plain(t)
	var strangers []net.Conn
	for range 2 * mostPlain {
		strangers = append(strangers, dialled(t, "127.0.0.2", address))
	}
	_ = strangers[0].SetReadDeadline(time.Now().Add(Patience / 2)) // before the server gives up a connection without a request
	if _, err := strangers[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("the first connection of %d of a stranger is still open: %v", len(strangers), err)
	}
	kubelet := dialled(t, "127.0.0.1", address)
	fmt.Fprint(kubelet, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody")
	if got, err := io.ReadAll(kubelet); err != nil || !strings.HasSuffix(string(got), "body") {
		t.Errorf("the kubelet is answered %q, %v", got, err)
	}
}

func TestPlainHeadersAreSmall(t *testing.T) {
	connection := dialled(t, "127.0.0.1", plain(t))
	fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: a\r\nX: %s\r\n", strings.Repeat("x", 3*mostHeader))
	if answer, _ := io.ReadAll(connection); !strings.Contains(string(answer), "431") {
		t.Errorf("a header without end is answered with %q", answer)
	}
}

func TestPlainAddressInUse(t *testing.T) {
	if _, err := Plain("echo", plain(t), nil); err == nil || !strings.HasPrefix(err.Error(), "echo: ") {
		t.Errorf("the error is %v", err)
	}
}
