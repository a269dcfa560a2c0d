package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stayput/stayput/internal/port"
)

// mostScrapes is how many requests of metrics are answered at a time.
const mostScrapes = 4

// addPorts has the manager serve metrics and health. Those of controller-runtime would serve any number of connections.
func addPorts(m manager.Manager, o options, live, ready checks) error {
	for _, serve := range []struct {
		name, address string
		handler       http.Handler
	}{{"metrics", o.metricsAddress, metricsHandler()}, {"health", o.healthAddress, healthHandler(live, ready)}} {
		if serve.address == "" || serve.address == "0" {
			continue
		}
		server, err := port.Plain(serve.name, serve.address, serve.handler)
		if err != nil {
			return err
		}
		if err := m.Add(server); err != nil {
			return err
		}
	}
	return nil
}

func metricsHandler() http.Handler {
	paths := http.NewServeMux()
	paths.Handle("/metrics", promhttp.HandlerFor(metrics.Registry,
		promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: mostScrapes}))
	return paths
}

// checks have names that say what is right. A failing answer has only the names, which internal/check reads.
type checks map[string]healthz.Checker

func healthHandler(live, ready checks) http.Handler {
	paths := http.NewServeMux()
	for path, of := range map[string]checks{"/healthz": live, "/readyz": ready} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: of})
		paths.Handle(path, handler)
		paths.Handle(path+"/", handler) // one check alone
	}
	return paths
}
