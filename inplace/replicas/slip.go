package replicas

import (
	"strconv"

	"github.com/stayput/stayput/inplace"
)

// Slipped: the replicas are others than we gave it.
func (s *Set) Slipped() bool {
	given, known := s.given()
	return known && given != s.Size()
}

// surged is how many replicas somebody else has added.
func (s *Set) surged() int {
	given, known := s.given()
	if !known {
		return 0
	}
	return max(0, s.Size()-given)
}

// given is how many replicas the ReplicaSet had from us, if it is marked.
func (s *Set) given() (int, bool) {
	given, err := strconv.Atoi(s.Rs.Labels[inplace.LabelReplicas])
	return given, err == nil && s.Rs.Labels[inplace.LabelSettling] != ""
}
