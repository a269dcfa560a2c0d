package replicas

import (
	"iter"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/member"
	"github.com/stayput/stayput/inplace/readiness"
)

// Borrowed tells whether replicas of the ReplicaSet are borrowed.
func Borrowed(rs *apps.ReplicaSet) bool { return noted(rs) > 0 }

func noted(rs *apps.ReplicaSet) int {
	n, err := strconv.Atoi(rs.Labels[inplace.LabelBorrowed])
	if err != nil {
		return 0
	}
	return max(0, n)
}

// MayGo tells whether a pod whose ReplicaSet is settling may be deleted all the same: it was borrowed, is given back, and clients
// have been told to leave it, if it could tell them, or if it serves at all.
func MayGo(pod *corev1.Pod) bool {
	return readiness.Goes(pod) && (!readiness.Gated(pod) || readiness.Closed(pod) || !conditions.IsTrue(pod, corev1.PodReady))
}

func Note(loan int) string {
	if loan == 0 {
		return ""
	}
	return strconv.Itoa(loan)
}

func StatesOf(members []*Member) iter.Seq[*member.State] {
	return func(yield func(*member.State) bool) {
		for _, m := range members {
			if !yield(&m.State) {
				return
			}
		}
	}
}
