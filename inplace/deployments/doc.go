// Package deployments makes the plan of a Deployment's update: who moves, what becomes of the ReplicaSets meanwhile, and what the status says.
//
// While the update is held Stayput is the only scaler, and the native controllers see what happens through several watches. So here is the order
// in which pods move and replicas follow, and each change of replicas is posted with its cause (inplace/ledger). How a single pod is updated is
// told in inplace/member, for both kinds.
//
// It must not know the other kind: what both need goes to a room below them.
package deployments
