// Package replicas is about the ReplicaSets of a Deployment with their pods: what each has, what it wants, what of it is borrowed or lost, and
// which of our labels it shall have.
//
// Its predicates are those of one set, or of all sets alike; what is to be done, and for whom, needs the whole update and is decided in
// inplace/deployments. Nothing here changes replicas: that is posted to inplace/ledger.
package replicas
