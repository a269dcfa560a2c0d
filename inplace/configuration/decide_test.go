package configuration

import (
	"fmt"
	"testing"
	"time"
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
			{200, at2, "wait 5s for [configmap/web]"}, {205, at2, "restart for [configmap/web]"},
			{206, at3, "wait 59s for [configmap/web]"}}},
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
					memory.Restarted(at)
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
			memory.Restarted(at)
			gaps, last, noted = append(gaps, at.Sub(last)), at, now
		}
	}
	if got, want := fmt.Sprint(gaps[1:]), "[1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s]"; got != want {
		t.Errorf("restarts come %s apart, want %s", got, want)
	}
}
