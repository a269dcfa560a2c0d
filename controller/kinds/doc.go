// Package kinds is the table of the kinds of workloads that are updated in place: how one is read, woken and told to be done. The rest of the
// controller names none of them.
package kinds
