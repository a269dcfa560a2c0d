// Package compat has what depends on a release of Kubernetes, of a kubelet or of a container runtime.
package compat
