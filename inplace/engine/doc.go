// Package engine has what every update has in common, whatever the kind of its workload: the snapshot on which a plan is made, and the
// parts of a plan that do not depend on the kind.
//
// A kind of workload adds what differs: its revisions, which pod has which of them, the budget, and what becomes of replicas and status.
package engine
