// Package compat has the decisions that depend on a release of Kubernetes, of a kubelet or of a container runtime: one function each.
//
// A file is named after the release with which it can be deleted: once Stayput needs that release, its functions always return the same.
// An API server may have kubelets of the three minor releases before its own. So what all API servers of 1.36 have goes with 1.36, and what
// all kubelets of 1.36 have goes with 1.39. docs/reference/kubernetes-versions.md says what the releases give to users.
package compat
