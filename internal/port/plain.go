package port

import (
	"fmt"
	"net"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// mostPlain is how many connections to a plain port may be open. Kubelets and scrapers have one or two each.
const mostPlain = 64

// Plain returns a server of what needs no TLS, such as metrics or health, within the same limits on connections, headers and time as the
// webhooks' port. It listens already, and serves until the context ends.
func Plain(name, address string, handler http.Handler) (*manager.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	open := newConnections()
	open.most = mostPlain
	answered := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keepOpen(r.Context())
		handler.ServeHTTP(w, r)
	})
	return &manager.Server{Name: name, Listener: listener, Server: limited(open, answered)}, nil
}
