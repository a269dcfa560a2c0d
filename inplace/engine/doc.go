// Package engine has what every update has in common, whatever the kind of its workload: the snapshot on which a plan is made, the flow of
// a plan, and the parts of a plan that do not depend on the kind.
//
// A kind of workload implements Planner. It adds what differs: its revisions, which pod has which of them, the budget, and what becomes of
// replicas and status.
//
// # Memory
//
// Memory is what the leader remembers of a workload from one plan to the next. The controller and the simulation hand it what they saw and
// the time. A new leader begins with an empty memory, which is always safe: each part only makes a plan wait longer, or asks the API server
// once more.
package engine
