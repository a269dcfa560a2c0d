package podstate

// Turns are the pods that are out of service because Stayput patches them next, or removes them.
type Turns map[*State]bool

// Blocked is what each pod waits for before it may restart. A pod that waits for nothing is not in it.
type Blocked map[*State]string

// MayStart reports whether the pod's containers can restart: its new images are on its node, as far as they can be pulled first.
func (l Blocked) MayStart(s *State) bool { return l[s] == "" && s.Postponed() == "" }
