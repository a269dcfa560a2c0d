package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

const threePanels = `{"panels": [
  {"title": "Moved", "type": "stat", "gridPos": {"x": 0, "y": 0, "w": 4, "h": 4},
   "targets": [{"expr": "sum(increase(moved{cluster=~\"$cluster\"}[$__range]))", "legendFormat": "pods"}]},
  {"title": "Latency", "type": "timeseries", "gridPos": {"x": 0, "y": 4, "w": 12, "h": 8}, "fieldConfig": {"defaults": {"unit": "s"}},
   "targets": [{"expr": "rate(latency{namespace=~\"$namespace\"}[$__rate_interval])", "legendFormat": "{{webhook}} 99 %"}]},
  {"title": "Failures", "type": "timeseries", "gridPos": {"x": 12, "y": 4, "w": 12, "h": 8}, "targets": [{"expr": "failed"}]}
]}`

// TestDashboard draws three panels: a number, a line, and one of which Prometheus knows nothing.
func TestDashboard(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin, _ := strconv.Atoi(r.FormValue("start"))
		end, _ := strconv.Atoi(r.FormValue("end"))
		asked = append(asked, fmt.Sprintf("%s: %d s, every %s s", r.FormValue("query"), end-begin, r.FormValue("step")))
		answer := ""
		if !strings.Contains(r.FormValue("query"), "failed") {
			answer = fmt.Sprintf(`{"metric": {"webhook": "/mutate"}, "values": [[%d, "1"], [%d, "NaN"], [%d, "41.8"]]}`, begin, begin+5, begin+10)
		}
		fmt.Fprintf(w, `{"data": {"result": [%s]}}`, answer)
	}))
	defer server.Close()
	folder := t.TempDir()
	from, to := filepath.Join(folder, "dashboard.json"), filepath.Join(folder, "dashboard.svg")
	if err := os.WriteFile(from, []byte(threePanels), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"dashboard", from, server.URL, "5", to}); err != nil {
		t.Fatal(err)
	}
	want := `sum(increase(moved{cluster=~".*"}[5m])): 300 s, every 5 s
rate(latency{namespace=~".*"}[1m]): 300 s, every 5 s
failed: 300 s, every 5 s`
	if got := strings.Join(asked, "\n"); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
	drawn, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{">Moved<", ">42<", ">pods<", ">Latency<", ">/mutate 99 %<", ">40 s<", ">5 min<", ">Failures<", ">No data<"} {
		if !strings.Contains(string(drawn), part) {
			t.Errorf("%s is not in the picture", part)
		}
	}
}

func TestDashboardOfAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error": "parse error"}`) }))
	defer server.Close()
	if _, err := (source{address: server.URL, minutes: 10}).ask("sum("); err == nil || err.Error() != "parse error" {
		t.Errorf("got %v, want the error of Prometheus", err)
	}
}

// TestColoured has more lines than the legend names: those with the highest values are named, the others grey and below.
func TestColoured(t *testing.T) {
	var p panel
	for _, peak := range []float64{7, 1, 6, 2, 5, 3, 4} {
		p.lines = append(p.lines, line{name: fmt.Sprint(peak), points: plotter.XYs{{Y: peak}}})
	}
	p.lines = append(p.lines, line{name: "without values"})
	var got []string
	for _, l := range p.coloured() {
		got = append(got, fmt.Sprint(l.name, l.colour == grey))
	}
	if want := "1true 2true 3false 4false 5false 6false 7false"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnbroken(t *testing.T) {
	for points, want := range map[string]string{"": "", "0 1 2": "[0 1 2]", "0 1 4 5 9": "[0 1] [4 5] [9]"} {
		var given plotter.XYs
		for _, x := range strings.Fields(points) {
			at, _ := strconv.ParseFloat(x, 64)
			given = append(given, plotter.XY{X: at})
		}
		var got []string
		for _, part := range unbroken(given, 1.5) {
			var at []string
			for _, p := range part {
				at = append(at, fmt.Sprint(p.X))
			}
			got = append(got, "["+strings.Join(at, " ")+"]")
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%q: got %s, want %s", points, all, want)
		}
	}
}
