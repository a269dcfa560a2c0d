// Package conditions finds the conditions of pods, Deployments and ReplicaSets.
//
// It knows only where they stand: what follows from one is for those who ask.
package conditions
