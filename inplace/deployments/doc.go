// Package deployments plans the update of a Deployment: which pods move, what becomes of its ReplicaSets meanwhile, and what its status
// says.
//
// While the update is held, only Stayput scales the ReplicaSets, and the native controllers see what happens through several watches. So
// this package decides the order in which pods move and replicas follow, and posts each change of replicas with its cause
// (inplace/ledger). How a single pod is updated is in inplace/podstate, for both kinds.
//
// It must not import inplace/daemonsets: what both need is in packages that both import.
package deployments
