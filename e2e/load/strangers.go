package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// AnnouncedSize is the size of the bodies that Strangers announce: just below the most that an API server sends to a webhook.
const AnnouncedSize = 7<<20 - 1

// slowly is the interval at which a connection sends a few bytes of its body.
const slowly = time.Second

// Strangers keeps so many connections open to each address until ctx ends. Each announces a large body, and sends 13 bytes of it a second.
// A connection that the server closes is opened again. Strangers returns the number of requests begun, after all have ended.
func Strangers(ctx context.Context, addresses []string, each int) int {
	var began atomic.Int64
	var strangers sync.WaitGroup
	for _, address := range addresses {
		for range each {
			strangers.Go(func() {
				for ctx.Err() == nil {
					began.Add(1)
					annoy(ctx, address)
				}
			})
		}
	}
	strangers.Wait()
	return int(began.Load())
}

// annoy returns when the server closes the connection, or ctx ends.
func annoy(ctx context.Context, address string) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		wait(ctx, slowly)
		return
	}
	defer func() { _ = connection.Close() }() // the server may have closed it
	fmt.Fprintf(connection, "POST /validate-workload HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		AnnouncedSize)
	for wait(ctx, slowly) {
		if _, err := connection.Write([]byte(`{"kind":"Admi`)); err != nil {
			return
		}
	}
}

// wait reports whether ctx has not ended after that time.
func wait(ctx context.Context, long time.Duration) bool {
	select {
	case <-time.After(long):
		return true
	case <-ctx.Done():
		return false
	}
}
