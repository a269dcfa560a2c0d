package configuration

import (
	"maps"
	"time"
)

const (
	// quiet is for how long nothing may change before containers restart: several ConfigMaps often change together, and an edit of the
	// template with them.
	quiet = 5 * time.Second
	// longest is how long a restart waits for that.
	longest = 30 * time.Second
	// apart is the time between two restarts. It doubles, up to mostApart, as long as more has changed when it is over.
	apart     = time.Minute
	mostApart = time.Hour
)

// Memory is what the leader remembers of a workload. A new leader waits anew.
type Memory struct {
	pending        Record    // what has changed and is not restarted for yet; nil if nothing has
	since, changed time.Time // when the first and when the last of it was seen
	restarted      time.Time
	apart          time.Duration
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
		m.since = at
	}
	if m.pending == nil || !maps.Equal(m.pending, now) {
		m.pending, m.changed = now, at
	}
	if wait := m.due().Sub(at); wait > 0 {
		return Decision{Changed: changed, Often: m.apart > apart && m.paused(), After: wait}
	}
	return Decision{Restart: true, Changed: changed}
}

// due returns when containers restart for what is pending, if no more changes.
func (m *Memory) due() time.Time {
	if m.paused() {
		return m.next()
	}
	return m.settled()
}

// paused reports whether the restart waits for the time between two restarts, and not for the end of a burst.
func (m *Memory) paused() bool { return !m.settled().After(m.next()) }

// next returns when the next restart may be.
func (m *Memory) next() time.Time { return m.restarted.Add(m.apart) }

// settled returns when the burst of changes is over.
func (m *Memory) settled() time.Time {
	if calm, last := m.changed.Add(quiet), m.since.Add(longest); calm.Before(last) {
		return calm
	}
	return m.since.Add(longest)
}

// Restarted remembers that the template was edited for what was pending.
func (m *Memory) Restarted(at time.Time) {
	if m.paused() {
		m.apart = min(2*m.apart, mostApart)
	} else {
		m.apart = apart
	}
	m.pending, m.restarted = nil, at
}
