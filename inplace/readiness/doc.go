// Package readiness reads the state of one pod: its gate and its Ready, the mark of its last move, and the evidence that its containers have
// followed it. It also has the rule by which the API server itself says Ready.
//
// Everything is told from the pod and the time, since webhooks and policies ask the same of a single pod. It must not know the workload, nor
// what is to become of the pod.
package readiness
