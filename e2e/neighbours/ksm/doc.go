// Package ksm tests the alerts of docs/how-to/monitoring.md with what kube-state-metrics exports during updates in place.
//
// testdata/exported.txt is such a record: a line for each series, with a value for each second. To make it anew on the test cluster:
//
//	go -C e2e/neighbours/ksm run ./record > e2e/neighbours/ksm/testdata/exported.txt
//
// It is a module of its own: what kube-state-metrics requires does not go together with what the other neighbours require.
package ksm
