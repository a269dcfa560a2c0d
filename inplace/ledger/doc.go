// Package ledger checks changes of replicas: every change is posted with its cause, and changes that do not add up are never written.
//
// The code that posts a change knows only its own cause. Only the ledger sees all changes together, before any is written. It knows
// nothing of pods, turns or plans: it decides by numbers that were observed, so a mistake in the planner does not affect it.
package ledger
