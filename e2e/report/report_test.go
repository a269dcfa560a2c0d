package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// some returns figures of a run in which in place takes twice as long as the floor and half as long as natively.
func some() figures {
	of := func(name string, s, w float64) way {
		return way{Name: name, Figures: []figure{{seconds, s}, {writes, w}, {deadlines, 0}}, Updated: []float64{s / 2, s},
			Steps: []float64{s / 4}}
	}
	all := figures{}
	for _, bench := range []string{daemonSet, four, fourServing, twenty, twentyServed, served, lingering, claimed, onPorts,
		simulatedDaemonSet(1000)} {
		all[bench] = result{Commit: "abc", Ways: []way{of(native, 8, 10), of(inPlace, 4, 8), of(floor, 2, 1)}}
	}
	// One API write more than the goal.
	all[twenty] = result{Commit: "abc", Ways: []way{of(native, 8, 10), of(inPlace, 4, 12), of(floor, 2, 1)}}
	for pods, cpu := range map[int]float64{300: 5, 3000: 7} {
		all[simulatedDeployment(pods)] = result{Ways: []way{
			{Name: inPlace, Figures: []figure{{milliseconds, cpu}, {seconds, 20}, {writes, 6}, {refused, 3}}},
			{Name: native, Figures: []figure{{seconds, 8}, {writes, 3}}},
		}}
	}
	for edit, took := range map[string]float64{"label": 1, "images": 6} {
		of := func(name string, s float64) way {
			return way{Name: name, Figures: []figure{
				{seconds, s}, {writes, s}, {refused, 1}, {otherTenant, s}, {meanUnready, s}, {bystanders, 15 * s}}}
		}
		all[workloads(100, edit)] = result{Ways: []way{of(alone, 2), of(native, 8), of(inPlace, took)}}
	}
	all[limits] = result{Ways: []way{
		{Name: noLimit, Figures: []figure{{seconds, 20}, {out, 100}}},
		{Name: limited, Figures: []figure{{seconds, 60}, {out, 10}, {meanUnready, 2}, {unfair, 1.1}}},
	}}
	all[born] = result{Ways: []way{{Name: "added", Figures: []figure{{"milliseconds of CREATE, p99", 4}}},
		{Name: "unlabelled", Figures: []figure{{"calls of webhooks", 1}}}}}
	all[resized] = result{Ways: []way{
		{Name: native, Figures: []figure{{seconds, 8}, {writes, 10}}},
		{Name: vpa, Figures: []figure{{seconds, 2}, {writes, 4}}, Updated: []float64{1, 2}},
	}}
	all[serving] = result{Ways: []way{
		{Name: "6 " + inPlace, Figures: []figure{{updates, 10}, {lost, 3}}}, {Name: "3 " + inPlace, Figures: []figure{{updates, 5}, {lost, 0}}},
	}}
	return all
}

func goalOf(t *testing.T, part string) goal {
	t.Helper()
	for _, g := range goals() {
		if strings.Contains(g.what, part) {
			return g
		}
	}
	t.Fatalf("no goal is about %q", part)
	return goal{}
}

func TestGoals(t *testing.T) {
	type row struct{ target, measured, verdict string }
	for part, want := range map[string]row{
		"DaemonSet of three nodes, no": {"≤ 1.2 × native", "0.5 × native (4 : 8)", "met"},
		"claim":                        {"0; ≤ 1.3 × floor", "0; 2 × floor (4 : 2)", "**not met**"},
		"1,000 nodes":                  {"≤ 1 × native; ≤ 0.9 × native", "0.5 × native (4 : 8); 0.8 × native (8 : 10)", "met"},
		"beyond drain":                 {"≤ 0.3 s; ≤ 1 s", "0.5 s; 0.5 s", "**not met**"},
		"of 3,000; beside":             {"≤ 12 ms; ≤ 1.2 × that of 300", "7 ms; 1.4 × that of 300", "**not met**"},
		"Deployment of 3,000, 10 %":    {"none", "2.5 × native (20 : 8); 2 × native (6 : 3); 3", ""}, // no goal
		"replicas: 6":                  {"0", "3", "**not met**"},
		"replicas: 3":                  {"0", "not measured", ""}, // five updates are not ten
		"100 Deployments of 10 simulated pods, label": {"≤ 0.2 × native; ≤ 0.6 × native; ≤ 1",
			"0.12 × native (1 : 8); 0.12 × native (1 : 8); 1", "met"},
		"tenant's update beside 100": {"≤ 0.5 × native; ≤ 0.5 × native", "0.12 × native (1 : 8); 0.75 × native (6 : 8)", "**not met**"},
		"GET beside 100":             {"≤ 80 ms; ≤ 80 ms", "15 ms; 90 ms", "**not met**"},
		"out of service":             {"≤ 10", "10", "met"},
		"slowest namespace":          {"none", "60 s; 2 s; 1.1 ×", ""},
		"CREATE of":                  {"≤ 5 ms; 0", "4 ms; 1", "**not met**"},
		"at rest":                    {"≤ 60 MiB", "not measured", ""},
		"10 s to stop":               {"≤ 1.1 × floor", "2 × floor (4 : 2)", "**not met**"},
		"images: mean":               {"≤ 2 × alone", "3 × alone (6 : 2)", "**not met**"},
	} {
		g, f := goalOf(t, part), some()
		got := row{g.target(), g.measured(f), g.verdict(f)}
		if got != want {
			t.Errorf("%s: %+v instead of %+v", part, got, want)
		}
	}
}

