// Package readiness reads the state of one pod: its gate and its Ready, the mark of its last move, and the evidence that its old
// containers have stopped. It also has the rule by which the API server itself says Ready.
//
// The package decides everything from the pod and the time, because webhooks and policies ask the same of a single pod. It must not
// know the workload, nor what the pod is to become.
package readiness
