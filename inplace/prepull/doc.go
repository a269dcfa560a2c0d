// Package prepull makes nodes pull images before containers there stop. It decides which pods may restart, and which pre-pull pods
// are created and deleted for the others.
//
// Kubelets kill before they pull, so an image that is slow or missing would take a pod out of service. The package may know nodes,
// pre-pull pods and quotas, and what inplace/podstate says of the pods. It must not decide the order of turns and the budget.
package prepull
