// Package serving decides from EndpointSlices and Services whether clients are still sent to a pod whose gate is closed, and so
// when the pod's containers may stop.
//
// It knows what was listed and nothing of the update: it does not matter why the pod is to stop.
package serving
