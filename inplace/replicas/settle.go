package replicas

import (
	"slices"
	"strconv"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
)

// BornSince: some pod was created after the update began, or perhaps was.
func (s *Set) BornSince(target *Set) bool {
	began := revisions.StartedAt(target.Rs.Labels[inplace.LabelSettling]).Add(-clockSkew)
	return slices.ContainsFunc(s.Pods, func(m *Member) bool { return !m.Pod.CreationTimestamp.Time.Before(began) })
}

func (s *Set) Failing() bool { return conditions.FailureOf(s.Rs) != nil }

// Giving notes on a marked ReplicaSet which replicas it has from us.
func (s *Set) Giving(replicas int) []jsonpatch.Operation {
	given := ""
	if s.Wish.Settling != "" {
		given = strconv.Itoa(replicas)
	}
	return patches.SetEntries("labels", s.Rs.Labels, [2]string{inplace.LabelReplicas, given})
}
