package port

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is how many connections may be open. Each takes some 40 KiB, and up to 60 KiB with a header that is being read. API
// servers have some tens.
const mostConnections = 1024

// connections are the open connections. One too many closes another one: of the address with the most connections, one that waits for a
// request before one in the middle of a request, and of these the one that has waited longest. So too many connections shut out only
// clients at the address that they come from.
type connections struct {
	most int
	lock sync.Mutex
	open map[net.Conn]*connection
	from map[string]int // how many, by address
}

type connection struct {
	source string
	since  time.Time
	busy   bool // in the middle of a request
}

func newConnections() *connections {
	return &connections{most: mostConnections, open: map[net.Conn]*connection{}, from: map[string]int{}}
}

// note takes the new state of a connection into account.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.lock.Lock()
	defer c.lock.Unlock()
	entered := c.open[conn]
	switch {
	case state == http.StateNew:
		entered = &connection{source: hostOf(conn.RemoteAddr().String()), since: time.Now()}
		c.open[conn] = entered
		if c.from[entered.source]++; len(c.open) > c.most {
			c.closeOne()
		}
	case entered == nil: // closed by closeOne
	case state == http.StateClosed:
		c.forget(conn)
	default:
		entered.since, entered.busy = time.Now(), state == http.StateActive
	}
}

// closeOne closes the connection below TLS: the closing message of TLS may have to wait.
func (c *connections) closeOne() {
	var chosen net.Conn
	for conn, candidate := range c.open {
		if chosen == nil || c.goesBefore(candidate, c.open[chosen]) {
			chosen = conn
		}
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
	if a.busy != b.busy {
		return b.busy
	}
	return a.since.Before(b.since)
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
