// Package prepull has nodes pull images before containers there stop: which pods may restart, and which pullers come and go for the others.
//
// Kubelets kill before they pull, so an image that is slow or missing would take a pod out of service. It may know nodes, pullers and quotas, and of
// the pods what inplace/member tells; the order of turns and the budget are not its own.
package prepull
