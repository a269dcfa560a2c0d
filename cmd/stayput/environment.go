package main

// What is read of the environment; the manifests set it from the pod's own fields.
const (
	// envNamespace is Stayput's own namespace, unless `--namespace` names another.
	envNamespace = "POD_NAMESPACE"
	// envName is the manager's own pod: pods that pull images run the same image. Without it none are made, and containers stop before images
	// are pulled.
	envName = "POD_NAME"
)
