// Package engine has what every update has in common, whatever the kind of its workload: the snapshot on which a plan is made, the flow of
// a plan, and the parts of a plan that do not depend on the kind.
//
// A kind of workload implements Planner. It adds what differs: its revisions, which pod has which of them, the budget, and what becomes of
// replicas and status.
//
// # Reasons to wait
//
// Whatever may keep a pod back is a Filter, in one list. One loop (Pace) asks them for all kinds, and for restarts that pods ask for. What
// they say goes into the plan (steps.Wait). Messages, events, metrics and what users are told of a pod are made from that. A kind may add
// filters of its own. Filters that count pods of all workloads are asked once more before the leader writes: see Reserver.
//
// # Memory
//
// Memory is what the leader remembers of a workload from one plan to the next. The controller and the simulation hand it what they saw and
// the time. A new leader begins with an empty memory, which is always safe: each part only makes a plan wait longer, or asks the API server
// once more.
package engine
