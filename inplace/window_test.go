package inplace

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func TestWindowAt(t *testing.T) {
	const layout = "Mon 2006-01-02 15:04 MST"
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		now, err := time.ParseInLocation("2006-01-02 15:04", text, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	// 2026-11-28 is a Saturday. Clocks go forward on 2026-03-29 at 02:00, and back on 2026-10-25 at 03:00.
	for _, test := range []struct{ window, now, open, changes string }{
		{"", "2026-11-28 03:00", "open", ""},
		{"always", "2026-11-28 03:00", "open", ""},
		{"Sat 02:00-04:00 Europe/Berlin", "2026-11-28 01:59", "closed", "Sat 2026-11-28 02:00 CET"},
		{"Sat 02:00-04:00 Europe/Berlin", "2026-11-28 02:00", "open", "Sat 2026-11-28 04:00 CET"},
		{"Sat 02:00-04:00 Europe/Berlin", "2026-11-28 03:59", "open", "Sat 2026-11-28 04:00 CET"},
		{"Sat 02:00-04:00 Europe/Berlin", "2026-11-28 04:00", "closed", "Sat 2026-12-05 02:00 CET"},
		{"Sat 02:00-04:00", "2026-11-28 03:30", "open", "Sat 2026-11-28 05:00 CET"},
		{"02:00-04:00 Europe/Berlin", "2026-11-28 05:00", "closed", "Sun 2026-11-29 02:00 CET"},
		{"00:00-24:00 UTC", "2026-11-28 05:00", "open", ""},
		{"Mon-Fri 22:00-02:00 Europe/Berlin", "2026-11-28 01:00", "open", "Sat 2026-11-28 02:00 CET"},
		{"Mon-Fri 22:00-02:00 Europe/Berlin", "2026-11-29 01:00", "closed", "Mon 2026-11-30 22:00 CET"},
		{"Fri-Mon,Wed 10:00-11:00 Europe/Berlin", "2026-11-28 12:00", "closed", "Sun 2026-11-29 10:00 CET"},
		{"Fri-Mon,Wed 10:00-11:00 Europe/Berlin", "2026-11-30 12:00", "closed", "Wed 2026-12-02 10:00 CET"},
		{"Sat 02:00-04:00 Europe/Berlin; Sat 03:00-06:00 Europe/Berlin", "2026-11-28 02:30", "open", "Sat 2026-11-28 06:00 CET"},
		{"Sat 02:00-04:00 Europe/Berlin;Sun 03:00-06:00 UTC", "2026-11-28 04:30", "closed", "Sun 2026-11-29 04:00 CET"},
		{"Sun 02:00-04:00 Europe/Berlin", "2026-03-29 00:30", "closed", "Sun 2026-03-29 03:00 CEST"}, // 02:00 does not exist
		{"Sun 02:00-03:00 Europe/Berlin", "2026-03-29 00:30", "closed", "Sun 2026-04-05 02:00 CEST"}, // nor does any of it
		{"Sun 02:00-03:00 Europe/Berlin", "2026-03-22 03:30", "closed", "Sun 2026-04-05 02:00 CEST"},
		{"Sun 01:00-05:00 Europe/Berlin", "2026-03-29 04:59", "open", "Sun 2026-03-29 05:00 CEST"},
		{"Sun 01:00-05:00 Europe/Berlin", "2026-10-25 04:59", "open", "Sun 2026-10-25 05:00 CET"},
		{"Sun 01:00-05:00 Europe/Berlin", "2026-10-25 00:59", "closed", "Sun 2026-10-25 01:00 CEST"},
		{"Sun 01:30-02:30 Europe/Berlin", "2026-03-29 01:45", "open", "Sun 2026-03-29 03:00 CEST"},
		// In New York clocks go forward on 2026-03-08 at 02:00, which is 08:00 in Berlin.
		{"Sun 02:00-04:00 America/New_York", "2026-03-08 07:30", "closed", "Sun 2026-03-08 08:00 CET"},
		{"Sun 01:30-02:30 America/New_York", "2026-03-08 07:00", "closed", "Sun 2026-03-08 07:30 CET"},
		{"Sun 01:30-02:30 America/New_York", "2026-03-08 07:45", "open", "Sun 2026-03-08 08:00 CET"},
		{"Sun 02:00-03:00 America/New_York", "2026-03-08 07:30", "closed", "Sun 2026-03-15 07:00 CET"},
	} {
		kept, changes := Window(test.window).Keeping(Partition{}, at(test.now))
		got := map[bool]string{true: "open", false: "closed"}[kept == Partition{}]
		until := ""
		if !changes.IsZero() {
			until = changes.In(berlin).Format(layout)
		}
		if got != test.open || until != test.changes {
			t.Errorf("%q is %s on %s until %q, want %s until %q", test.window, got, test.now, until, test.open, test.changes)
		}
	}
}

func TestWindowFlaws(t *testing.T) {
	for window, want := range map[Window]string{
		"Sat 02:00-04:00 Europe/Berlin":           "",
		" Mon-Fri,Sun 22:00-02:00 ; 12:00-13:00 ": "",
		"always":                        "",
		`""`:                            "write Sat 02:00-04:00 Europe/Berlin",
		"saturday 02:00-04:00":          "write Sat 02:00-04:00 Europe/Berlin",
		"Sat 2:00-4:00":                 "write Sat 02:00-04:00 Europe/Berlin",
		"Sat 02:00":                     "write Sat 02:00-04:00 Europe/Berlin",
		"Sat 02:00-25:00":               "write Sat 02:00-04:00 Europe/Berlin",
		"Sat 02:00-04:00;":              "write Sat 02:00-04:00 Europe/Berlin",
		"always; Sat 02:00-04:00":       "write Sat 02:00-04:00 Europe/Berlin",
		"Sat 02:00-02:00":               "write 00:00-24:00 for a whole day",
		"Sat 02:00-04:00 Europe/Nimmer": "write a name as Europe/Berlin or UTC",
		"Sat 02:00-04:00 Local":         "write a name as Europe/Berlin or UTC",
		Window("Sat 02:00-04:00" + strings.Repeat(" ", 250)): "write Sat 02:00-04:00 Europe/Berlin",
	} {
		kept, _ := window.Keeping(Partition{}, time.Now())
		if flaw := kept.WindowFlaw; (flaw == "") != (want == "") || !strings.Contains(flaw, want) {
			t.Errorf("%q: %q, want %q", window, flaw, want)
		}
		if want != "" && kept == (Partition{}) {
			t.Errorf("%q is open", window)
		}
	}
}

func TestWindowOf(t *testing.T) {
	says := func(value string) map[string]string { return map[string]string{AnnotationMaintenanceWindow: value} }
	for _, test := range []struct {
		annotations map[string]string
		want        Window
	}{
		{nil, ""}, {says("a"), "a"}, {says(""), `""`},
	} {
		if got := WindowOf(test.annotations); got != test.want {
			t.Errorf("%v: %q, want %q", test.annotations, got, test.want)
		}
	}
}

// TestNoWindowCostsNothing: every plan and every admission request asks for the window.
func TestNoWindowCostsNothing(t *testing.T) {
	now := time.Now()
	if allocations := testing.AllocsPerRun(10, func() { Settings{}.During("", now) }); allocations > 0 {
		t.Errorf("without a window %v allocations are made", allocations)
	}
}

// TestAClosedWindowKeepsAllPods: it counts besides the partition, and says until when.
func TestAClosedWindowKeepsAllPods(t *testing.T) {
	saturday := time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		window    Window
		partition string
		keeps     int
		where     string
	}{
		{"", "1", 1, "at partition 1"},
		{"Sat 02:00-04:00", "1", 1, "at partition 1"},
		{"Sat 04:00-05:00", "1", 4, "for the maintenance window, which opens on Sat 2026-11-28 04:00 UTC"},
		{"Sat 05:00-06:00 Europe/Berlin", "", 4, "for the maintenance window, which opens on Sat 2026-11-28 05:00 CET"},
		{"never", "1", 4, "for annotation stayput.dev/maintenance-window: "},
	} {
		partition, _ := test.window.Keeping(Partition{Value: test.partition}, saturday)
		if keeps := partition.Keeps(4); keeps != test.keeps || !strings.HasPrefix(partition.Where(), test.where) {
			t.Errorf("%q keeps %d of 4 pods, %q; want %d, %q", test.window, keeps, partition.Where(), test.keeps, test.where)
		}
		if flawed := partition.Flaw() != ""; flawed != (test.window == "never") || partition.ByWindow() != (test.keeps == 4) ||
			partition.Alone() != (Partition{Value: test.partition}) {
			t.Errorf("%q is flawed: %t, by a window: %t", test.window, flawed, partition.ByWindow())
		}
	}
}
