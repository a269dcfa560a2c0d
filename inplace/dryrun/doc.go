// Package dryrun says what admission's answer about a new pod means for running pods.
//
// It reads the answer of a dry run, and does not ask the API server itself. The planner decides when to ask.
package dryrun
