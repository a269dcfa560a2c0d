// Package report tells people what happened, by events and metrics, once it has.
package report
