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
	well := checks{"all": func(*http.Request) error { return nil }}
	broken := checks{"all": well["all"], "caches": func(*http.Request) error { return errors.New("not yet") }}
	for _, test := range []struct {
		handler http.Handler
		path    string
		code    int
		says    string
	}{
		{healthHandler(well, broken), "/healthz", http.StatusOK, "ok"},
		{healthHandler(well, broken), "/readyz", http.StatusInternalServerError, "[-]caches failed"},
		{healthHandler(well, broken), "/readyz/caches", http.StatusInternalServerError, "not yet"},
		{healthHandler(broken, well), "/healthz/caches", http.StatusInternalServerError, "not yet"},
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
