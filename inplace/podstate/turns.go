package podstate

// Turns are the pods whose gates are closed because they are to be patched next, or to go.
type Turns map[*State]bool

// Blocked is what pods wait for before they may restart; those that wait for nothing are not in it.
type Blocked map[*State]string

// MayStart reports whether the pod's new images are on its node, as far as that can be had, and they can restart.
func (l Blocked) MayStart(s *State) bool { return l[s] == "" && s.Postponed() == "" }
