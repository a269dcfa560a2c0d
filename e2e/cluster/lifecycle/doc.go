// Package lifecycle tests that the cluster can be started, stopped, interrupted and repaired, and that nothing of it stays. Its tests need
// root and the files of make cluster-build. They take down a cluster that is up.
package lifecycle
