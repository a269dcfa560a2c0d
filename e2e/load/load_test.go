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

// TestLoadKnowsTheFirstLoss: a slow answer that is lost comes after later ones that are, too.
func TestLoadKnowsTheFirstLoss(t *testing.T) {
	var number atomic.Int64
	began := time.Now()
	count, _ := underLoad(t, func(w http.ResponseWriter, _ *http.Request) {
		switch now := number.Add(1); {
		case now == rate/4:
			time.Sleep(time.Second / 2)
		case now < rate/2:
			return
		}
		http.Error(w, "too busy", http.StatusServiceUnavailable)
	})
	if first := count.FirstLost.Sub(began); first < time.Second/8 || first > time.Second/2 {
		t.Errorf("the first loss was sent after %s: %s", first, count)
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
