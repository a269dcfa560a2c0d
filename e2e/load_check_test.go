package e2e

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// underLoad sends requests to a server for a moment.
func underLoad(t *testing.T, handler http.HandlerFunc) (traffic, int64) {
	t.Helper()
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	l := startLoad(t.Context(), server.URL)
	time.Sleep(time.Second)
	return l.end(), connections.Load()
}

func TestLoadKeepsItsRateAndHalfItsConnections(t *testing.T) {
	count, connections := underLoad(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("v1\n")) })
	if count.lost != 0 || count.ok != count.sent || count.versions["v1"] != count.ok {
		t.Errorf("a server that answers everything: %s", count)
	}
	if count.sent < loadRate*8/10 {
		t.Errorf("%d requests in %.1fs, the rate is %d", count.sent, count.seconds, loadRate)
	}
	if connections > int64(count.sent)*7/10 {
		t.Errorf("%d connections for %d requests, half of which keep theirs", connections, count.sent)
	}
}

func TestLoadDoesNotWaitForSlowAnswers(t *testing.T) {
	count, _ := underLoad(t, func(_ http.ResponseWriter, _ *http.Request) { time.Sleep(time.Second) })
	if count.sent < loadRate*8/10 || count.lost != 0 {
		t.Errorf("every answer takes a second: %s", count)
	}
}

func TestLoadCountsWhatIsLost(t *testing.T) {
	var number atomic.Int64
	count, _ := underLoad(t, func(w http.ResponseWriter, _ *http.Request) {
		if number.Add(1)%2 == 0 {
			http.Error(w, "too busy", http.StatusServiceUnavailable)
		}
	})
	if count.lost < count.sent/3 || count.ok+count.lost != count.sent {
		t.Errorf("every other answer is an error: %s", count)
	}
	if len(count.failures) != failuresListed || !strings.Contains(count.String(), "503 Service Unavailable: too busy") {
		t.Errorf("the losses are not told: %s", count)
	}
}

func TestLoadEndsByItself(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	l := startLoad(ctx, server.URL)
	cancel()
	l.sender.Wait()
}
