package load

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

const rate = 200

// underLoad sends requests to a server for a moment.
func underLoad(t *testing.T, handler http.HandlerFunc) (Traffic, int64) {
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
	l := Start(t.Context(), server.URL, rate)
	time.Sleep(time.Second)
	return l.End(), connections.Load()
}

func TestLoadKeepsItsRateAndHalfItsConnections(t *testing.T) {
	count, connections := underLoad(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("v1\n")) })
	if count.Lost != 0 || count.OK != count.Sent || count.Versions["v1"] != count.OK {
		t.Errorf("a server that answers everything: %s", count)
	}
	if count.Sent < rate*8/10 {
		t.Errorf("%d requests in %.1fs, the rate is %d", count.Sent, count.Seconds, rate)
	}
	if connections > int64(count.Sent)*7/10 {
		t.Errorf("%d connections for %d requests, half of which keep theirs", connections, count.Sent)
	}
}

func TestLoadDoesNotWaitForSlowAnswers(t *testing.T) {
	count, _ := underLoad(t, func(_ http.ResponseWriter, _ *http.Request) { time.Sleep(time.Second) })
	if count.Sent < rate*8/10 || count.Lost != 0 {
		t.Errorf("every answer takes a second: %s", count)
	}
}

// TestLoadKnowsTheFirstLoss: the first request that is lost is answered after others that are lost, too.
func TestLoadKnowsTheFirstLoss(t *testing.T) {
	var number atomic.Int64
	var slow, quick atomic.Pointer[time.Time]
	count, _ := underLoad(t, func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now()
		switch n := number.Add(1); {
		case n == 10:
			slow.Store(&now)
			time.Sleep(time.Second / 2)
		case n < 20:
			return
		default:
			quick.CompareAndSwap(nil, &now)
		}
		http.Error(w, "too busy", http.StatusServiceUnavailable)
	})
	if first := count.FirstLost; first.IsZero() || first.After(*slow.Load()) || !first.Before(*quick.Load()) {
		t.Errorf("the first loss was sent at %s, and the first two arrived at %s and %s: %s", first, slow.Load(), quick.Load(), count)
	}
}

func TestLoadCountsWhatIsLost(t *testing.T) {
	var number atomic.Int64
	count, _ := underLoad(t, func(w http.ResponseWriter, _ *http.Request) {
		if number.Add(1)%2 == 0 {
			http.Error(w, "too busy", http.StatusServiceUnavailable)
		}
	})
	if count.Lost < count.Sent/3 || count.OK+count.Lost != count.Sent {
		t.Errorf("every other answer is an error: %s", count)
	}
	if len(count.Failures) != failuresListed || !strings.Contains(count.String(), "503 Service Unavailable: too busy") {
		t.Errorf("the losses are not told: %s", count)
	}
}

func TestLoadEndsByItself(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	l := Start(ctx, server.URL, rate)
	cancel()
	l.sender.Wait()
}

func TestStrangersComeBack(t *testing.T) {
	var announced atomic.Int64
	enough := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength == AnnouncedSize && announced.Add(1) == 6 {
			close(enough)
		}
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	ctx, end := context.WithCancel(t.Context())
	began := make(chan int)
	go func() { began <- Strangers(ctx, []string{server.Listener.Addr().String()}, 3) }()
	<-enough // two requests of each, or more
	end()
	if began := <-began; began < 6 {
		t.Errorf("%d requests were begun, want 6 at least", began)
	}
}
