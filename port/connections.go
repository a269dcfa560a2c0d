package port

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections may be open: each takes some 40 KiB, and up to 60 with a header that is being read. API servers have some tens.
const mostConnections = 1024

// connections are those that are open. One too many closes another one that does nothing for us: of the address that has most of them, that which
// has waited longest, for a request or in the midst of one. So many connections shut out only what comes from where they come from.
type connections struct {
	most int
	lock sync.Mutex
	open map[net.Conn]*connection
	from map[string]int // how many, by address
}

type connection struct {
	source    string
	waits     time.Time // since when
	handlerOf bool      // its request has come and will be answered
}

func newConnections() *connections {
	return &connections{most: mostConnections, open: map[net.Conn]*connection{}, from: map[string]int{}}
}

// connectionKey is under which a request's context has what ends the waiting of its connection.
type connectionKey struct{}

// enter takes a new connection in, and returns the context of its requests.
func (c *connections) enter(ctx context.Context, conn net.Conn) context.Context {
	c.lock.Lock()
	defer c.lock.Unlock()
	entered := &connection{source: sourceOf(conn), waits: time.Now()}
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

// note follows what becomes of a connection.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.lock.Lock()
	defer c.lock.Unlock()
	notedSurge := c.open[conn]
	switch {
	case notedSurge == nil: // closed by us
	case state == http.StateClosed:
		c.forget(conn)
	case state != http.StateNew:
		notedSurge.waits, notedSurge.handlerOf = time.Now(), false
	}
}

// closeOne does not say goodbye, for which TLS may have to wait.
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

// sourceOf is the address without its port.
func sourceOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return ""
	}
	return host
}

// isJudged has the connection of the request stay open.
func isJudged(ctx context.Context) {
	if decided, is := ctx.Value(connectionKey{}).(func()); is {
		decided()
	}
}
