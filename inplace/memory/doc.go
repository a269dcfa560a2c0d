// Package memory has what the leader remembers of a workload from one plan to the next. It is pure: the controller and the simulation hand
// it what they saw and the time.
//
// A new leader begins with an empty memory, which is always safe: each part only makes a plan wait longer, or asks the API server once
// more.
package memory
