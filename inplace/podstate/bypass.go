package podstate

import "time"

// A native write that a webhook should hold may pass all the same. One write can bypass Stayput in the second in which a manager is killed.
// Every write does once the API server no longer reaches the webhooks. Stayput tolerates a single bypass, but starts nothing until it is
// clear that it was single. A second bypass means that the native controller and Stayput both take pods out of service, so that more pods
// are unavailable than may be. Then the update falls back. A bypass is forgotten after inplace.Remembered.

// QuietAfterBypass is how long no further bypass must come until it is clear that the last one was single.
const QuietAfterBypass = 10 * time.Second
