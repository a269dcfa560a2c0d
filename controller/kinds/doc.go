// Package kinds has the kinds of workloads that are updated in place: how to read one, how to find the workload of an
// event, and when one is done. The other packages of the controller do not name a kind.
package kinds
