// Package replicas is about the ReplicaSets of a Deployment with their pods: what each ReplicaSet has, what it wants, how many of its pods
// are surge pods or are to be replaced, and which of Stayput's labels it is to have.
//
// Its predicates are about one ReplicaSet, or about all ReplicaSets alike. What to do, and for which pods, depends on the whole update and
// is decided in inplace/deployments. Nothing here changes replicas: changes of replicas are posted to inplace/ledger.
package replicas
