// Command app is the test application: a server that answers with its version. The delays of its start, readiness and stop are
// configurable. It depends only on the standard library, so that its image stays small.
//
//	GET /             its version; ?for=2s keeps the request in flight that long
//	GET /ready        200 from READY_DELAY after it listens, 503 before
//	POST /allow /deny admission reviews: allowed, or denied with its version
//
// Environment: VERSION (set by its image), PORT (8080), START_DELAY, READY_DELAY, STOP_DELAY (Go durations, 0), TLS_DIR (serve TLS with the
// tls.crt and tls.key in it), CRASH (exit at once with code 1).
//
// For kubectl exec: "app version" prints the version, "app get URL" prints the answer of URL. For init containers: "app fill FOLDER" writes
// a file into FOLDER after START_DELAY. "app show FILE" prints the content of FILE.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetOutput(os.Stdout)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 0:
		return listen()
	case len(arguments) == 1 && arguments[0] == "version":
		fmt.Println(os.Getenv("VERSION"))
		return nil
	case len(arguments) == 2 && arguments[0] == "get":
		return get(os.Stdout, arguments[1])
	case len(arguments) == 2 && arguments[0] == "show":
		content, err := os.ReadFile(arguments[1])
		fmt.Print(string(content))
		return err
	case len(arguments) == 2 && arguments[0] == "fill":
		settings, err := settingsFromEnvironment()
		if err != nil {
			return err
		}
		return fill(arguments[1], settings.startDelay)
	}
	return fmt.Errorf("arguments %q are neither none, nor version, nor get URL, nor show FILE, nor fill FOLDER", arguments)
}

func listen() error {
	settings, err := settingsFromEnvironment()
	if err != nil {
		return err
	}
	if settings.crash {
		return fmt.Errorf("version %s crashes, as told by CRASH", settings.version)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !passes(ctx, settings.startDelay) {
		return nil
	}
	return serve(ctx, settings)
}

// passes waits for delay and reports whether it passed before ctx ended.
func passes(ctx context.Context, delay time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(delay):
		return true
	}
}

// serve answers requests until STOP_DELAY after ctx ends, and then until the last request in flight is answered.
func serve(ctx context.Context, settings settings) error {
	listener, err := net.Listen("tcp", ":"+settings.port)
	if err != nil {
		return err
	}
	log.Printf("version %s listens on :%s", settings.version, settings.port)
	server := &http.Server{Handler: handler(settings), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- accept(server, listener, settings.tlsDir) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Printf("version %s stops in %s", settings.version, settings.stopDelay)
	time.Sleep(settings.stopDelay)
	return server.Shutdown(context.Background())
}

func accept(server *http.Server, listener net.Listener, tlsDir string) error {
	if tlsDir == "" {
		return server.Serve(listener)
	}
	server.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return certificateIn(tlsDir)
	}}
	return server.ServeTLS(listener, "", "")
}

// certificateIn reads the certificate for each connection, because cert-manager may renew it at any moment, even just after it has issued
// it.
func certificateIn(folder string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	return &pair, err
}

func handler(settings settings) http.Handler {
	readyAt := time.Now().Add(settings.readyDelay)
	logged := http.NewServeMux()
	logged.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { answer(w, r, settings.version) })
	logged.HandleFunc("POST /allow", func(w http.ResponseWriter, r *http.Request) { review(w, r, settings.version, true) })
	logged.HandleFunc("POST /deny", func(w http.ResponseWriter, r *http.Request) { review(w, r, settings.version, false) })

	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if time.Now().Before(readyAt) {
			http.Error(w, "not ready before "+readyAt.Format(time.RFC3339), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s", r.Method, r.URL)
		logged.ServeHTTP(w, r)
	})
	return mux
}

// answer writes the version, after the time that the request asks for: so a test can have a request in flight.
func answer(w http.ResponseWriter, r *http.Request, version string) {
	if asked := r.FormValue("for"); asked != "" {
		delay, err := time.ParseDuration(asked)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		time.Sleep(delay)
	}
	fmt.Fprintln(w, version)
}
