package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPorts asks the handlers of both ports as kubelets and scrapers do.
func TestPorts(t *testing.T) {
	well := func(*http.Request) error { return nil }
	broken := func(*http.Request) error { return errors.New("not yet") }
	for _, test := range []struct {
		handler http.Handler
		path    string
		code    int
		says    string
	}{
		{healthHandler(well, broken), "/healthz", http.StatusOK, "ok"},
		{healthHandler(well, broken), "/readyz", http.StatusInternalServerError, "webhooks"},
		{healthHandler(well, broken), "/readyz/webhooks", http.StatusInternalServerError, "not yet"},
		{healthHandler(broken, well), "/healthz/work-ends", http.StatusInternalServerError, "not yet"},
		{healthHandler(broken, well), "/readyz", http.StatusOK, "ok"},
		{healthHandler(well, well), "/metrics", http.StatusNotFound, ""},
		{metricsHandler(), "/metrics", http.StatusOK, "go_goroutines"},
		{metricsHandler(), "/debug/pprof/", http.StatusNotFound, ""},
	} {
		recorder := httptest.NewRecorder()
		test.handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil))
		if recorder.Code != test.code || !strings.Contains(recorder.Body.String(), test.says) {
			t.Errorf("%s is answered %d %.200q, want %d and %q", test.path, recorder.Code, recorder.Body, test.code, test.says)
		}
	}
}
