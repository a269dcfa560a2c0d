// Package conditions finds conditions of pods, Deployments and ReplicaSets.
//
// It only finds them; callers decide what follows from one.
package conditions
