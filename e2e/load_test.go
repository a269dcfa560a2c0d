package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	loadRate        = 200 // requests a second
	loadKeepers     = 20  // clients that keep their connection
	requestPatience = 5 * time.Second
	// loadPatience bounds a load that nobody stops.
	loadPatience   = 10 * time.Minute
	failuresListed = 10
)

// load sends requests to one URL at a fixed rate, however long the answers take: an open loop, so a server that hangs is not spared.
// Every other request opens a connection of its own; the rest take turns on connections that are kept. When a server closes a kept
// connection before it has answered anything, net/http's Transport sends a GET again on another one: that is what clients do,
// and so no loss (pkg.go.dev/net/http#Transport).
type load struct {
	url     string
	started time.Time
	stop    context.CancelFunc
	sender  sync.WaitGroup
	pending sync.WaitGroup
	fresh   *http.Client
	keepers []*http.Client

	mutex sync.Mutex
	count traffic
}

// traffic is what became of the requests.
type traffic struct {
	sent, ok, lost int
	versions       map[string]int // answers by their text, the version of the test application
	failures       []string       // the first few, with their times
	seconds        float64        // during which requests were sent
}

// startLoad sends requests until end is called or ctx ends.
func startLoad(ctx context.Context, url string) *load {
	ctx, stop := context.WithTimeout(ctx, loadPatience)
	l := &load{
		url:     url,
		started: time.Now(),
		stop:    stop,
		fresh:   &http.Client{Timeout: requestPatience, Transport: &http.Transport{DisableKeepAlives: true}},
		count:   traffic{versions: map[string]int{}},
	}
	for range loadKeepers {
		l.keepers = append(l.keepers, &http.Client{Timeout: requestPatience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}})
	}
	l.sender.Go(func() { l.run(ctx) })
	return l
}

// run sends each request when it is due; those that are late are sent at once.
func (l *load) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for number := 0; ; number++ {
		timer.Reset(time.Until(l.started.Add(time.Duration(number) * time.Second / loadRate)))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		l.pending.Go(func() { l.send(number) })
	}
}

// send asks for an answer that takes a moment, so that some requests are always in flight. It has nothing to do with the end of
// the load: what was sent is waited for.
func (l *load) send(number int) {
	client, kind := l.client(number)
	from := time.Now()
	version, err := ask(client, l.url+"/?for=20ms")
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.count.sent++
	if err == nil {
		l.count.ok++
		l.count.versions[version]++
		return
	}
	l.count.lost++
	if len(l.count.failures) < failuresListed {
		l.count.failures = append(l.count.failures, fmt.Sprintf("%s (%.2fs after the start, took %.2fs), %s connection: %v",
			from.Format("15:04:05.000"), from.Sub(l.started).Seconds(), time.Since(from).Seconds(), kind, err))
	}
}

func (l *load) client(number int) (client *http.Client, kind string) {
	if number%2 == 0 {
		return l.fresh, "new"
	}
	return l.keepers[number/2%loadKeepers], "kept"
}

// ask is nil only for an answer 200 that was read to its end.
func ask(client *http.Client, url string) (answer string, err error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return strings.TrimSpace(string(body)), nil
}

// soFar are the requests that have been answered or lost.
func (l *load) soFar() traffic {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	count := l.count
	count.versions, count.failures = maps.Clone(count.versions), slices.Clone(count.failures)
	return count
}

// end stops sending, waits for the answers, at most requestPatience, and returns what became of all requests.
func (l *load) end() traffic {
	l.stop()
	l.sender.Wait()
	seconds := time.Since(l.started).Seconds()
	l.pending.Wait()
	for _, client := range append(l.keepers, l.fresh) {
		client.CloseIdleConnections()
	}
	count := l.soFar()
	count.seconds = seconds
	return count
}

func (t traffic) String() string {
	text := fmt.Sprintf("%d requests in %.1fs, %d lost, answered by %v", t.sent, t.seconds, t.lost, t.versions)
	if len(t.failures) > 0 {
		text += "; lost were\n  " + strings.Join(t.failures, "\n  ")
	}
	if t.lost > len(t.failures) {
		text += fmt.Sprintf("\n  and %d more", t.lost-len(t.failures))
	}
	return text
}
