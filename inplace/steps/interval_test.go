package steps

import (
	"testing"
	"time"
)

func TestMinInterval(t *testing.T) {
	for pods, want := range map[int]time.Duration{0: 0, 99: 0, 100: 5 * time.Millisecond, 5000: 250 * time.Millisecond} {
		if got := MinInterval(pods); got != want {
			t.Errorf("%d pods: %s, want %s", pods, got, want)
		}
	}
}
