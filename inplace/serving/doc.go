// Package serving decides from EndpointSlices and Services whether clients are still sent to a pod whose gate is closed, and so
// when the pod's containers may stop.
//
// It knows what was listed and nothing of the update: it does not matter why the pod is to stop.
//
// The EndpointSlices that count for a drain are those of the native controller, by the pod's UID, except those of Services that publish
// addresses which are not ready. A pod to which nothing sends clients waits only for its kubelet (SentTo). For that, the slices of all
// controllers count, but only those in the pod's own namespace. A pod's drain is one predicate for all kinds of workloads
// (Endpoint.Drained). The pod counts as unavailable from the moment its gate closes.
package serving
