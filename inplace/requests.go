package inplace

import "strings"

const (
	// AnnotationRestartPrefix begins an annotation for one container or sidecar, such as `restart.stayput.dev/app`. A change of it restarts
	// that container in the running pods, and no other one.
	AnnotationRestartPrefix = "restart.stayput.dev/"
	// AnnotationRestartContainers asks that these containers and sidecars of the pod restart one after the other, in that order. Stayput
	// notes the time of each restart in it, and removes it at the end.
	//
	// See podstate/request.go.
	AnnotationRestartContainers = "stayput.dev/restart-containers"
	// AnnotationRestartDeadline is until when each of these containers may begin to restart. Stayput removes it at the end.
	AnnotationRestartDeadline = "stayput.dev/restart-deadline"
)

// ContainerToRestart returns the container whose restart a change of the template's annotation asks for. It is empty if the annotation asks
// for none.
func ContainerToRestart(annotation string) string {
	container, asks := strings.CutPrefix(annotation, AnnotationRestartPrefix)
	if !asks {
		return ""
	}
	return container
}
