// Package load sends requests to a server at a fixed rate and counts those that are lost.
package load

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
	keepers         = 20 // clients that keep their connection
	requestPatience = 5 * time.Second
	// patience limits a load that is not stopped.
	patience       = 10 * time.Minute
	failuresListed = 10
)

// Load sends requests to one URL at a fixed rate, however long the answers take: an open loop, so a server that hangs is not spared. Every
// other request opens its own connection. The others use kept connections in turns. When a server closes a kept connection before it has
// answered anything, net/http's Transport repeats a GET on another connection: clients do that as well, so it is no loss
// (pkg.go.dev/net/http#Transport).
type Load struct {
	url     string
	rate    int
	Started time.Time // when the load began
	stop    context.CancelFunc
	sender  sync.WaitGroup
	pending sync.WaitGroup
	fresh   *http.Client
	keepers []*http.Client

	mutex sync.Mutex
	count Traffic
}

// Traffic is the outcome of the requests.
type Traffic struct {
	Sent, OK, Lost int
	FirstLost      time.Time      // when the first of the lost requests was sent
	Versions       map[string]int // answers by their text, the version of the test application
	Failures       []string       // the first few, with their times
	Seconds        float64        // during which requests were sent
}

// Start sends so many requests a second until End is called or ctx ends.
func Start(ctx context.Context, url string, rate int) *Load {
	ctx, stop := context.WithTimeout(ctx, patience)
	l := &Load{
		url:     url,
		rate:    rate,
		Started: time.Now(),
		stop:    stop,
		fresh:   &http.Client{Timeout: requestPatience, Transport: &http.Transport{DisableKeepAlives: true}},
		count:   Traffic{Versions: map[string]int{}},
	}
	for range keepers {
		l.keepers = append(l.keepers, &http.Client{Timeout: requestPatience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}})
	}
	l.sender.Go(func() { l.run(ctx) })
	return l
}

// run sends each request when it is due. Late requests are sent at once.
func (l *Load) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for number := 0; ; number++ {
		timer.Reset(time.Until(l.Started.Add(time.Duration(number) * time.Second / time.Duration(l.rate))))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		l.pending.Go(func() { l.send(number) })
	}
}

// send sends a request whose answer takes a moment, so that some requests are always in flight. The end of the load does not cancel it: End
// waits for the requests that were sent.
func (l *Load) send(number int) {
	client, kind := l.client(number)
	from := time.Now()
	version, err := Ask(client, l.url+"/?for=20ms")
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.count.Sent++
	if err == nil {
		l.count.OK++
		l.count.Versions[version]++
		return
	}
	l.count.Lost++
	if l.count.FirstLost.IsZero() || from.Before(l.count.FirstLost) {
		l.count.FirstLost = from
	}
	if len(l.count.Failures) < failuresListed {
		l.count.Failures = append(l.count.Failures, fmt.Sprintf("%s (%.2fs after the start, took %.2fs), %s connection: %v",
			from.Format("15:04:05.000"), from.Sub(l.Started).Seconds(), time.Since(from).Seconds(), kind, err))
	}
}

func (l *Load) client(number int) (client *http.Client, kind string) {
	if number%2 == 0 {
		return l.fresh, "new"
	}
	return l.keepers[number/2%keepers], "kept"
}

// Ask returns nil only for an answer 200 that was read to its end.
func Ask(client *http.Client, url string) (answer string, err error) {
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

// SoFar returns the counts of the requests that have been answered or lost.
func (l *Load) SoFar() Traffic {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	count := l.count
	count.Versions, count.Failures = maps.Clone(count.Versions), slices.Clone(count.Failures)
	return count
}

// End stops sending, waits at most requestPatience for the answers, and returns the counts of all requests.
func (l *Load) End() Traffic {
	l.stop()
	l.sender.Wait()
	seconds := time.Since(l.Started).Seconds()
	l.pending.Wait()
	for _, client := range append(l.keepers, l.fresh) {
		client.CloseIdleConnections()
	}
	count := l.SoFar()
	count.Seconds = seconds
	return count
}

func (t Traffic) String() string {
	text := fmt.Sprintf("%d requests in %.1fs, %d lost, answered by %v", t.Sent, t.Seconds, t.Lost, t.Versions)
	if len(t.Failures) > 0 {
		text += "; lost were\n  " + strings.Join(t.Failures, "\n  ")
	}
	if t.Lost > len(t.Failures) {
		text += fmt.Sprintf("\n  and %d more", t.Lost-len(t.Failures))
	}
	return text
}
