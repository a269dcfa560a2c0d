package revisions_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestHeldBy: the update revision, or until that is marked another one that the leader renews.
func TestHeldBy(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	revision := func(name string, began, renewed time.Duration) *metav1.ObjectMeta {
		of := &metav1.ObjectMeta{Name: name, Labels: map[string]string{}}
		if began > 0 {
			of.Labels[inplace.LabelUpdating] = inplace.FormatTime(now.Add(-began))
		}
		of.Labels[inplace.LabelRenewed] = inplace.FormatTime(now.Add(-renewed))
		return of
	}
	marked, unmarked := revision("update", time.Minute, time.Hour), revision("update", 0, time.Second)
	for name, test := range map[string]struct {
		update, other *metav1.ObjectMeta
		want          string
	}{
		"the update revision":         {marked, revision("other", time.Minute, time.Second), "update"},
		"it is not marked yet":        {unmarked, revision("other", time.Minute, time.Second), "other"},
		"the other is not renewed":    {unmarked, revision("other", 2*revisions.HoldDuration, revisions.HoldDuration), "update"},
		"nor is it marked":            {unmarked, revision("other", 0, time.Second), "update"},
		"there is no update revision": {nil, revision("other", time.Minute, time.Second), "other"},
	} {
		all := []*metav1.ObjectMeta{test.other}
		if test.update != nil {
			all = append(all, test.update)
		}
		if got := revisions.HeldBy(test.update, all, now); got == nil || got.Name != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRenewedAtTheBounds: a renewal counts for HoldDuration, by clocks that differ by less than the time between two renewals.
func TestRenewedAtTheBounds(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for ago, want := range map[time.Duration]bool{0: true, revisions.HoldDuration - time.Second: true, revisions.HoldDuration: false,
		-revisions.RenewEvery + time.Second: true, -revisions.RenewEvery: false} {
		labels := map[string]string{inplace.LabelUpdating: inplace.FormatTime(now.Add(-time.Hour)),
			inplace.LabelRenewed: inplace.FormatTime(now.Add(-ago))}
		if got := revisions.Renewed(labels, now); got != want {
			t.Errorf("renewed %s ago counts: %t", ago, got)
		}
	}
}

// TestNudgeIsAlwaysAnEvent: within a second, two managers may nudge.
func TestNudgeIsAlwaysAnEvent(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for last, want := range map[time.Time]time.Time{now: now.Add(time.Second), now.Add(-time.Second): now, now.Add(time.Second): now} {
		labels := map[string]string{inplace.LabelRenewed: inplace.FormatTime(last)}
		if operations := revisions.Nudge(labels, now); len(operations) != 1 || operations[0].Value != inplace.FormatTime(want) {
			t.Errorf("after a nudge at %s: %v", last, operations)
		}
	}
}
