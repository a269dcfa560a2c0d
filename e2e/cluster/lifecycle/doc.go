// Package lifecycle tests that the cluster can be started, stopped, interrupted and repaired, and that it leaves
// nothing behind. Its tests need root and what make cluster-build makes, and take down a cluster that is up.
package lifecycle