func TestGoalsOfNothing(t *testing.T) {
	for _, g := range goals() {
		if verdict := g.verdict(figures{}); verdict != "" {
			t.Errorf("%s is %s although nothing was measured", g.what, verdict)
		}
	}
}

func TestUnmet(t *testing.T) {
	unmet := unmet(some())
	for why, part := range map[cause]string{surged: "10 s to stop", ends: "claim", planning: "of 3,000; beside", unknown: "replicas: 6"} {
		if !strings.Contains(unmet[why], part) {
			t.Errorf("%q is missed for %s, which explains only %q", part, why, unmet[why])
		}
	}
	if got := unmet[refusing]; got != "API writes without events, refused ones included, 20 pods, 25 %, no Service" {
		t.Errorf("refusals are said to be why these are missed: %q", got)
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{3.0016: "3", 3.1: "3.1", 0.004: "0", 120.4: "120", 20: "20"} {
		if got := number(value); got != want {
			t.Errorf("%v is written as %s instead of %s", value, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	if got := quantile([]float64{3, 1, 2, 4}, 0.5); got != 2 {
		t.Errorf("the median of 1 to 4 is %v instead of 2", got)
	}
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestTicks(t *testing.T) {
	for most, want := range map[float64]string{7: "0 1 2 3 4 5 6 7", 20: "0 5 10 15 20", 2.6: "0 0.5 1 1.5 2 2.5", 95: "0 20 40 60 80"} {
		var labels []string
		for _, tick := range even(0, most) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("an axis up to %v has the ticks %q instead of %q", most, got, want)
		}
	}
}

func TestPage(t *testing.T) {
	folder := t.TempDir()
	drawn, err := draw(some(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := render(some(), drawn, "performance")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"| 0.5 × native (4 : 8); 2 × floor (4 : 2) |", "takes 20 s in place and 8 s natively",
		"](performance/updated-20.svg)",
		"](performance/cpu.svg)", "](performance/resized-12.svg)",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
	for _, d := range drawn {
		svg, err := os.ReadFile(filepath.Join(folder, d.File))
		if err != nil || !strings.Contains(string(svg), "<path") {
			t.Errorf("%s draws nothing: %v", d.File, err)
		}
	}
}

func TestCosts(t *testing.T) {
	text, err := costs(some())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"| " + daemonSet + " | 8 | 4 | 0.5 |", "| " + simulatedDeployment(3000) + " | 8 | **20** | **2.5** |",
		"| " + daemonSet + " | 10 | 8 | not measured |", "| 6, in place | 10 | not measured | 3 |",
		"| " + workloads(100, "label") + " | 8 | 1 | 0.12 |",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func TestReadmeGetsItsTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(path, []byte("# Title\n"+tableBegins+"old\n"+tableEnds+"more\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeReadme(some(), path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Title\n" + tableBegins + readmeTable(some()) + tableEnds + "more\n"; string(text) != want {
		t.Errorf("the README is %q instead of %q", text, want)
	}
	if table := readmeTable(some()); !strings.Contains(table, "| DaemonSet on three nodes, no Service | 8 s | 4 s |") {
		t.Errorf("the table is %s", table)
	}
	if table := readmeTable(some()); !strings.Contains(table, "| memory of the larger manager, 3,000 simulated pods | no manager | ") {
		t.Errorf("a native rollout needs no manager, and the table is %s", table)
	}
	if err := writeReadme(some(), "costs.md.tmpl"); err == nil {
		t.Error("a page without the two lines was written")
	}
}

func TestWhole(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 999.6: "1,000", 47408: "47,408", 12.4: "12", math.NaN(): "not measured"} {
		if got := whole(value); got != want {
			t.Errorf("%v is written as %s instead of %s", value, got, want)
		}
	}
}
