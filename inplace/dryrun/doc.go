// Package rehearsal says what admission's answer about a new pod means for running ones.
//
// It reads what was found out, and asks nobody itself; when to ask is for the planner.
package dryrun
