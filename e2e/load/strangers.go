package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// VolumesFresh is the size of the bodies that Strangers announce: just below the most that an API server sends to a webhook.
const VolumesFresh = 7<<20 - 1

// slowly is how often a stranger sends a few bytes of its body.
const slowly = time.Second

// Strangers hold so many connections to each address for as long as ctx lasts: each announces a large body, and sends 13 bytes of it a second. One that is
// closed begins anew. They return how many requests they began when all have ended.
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
	defer func() { _ = connection.Close() }() // the server may have
	fmt.Fprintf(connection, "POST /validate-workload HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", VolumesFresh)
	for wait(ctx, slowly) {
		if _, err := connection.Write([]byte(`{"kind":"Admi`)); err != nil {
			return
		}
	}
}

// wait returns whether ctx still lasts after that time.
func wait(ctx context.Context, long time.Duration) bool {
	select {
	case <-time.After(long):
		return true
	case <-ctx.Done():
		return false
	}
}
