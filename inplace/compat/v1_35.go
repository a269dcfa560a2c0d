package compat

import versions "k8s.io/apimachinery/pkg/util/version"

var (
	sidecarKubelet  = versions.MustParseGeneric("1.32")
	volumeAPIServer = versions.MustParseGeneric("1.35")
)

// RestartsSidecars reports whether a kubelet of that version restarts a sidecar for another image (kubernetes#126525).
func RestartsSidecars(kubelet string) bool { return !olderThan(sidecarKubelet, kubelet) }

// ServesImageVolumes reports whether an API server of that version admits pods that mount images, by default (ImageVolume in
// pkg/features/kube_features.go). Whether kubelets mount them says CannotMount.
func ServesImageVolumes(apiServer string) bool { return !olderThan(volumeAPIServer, apiServer) }
