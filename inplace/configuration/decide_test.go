package configuration

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
)

// TestDecide has, line by line, what a workload's Record says, what there is now, at what second, and what is to be done. After a restart
// or a note the Record on the workload is what there was.
func TestDecide(t *testing.T) {
	const web, tls = "configmap/web", "certificate/tls"
	type look struct {
		second int
		now    Record
		want   string
	}
	at1, at2, at3, at4 := Record{web: "1"}, Record{web: "2"}, Record{web: "3"}, Record{web: "4"}
	for name, test := range map[string]struct {
		noted Record
		looks []look
	}{
		"first seen":    {nil, []look{{0, at1, "note"}, {9, at1, "nothing"}}},
		"nothing in it": {nil, []look{{0, Record{}, "note"}, {9, Record{}, "nothing"}}},
		"one change":    {at1, []look{{0, at2, "wait 5s for [configmap/web]"}, {5, at2, "restart for [configmap/web]"}, {6, at2, "nothing"}}},
		"taken back":    {at1, []look{{0, at2, "wait 5s for [configmap/web]"}, {1, at1, "nothing"}, {9, at1, "nothing"}}},
		"created":       {Record{web: ""}, []look{{0, at1, "wait 5s for [configmap/web]"}, {5, at1, "restart for [configmap/web]"}}},
		"deleted":       {at1, []look{{0, Record{web: ""}, "note"}, {9, Record{web: ""}, "nothing"}}},
		"deleted, and created anew": {at1, []look{{0, Record{web: ""}, "note"}, {2, at2, "wait 5s for [configmap/web]"},
			{7, at2, "restart for [configmap/web]"}}},
		"one deleted, one changed": {Record{web: "1", tls: "1"}, []look{{0, Record{web: "2", tls: ""}, "wait 5s for [configmap/web]"},
			{5, Record{web: "2", tls: ""}, "restart for [configmap/web]"}, {6, Record{web: "2", tls: ""}, "nothing"}}},
		"one more":        {at1, []look{{0, Record{web: "1", tls: "1"}, "note"}, {1, Record{web: "1", tls: "1"}, "nothing"}}},
		"one less":        {Record{web: "1", tls: "1"}, []look{{0, at1, "note"}, {1, at1, "nothing"}}},
		"one for another": {Record{tls: "1"}, []look{{0, at1, "note"}}},
		"one more, and a change": {at1, []look{{0, Record{web: "2", tls: "1"}, "wait 5s for [configmap/web]"},
			{5, Record{web: "2", tls: "1"}, "restart for [configmap/web]"}, {6, Record{web: "2", tls: "1"}, "nothing"}}},
		"a burst": {at1, []look{{0, at2, "wait 5s for [configmap/web]"}, {3, at3, "wait 5s for [configmap/web]"},
			{5, at3, "wait 3s for [configmap/web]"}, {8, at3, "restart for [configmap/web]"}, {9, at3, "nothing"}}},
		"a burst without an end": {at1, []look{{0, at2, "wait 5s for [configmap/web]"}, {4, at3, "wait 5s for [configmap/web]"},
			{8, at2, "wait 5s for [configmap/web]"}, {12, at3, "wait 5s for [configmap/web]"}, {16, at2, "wait 5s for [configmap/web]"},
			{20, at3, "wait 5s for [configmap/web]"}, {24, at2, "wait 5s for [configmap/web]"}, {28, at3, "wait 2s for [configmap/web]"},
			{30, at3, "restart for [configmap/web]"}}},
		"changes all the time": {at1, []look{{0, at2, "wait 5s for [configmap/web]"}, {5, at2, "restart for [configmap/web]"},
			{20, at3, "wait 45s for [configmap/web]"}, {65, at3, "restart for [configmap/web]"},
			{70, at2, "wait 1m55s for [configmap/web], often"}, {180, at4, "wait 5s for [configmap/web], often"},
			{185, at4, "restart for [configmap/web]"}, {186, at2, "wait 3m59s for [configmap/web], often"}}},
		"calm again": {at1, []look{{0, at2, "wait 5s for [configmap/web]"}, {5, at2, "restart for [configmap/web]"},
			{20, at3, "wait 45s for [configmap/web]"}, {65, at3, "restart for [configmap/web]"},
			{620, at2, "wait 5s for [configmap/web]"}, {625, at2, "restart for [configmap/web]"},
			{626, at3, "wait 59s for [configmap/web]"}}},
		"every 80 seconds": {at1, []look{{0, at2, "wait 5s for [configmap/web]"}, {5, at2, "restart for [configmap/web]"},
			{80, at3, "wait 5s for [configmap/web]"}, {85, at3, "restart for [configmap/web]"},
			{160, at2, "wait 45s for [configmap/web], often"}, {205, at2, "restart for [configmap/web]"},
			{240, at3, "wait 3m25s for [configmap/web], often"}, {445, at3, "restart for [configmap/web]"},
			{480, at2, "wait 7m25s for [configmap/web], often"}}},
		"almost calm": {at1, []look{{0, at2, "wait 5s for [configmap/web]"}, {5, at2, "restart for [configmap/web]"},
			{80, at3, "wait 5s for [configmap/web]"}, {85, at3, "restart for [configmap/web]"},
			{679, at2, "wait 5s for [configmap/web]"}, {684, at2, "restart for [configmap/web]"},
			{690, at3, "wait 3m54s for [configmap/web], often"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var memory Memory
			noted, began := test.noted, time.Unix(1_700_000_000, 0)
			for _, look := range test.looks {
				at := began.Add(time.Duration(look.second) * time.Second)
				decided := memory.Decide(noted, look.now, at)
				if got := told(decided); got != look.want {
					t.Fatalf("second %d: %s, want %s", look.second, got, look.want)
				}
				if decided.Restart {
					memory.Keeps(memory.Next(at))
				}
				if decided.Restart || decided.Note {
					noted = look.now
				}
			}
		})
	}
}

func told(d Decision) string {
	switch {
	case d.Note:
		return "note"
	case d.Restart:
		return fmt.Sprint("restart for ", d.Changed)
	case d.After > 0 && d.Often:
		return fmt.Sprint("wait ", d.After, " for ", d.Changed, ", often")
	case d.After > 0:
		return fmt.Sprint("wait ", d.After, " for ", d.Changed)
	}
	return "nothing"
}

// TestPausesEnd checks that changes without an end restart at least once an hour.
func TestPausesEnd(t *testing.T) {
	var memory Memory
	noted, at := Record{"configmap/web": "0"}, time.Unix(1_700_000_000, 0)
	var gaps []time.Duration
	for second, last := 0, at; len(gaps) < 9; second++ {
		at = at.Add(time.Second)
		now := Record{"configmap/web": fmt.Sprint(second + 1)}
		if memory.Decide(noted, now, at).Restart {
			memory.Keeps(memory.Next(at))
			gaps, last, noted = append(gaps, at.Sub(last)), at, now
		}
	}
	if got, want := fmt.Sprint(gaps[1:]), "[1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s]"; got != want {
		t.Errorf("restarts come %s apart, want %s", got, want)
	}
}

// TestALongWaitEndsWhenAllIsCalm: a change that has waited for ten minutes without another one is restarted for.
func TestALongWaitEndsWhenAllIsCalm(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	memory := Memory{Pace: Pace{Restarted: at, Apart: time.Hour}, changed: at}
	before, now := Record{"configmap/web": "1"}, Record{"configmap/web": "2"}
	for minute, want := range map[int]string{1: "wait 10m0s for [configmap/web], often", 11: "restart for [configmap/web]"} {
		memory := memory
		memory.Decide(before, now, at.Add(time.Minute))
		if got := told(memory.Decide(before, now, at.Add(time.Duration(minute)*time.Minute))); got != want {
			t.Errorf("minute %d: %s, want %s", minute, got, want)
		}
		if next := memory.Next(at.Add(11 * time.Minute)); next.Apart != apart {
			t.Errorf("after the calm, restarts are %s apart", next.Apart)
		}
	}
}

// TestANewLeaderKeepsThePace has what the workload says of the last restart, in text, and what a new leader does about a change that it
// sees ten minutes later.
func TestANewLeaderKeepsThePace(t *testing.T) {
	at := time.Date(2026, 11, 28, 12, 10, 0, 0, time.UTC)
	for said, want := range map[string]string{
		"":                               "wait 5s for [configmap/web]",
		"2026-11-28T12:00:00Z 16m0s":     "wait 6m0s for [configmap/web], often",
		"2026-11-28T12:00:00Z 1h0m0s":    "wait 10m0s for [configmap/web], often",
		"2026-11-28T12:00:00Z 9000h0m0s": "wait 10m0s for [configmap/web], often",
		"2026-11-28T11:00:00Z 16m0s":     "wait 5s for [configmap/web]",
		"2036-11-28T12:00:00Z 16m0s":     "wait 10m0s for [configmap/web], often",
		"2026-11-28T12:00:00Z -16m0s":    "wait 5s for [configmap/web]",
		"yesterday":                      "wait 5s for [configmap/web]",
	} {
		workload := &metav1.ObjectMeta{Annotations: map[string]string{inplace.AnnotationConfiguration: fmt.Sprintf(
			`{"configmap/web":"1","restarts":%q}`, said)}}
		var memory Memory
		memory.Adopt(PaceOf(workload), at)
		if got := told(memory.Decide(RecordOf(workload), Record{"configmap/web": "2"}, at)); got != want {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
}
