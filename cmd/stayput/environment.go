package main

// These variables are read from the environment. The manifests set them from the pod's own fields.
const (
	// envNamespace is Stayput's own namespace, unless `--namespace` names another.
	envNamespace = "POD_NAMESPACE"
	// envName is the name of the manager's own pod. Pre-pull pods run the image of that pod. If it is not set, Stayput creates no pre-pull
	// pods, and containers stop before their new images are pulled.
	envName = "POD_NAME"
)
