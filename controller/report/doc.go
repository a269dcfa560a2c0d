// Package report tells users what happened, by events and metrics, after it has happened.
package report
