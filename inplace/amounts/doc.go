// Package amounts compares the CPU and memory of containers, which the API server, users and kubelets spell differently.
//
// It does not know who may change them.
package amounts
