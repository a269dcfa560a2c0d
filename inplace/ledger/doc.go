// Package ledger keeps the books of replicas: every change is posted with its cause, and books that do not add up are never closed.
//
// Whoever posts knows only of his own reason; here is the one place that sees all of them, before anything is written. So it must know nothing
// of pods, turns or plans: it judges by numbers that were observed, and a mistake in the planner does not come along.
package ledger
