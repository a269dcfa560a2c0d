package deployments_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// counts are the replicas, the available pods and the unready pods of a ReplicaSet.
type counts struct{ replicas, available, unready int }

// setsOf returns the ReplicaSets a, b and so on, of which the last is the new one. Pods had ReplicaSet a when the update began.
func setsOf(wanted, kept int, all ...counts) deployments.Sets {
	var oldestFirst []*apps.ReplicaSet
	for i, c := range all {
		size, pods := int32(c.replicas), int32(c.available+c.unready)
		rs := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: string("abc"[i]), Labels: map[string]string{}}}
		rs.Spec.Replicas, rs.Status.Replicas = &size, pods
		oldestFirst = append(oldestFirst, rs)
	}
	oldestFirst[0].Labels[inplace.LabelUpdating], oldestFirst[0].Labels[inplace.LabelCurrent] = fixture.Begun, fixture.Begun
	sets := deployments.SetsOf(oldestFirst, oldestFirst[len(all)-1], wanted, kept)
	for i, c := range all {
		for pod := range c.available + c.unready {
			available := pod < c.available
			work := podstate.Work{MarkedPod: podstate.MarkedPod{Pod: &corev1.Pod{}}}
			m := &deployments.Pod{State: podstate.State{Work: work, Available: available}, Owner: sets.All[i]}
			if available {
				m.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			sets.Add(m)
		}
	}
	return sets
}

// undone makes the oldest ReplicaSet the new one.
func undone(sets deployments.Sets) deployments.Sets { sets.New = sets.All[0]; return sets }

// uncreated makes all ReplicaSets old ones: the user has edited the Deployment again.
func uncreated(sets deployments.Sets) deployments.Sets { sets.New = nil; return sets }

// unnoted loses the note of which ReplicaSets pods had when the update began.
func unnoted(sets deployments.Sets) deployments.Sets {
	delete(sets.All[0].Rs.Labels, inplace.LabelCurrent)
	return sets
}

func TestScale(t *testing.T) {
	for name, test := range map[string]struct {
		sets   deployments.Sets
		budget int
		want   string
	}{
		"as many as wanted":                       {setsOf(3, 0, counts{3, 3, 0}, counts{}), 1, ""},
		"more: the new one is not known to work":  {setsOf(4, 0, counts{2, 2, 0}, counts{1, 0, 1}), 1, "a +1 scaled"},
		"more: the new one works":                 {setsOf(4, 0, counts{2, 2, 0}, counts{1, 1, 0}), 1, "b +1 scaled"},
		"more: none has pods":                     {setsOf(2, 0, counts{}, counts{}), 0, "b +2 scaled"},
		"more: the old one with the most pods":    {setsOf(5, 0, counts{1, 1, 0}, counts{2, 2, 0}, counts{}), 1, "b +2 scaled"},
		"more: the partition keeps one more":      {setsOf(5, 3, counts{2, 2, 0}, counts{1, 1, 0}), 1, "a +1 scaled, b +1 scaled"},
		"more: a surplus pod counts first":        {setsOf(3, 0, counts{1, 2, 0}, counts{1, 1, 0}), 1, "a +1 counted"},
		"more: the surplus has to be seen first":  {setsOf(4, 0, counts{1, 2, 0}, counts{1, 1, 0}), 1, "a +1 counted"},
		"more: two old ones have as many pods":    {setsOf(5, 0, counts{2, 2, 0}, counts{2, 2, 0}, counts{}), 1, "a +1 scaled"},
		"more: after an undo, none has pods":      {undone(setsOf(2, 0, counts{}, counts{})), 0, "a +2 scaled"},
		"more: the new one is yet to be created":  {uncreated(setsOf(5, 0, counts{1, 1, 0}, counts{2, 2, 0}, counts{})), 1, "b +2 scaled"},
		"more: it is not there, nor is any pod":   {uncreated(setsOf(2, 0, counts{}, counts{})), 0, "b +2 scaled"},
		"more: no pod is left for the partition":  {setsOf(2, 2, counts{}, counts{1, 1, 0}), 1, "b +1 scaled"},
		"more: it keeps what pods had before":     {setsOf(4, 2, counts{1, 1, 0}, counts{2, 2, 0}, counts{}), 1, "a +1 scaled"},
		"more: that is not noted, so the largest": {unnoted(setsOf(5, 4, counts{1, 1, 0}, counts{2, 2, 0}, counts{1, 1, 0})), 1, "b +1 scaled"},
		"fewer: old ones first":                   {setsOf(2, 0, counts{2, 2, 0}, counts{2, 2, 0}), 4, "a -2 scaled"},
		"fewer: no more than may be unavailable":  {setsOf(1, 0, counts{2, 2, 0}, counts{2, 2, 0}), 1, "a -1 scaled"},
		"fewer: unready pods cost no budget":      {setsOf(2, 0, counts{2, 1, 1}, counts{2, 2, 0}), 0, "a -1 scaled"},
		"fewer: then the new one":                 {setsOf(1, 0, counts{1, 1, 0}, counts{2, 2, 0}), 4, "a -1 scaled, b -1 scaled"},
		"fewer: the partition keeps the old ones": {setsOf(3, 2, counts{2, 2, 0}, counts{2, 2, 0}), 4, "b -1 scaled"},
		"fewer: it keeps as many as it says":      {setsOf(2, 1, counts{2, 2, 0}, counts{2, 2, 0}), 4, "a -1 scaled, b -1 scaled"},
	} {
		if got := test.sets.Scale(test.budget).String(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
