package inplace

import (
	"testing"
	"time"
)

var at = time.Unix(1_000_000, 0)

func TestTimeOf(t *testing.T) {
	if got := ParseTime(FormatTime(at)); !got.Equal(at) {
		t.Errorf("%s is read as %s", at, got)
	}
	for _, label := range []string{"", "soon", "1.5", "1000000.scaling"} {
		if got := ParseTime(label); !got.IsZero() {
			t.Errorf("%q is read as %s", label, got)
		}
	}
}

func TestSince(t *testing.T) {
	for now, want := range map[time.Duration]time.Duration{0: time.Minute, time.Second: 59 * time.Second, time.Minute: 0, time.Hour: 0} {
		if over, left := Since(at, time.Minute, at.Add(now)); over != (want == 0) || left != want {
			t.Errorf("after %s it is over: %t, %s left", now, over, left)
		}
	}
}

func TestSooner(t *testing.T) {
	for _, test := range [][3]time.Duration{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}} {
		if got := Sooner(test[0], test[1]); got != test[2] {
			t.Errorf("the sooner of %d and %d is %d", test[0], test[1], got)
		}
	}
}

func TestLatestAndEarliest(t *testing.T) {
	later := at.Add(1)
	if !Latest(at, later).Equal(later) || !Latest(later, at).Equal(later) || !Earliest(at, later).Equal(at) || !Earliest(later, at).Equal(at) {
		t.Error("the order of two times is wrong")
	}
}
