// Package replicas is about the ReplicaSets of a Deployment with their pods: what each ReplicaSet has, what it wants, how many of its pods
// are surge pods or are to be replaced, and which of Stayput's labels it is to have.
//
// A Set is one ReplicaSet as it was observed, and Sets are all of them. Marking are the labels that they are to have. What to do, and for
// which pods, depends on the whole update and is decided in inplace/deployments. Only scaling depends on nothing but the ReplicaSets, so it
// is here (scale.go). Nothing here changes replicas: changes of replicas are posted to the Ledger.
//
// # Ledger
//
// Every change of replicas is posted with its cause, and changes that do not add up are never written. The code that posts a change knows
// only its own cause. Only the ledger sees all changes together, before any is written. It knows nothing of pods, turns or plans: it
// decides by numbers that were observed, so a mistake in the planner does not affect it.
//
// Scaling, surge pods, moves and the replacement of unreachable pods all change replicas, possibly in one plan. If the changes do not add
// up, nothing of the plan is written. The update falls back with inplace.CodeUnbalanced, and its message has the entries.
package replicas
