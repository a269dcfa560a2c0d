package revisions_test

import (
	"testing"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/revisions"
)

func TestHoldLasts(t *testing.T) {
	marked := func(marked, nudged time.Duration) *apps.ReplicaSet {
		rs := fixture.ReplicaSetOf(fixture.New(1, fixture.App{Image: "v1"}), "a", fixture.App{Image: "v1"}, 1)
		rs.Labels[inplace.LabelUpdating] = inplace.FormatTime(fixture.Start.Add(-marked)) + revisions.Scaling
		if nudged > 0 {
			rs.Labels[inplace.LabelRenewed] = inplace.FormatTime(fixture.Start.Add(-nudged))
		}
		return rs
	}
	forged := marked(time.Hour, 0)
	forged.Labels[inplace.LabelUpdating] = "soon"
	for name, test := range map[string]struct {
		revision *apps.ReplicaSet
		held     time.Duration
		lasts    bool
	}{
		"not marked yet":           {&apps.ReplicaSet{}, inplace.LeaderPatience - time.Second, true},
		"never marked":             {&apps.ReplicaSet{}, inplace.LeaderPatience, false},
		"marked just now":          {marked(time.Second, 0), time.Hour, true},
		"not renewed since":        {marked(revisions.HoldDuration, 0), 0, false},
		"renewed just now":         {marked(time.Hour, time.Second), time.Hour, true},
		"renewed too long ago":     {marked(time.Hour, revisions.HoldDuration), 0, false},
		"renewed before it began":  {marked(time.Second, time.Hour), time.Hour, true},
		"a time that is to come":   {marked(-time.Hour, 0), 0, false},
		"a mark of another client": {forged, inplace.LeaderPatience, false},
	} {
		t.Run(name, func(t *testing.T) {
			if lasts := revisions.HoldLasts(test.revision.Labels, fixture.Start.Add(-test.held), fixture.Start); lasts != test.lasts {
				t.Errorf("it lasts: %t, want %t", lasts, test.lasts)
			}
		})
	}
}
