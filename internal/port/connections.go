package port

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is how many connections may be open. Each takes some 40 KiB, and up to 60 KiB with a header that is being read. API
// servers have some tens.
const mostConnections = 1024

// connections are the open connections. One too many closes another one whose request is not being decided: of the address with the most
// connections, the one that has waited longest for a request, or in the middle of one. So too many connections shut out only clients at
// the address that they come from.
type connections struct {
	most int
	lock sync.Mutex
	open map[net.Conn]*connection
	from map[string]int // how many, by address
}

type connection struct {
	source    string
	waits     time.Time // since when
	handlerOf bool      // its request has been read and will be answered
}

func newConnections() *connections {
	return &connections{most: mostConnections, open: map[net.Conn]*connection{}, from: map[string]int{}}
}

// connectionKey is the key of the function, in the context of a request, that ends the waiting of its connection.
type connectionKey struct{}

// enter adds a new connection, and returns the context of its requests.
func (c *connections) enter(ctx context.Context, conn net.Conn) context.Context {
	c.lock.Lock()
	defer c.lock.Unlock()
	entered := &connection{source: hostOf(conn.RemoteAddr().String()), waits: time.Now()}
	c.open[conn] = entered
	c.from[entered.source]++
	if len(c.open) > c.most {
		c.closeOne()
	}
	return context.WithValue(ctx, connectionKey{}, func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		entered.handlerOf = true
	})
}

// note takes the new state of a connection into account.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.lock.Lock()
	defer c.lock.Unlock()
	entered := c.open[conn]
	switch {
	case entered == nil: // closed by closeOne
	case state == http.StateClosed:
		c.forget(conn)
	case state != http.StateNew:
		entered.waits, entered.handlerOf = time.Now(), false
	}
}

// closeOne closes the connection below TLS: the closing message of TLS may have to wait.
func (c *connections) closeOne() {
	var chosen net.Conn
	for conn, candidate := range c.open {
		if !candidate.handlerOf && (chosen == nil || c.goesBefore(candidate, c.open[chosen])) {
			chosen = conn
		}
	}
	if chosen == nil {
		return
	}
	c.forget(chosen)
	if over, is := chosen.(*tls.Conn); is {
		chosen = over.NetConn()
	}
	_ = chosen.Close() // it may be closed already
}

func (c *connections) goesBefore(a, b *connection) bool {
	if of, than := c.from[a.source], c.from[b.source]; of != than {
		return of > than
	}
	return a.waits.Before(b.waits)
}

func (c *connections) forget(conn net.Conn) {
	source := c.open[conn].source
	delete(c.open, conn)
	if c.from[source]--; c.from[source] == 0 {
		delete(c.from, source)
	}
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return host
}

// keepOpen notes that the request in the context is being decided, so that its connection stays open.
func keepOpen(ctx context.Context) {
	if decided, is := ctx.Value(connectionKey{}).(func()); is {
		decided()
	}
}
