package configuration

import (
	"maps"
	"time"

	"github.com/stayput/stayput/inplace"
)

const (
	// quiet is for how long nothing may change before containers restart: several ConfigMaps often change together, and an edit of the
	// template with them.
	quiet = 5 * time.Second
	// longest is how long a restart waits for that.
	longest = 30 * time.Second
	// apart is the time between two restarts. It doubles with each restart, up to mostApart, until nothing has changed for calm.
	apart     = time.Minute
	mostApart = time.Hour
	calm      = 10 * time.Minute
)

// Memory is what the leader remembers of a workload. A new leader waits anew for the end of a burst, and knows the Pace from the workload.
type Memory struct {
	pending        Record    // what has changed and is not restarted for yet; nil if nothing has
	since, changed time.Time // when the first and when the last of it was seen
	again          bool      // it came before all was calm after a change before
	Pace
}

// Decision is what is to be done.
type Decision struct {
	// Note: the Record on the workload gets up to date without a restart.
	Note bool
	// Restart: containers restart, since these sources have Changed.
	Restart bool
	Changed []string
	// Often: the restart waits because changes have come all the time.
	Often bool
	// After is when to look again; 0 is never.
	After time.Duration
}

// Decide compares the Record on a workload, nil if there is none, with what there is now.
func (m *Memory) Decide(noted, now Record, at time.Time) Decision {
	changed := now.changedFrom(noted)
	if len(changed) == 0 {
		m.pending = nil
		return Decision{Note: noted == nil || !maps.Equal(noted, now)}
	}
	if m.pending == nil {
		m.begin(at)
	}
	if !maps.Equal(m.pending, now) {
		m.pending, m.changed = now, at
	}
	if wait := m.due().Sub(at); wait > 0 {
		return Decision{Changed: changed, Often: m.Apart > apart && m.paused(), After: wait}
	}
	return Decision{Restart: true, Changed: changed}
}

// begin notes that the first change since a restart is seen.
func (m *Memory) begin(at time.Time) {
	if m.since, m.again = at, m.Apart > 0 && at.Sub(m.changed) < calm; !m.again {
		m.Apart = min(m.Apart, apart)
	}
}

// due returns when containers restart for what is pending, if no more changes.
func (m *Memory) due() time.Time {
	if m.paused() {
		return inplace.Earliest(m.next(), m.changed.Add(calm))
	}
	return m.settled()
}

// paused reports whether the restart waits for the time between two restarts, and not for the end of a burst.
func (m *Memory) paused() bool { return !m.settled().After(m.next()) }

// next returns when the next restart may be.
func (m *Memory) next() time.Time { return m.Restarted.Add(m.Apart) }

// settled returns when the burst of changes is over.
func (m *Memory) settled() time.Time {
	return inplace.Earliest(m.changed.Add(quiet), m.since.Add(longest))
}

// Next returns the Pace after a restart at that time.
func (m *Memory) Next(at time.Time) Pace {
	if !m.again || at.Sub(m.changed) >= calm {
		return Pace{Restarted: at, Apart: apart}
	}
	return Pace{Restarted: at, Apart: min(2*m.Apart, mostApart)}
}

// Keeps remembers that the template was edited for what was pending.
func (m *Memory) Keeps(next Pace) { m.pending, m.Pace = nil, next }

// Adopt takes over the Pace that the workload says, where another leader made the last restart. It is not known when something has changed
// since. So it counts as just changed, unless all has been calm for long enough in any case.
func (m *Memory) Adopt(said Pace, at time.Time) {
	if m.Apart > 0 || said.Apart <= 0 || at.Sub(said.Restarted.Add(said.Apart)) >= calm {
		return
	}
	m.Pace, m.changed = said, at
	m.Apart = min(m.Apart, mostApart)
	m.Restarted = inplace.Earliest(m.Restarted, at)
}
