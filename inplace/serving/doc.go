// Package serving says whether clients are still sent to a pod whose gate is closed, by EndpointSlices and Services, and so when its containers may
// stop.
//
// It sees what was listed and nothing of the update: why the pod is to stop does not matter.
package serving
