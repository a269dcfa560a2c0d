package port

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// Patience is how long a request may take at most to be read, to get a place and to be decided. It is a little less than the longest
	// timeoutSeconds, so that there is still an answer that says why. See patienceWith for requests of webhooks that wait less.
	Patience = 4500 * time.Millisecond
	// mostHeader is the largest size of a header. API servers send a few hundred bytes.
	mostHeader = 16 << 10
)

// Server serves webhooks over TLS, within limits. It uses the host, the port and the TLS settings of the options.
type Server struct {
	webhook.Server // keeps the paths
	options        webhook.Options
	connections    *connections
	bodies         *bodies
	address        atomic.Pointer[string]
}

// New returns a server that Start starts.
func New(options webhook.Options) *Server {
	options.WebhookMux = http.NewServeMux()
	return &Server{Server: webhook.NewServer(options), options: options, connections: newConnections(), bodies: newBodies()}
}

// Register makes the hook answer the requests for a path.
func (s *Server) Register(path string, hook http.Handler) {
	s.Server.Register(path, bounded{hook, s.bodies})
}

// Start serves until the context ends, and then answers the requests that it has received.
func (s *Server) Start(ctx context.Context) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port)))
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	address := listener.Addr().String()
	s.address.Store(&address)
	return (&manager.Server{Name: "webhooks", Listener: tls.NewListener(listener, s.tls()), Server: s.http(ctx)}).Start(ctx)
}

// Address returns the address at which the server listens; empty before it has started.
func (s *Server) Address() string {
	if address := s.address.Load(); address != nil {
		return *address
	}
	return ""
}

func (s *Server) tls() *tls.Config {
	config := &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS13}
	for _, set := range s.options.TLSOpts {
		set(config)
	}
	return config
}

// http returns a server that keeps its connections within limits, and the header and the time of each request.
func (s *Server) http(ctx context.Context) *http.Server {
	first := new(http.Protocols)
	first.SetHTTP1(true)
	return &http.Server{
		Handler:      s.options.WebhookMux,
		BaseContext:  func(net.Listener) context.Context { return ctx },
		Protocols:    first,
		ReadTimeout:  Patience, // of the TLS handshake, too
		WriteTimeout: Patience + time.Second,
		// Longer than API servers keep a connection that they do not use (90 s, client-go's http.Transport), so that they close it: a request
		// is lost if the server closes the connection at the same moment.
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: mostHeader,
		ErrorLog:       log.New(errorLog{crlog.Log.WithName("port")}, "", 0),
		ConnState:      s.connections.note,
	}
}

// StartedChecker returns a check that the port answers TLS. The check shows no certificate: a server that requires one has still
// answered.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		address := s.Address()
		if address == "" {
			return errors.New("the webhook server has not been started yet")
		}
		dialer := &net.Dialer{Timeout: Patience}
		connection, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{InsecureSkipVerify: true}) // only whether it answers
		if err != nil {
			return fmt.Errorf("the webhook port does not answer: %w", err)
		}
		return connection.NetConn().Close()
	}
}

// errorLog logs what net/http reports. Unknown clients may make any number of handshakes that fail.
type errorLog struct{ logr.Logger }

// Write logs a line.
func (c errorLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "TLS handshake error") {
		c.V(1).Info(text)
	} else {
		c.Error(nil, text)
	}
	return len(line), nil
}
