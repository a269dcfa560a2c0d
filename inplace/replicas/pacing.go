package replicas

import (
	"github.com/stayput/stayput/inplace/member"
)

// Light are the pods that could move without a restart: only labels change, or their containers are the target's already. Those that
// do not serve come first: replicas lowered for one of them must not be taken for another's.
func (s *Set) Light() []*Member {
	var idle, serving []*Member
	for _, m := range s.Pods {
		switch {
		case m.Borrowed || !m.Light():
		case m.Ready():
			serving = append(serving, m)
		default:
			idle = append(idle, m)
		}
	}
	return append(idle, serving...)
}

// Startable: nothing but the budget keeps the pod from its turn.
func (m *Member) Startable(turns member.Turns, lacking member.Lacking) bool {
	return lacking.MayStart(&m.State) && m.ToRestart() && !turns[&m.State] && !m.Lost
}
