package podstate

import "time"

// A native write that should be held may pass all the same: one slips past us in the second in which a manager was killed, or every one does since
// the API server no longer reaches the webhooks. What passed once is borne with, but nothing begins until it is clear that it was once. What comes
// again means that two take pods out of service, who miss more than may be: then the update is given back.
const (
	// QuietAfterBypass is how long it must be quiet until that is clear.
	QuietAfterBypass = 10 * time.Second
	// BypassMemory is how long a slip is held against the next.
	BypassMemory = 10 * time.Minute
)
