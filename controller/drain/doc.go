// Package drain knows since when pods that wait for their restart are out of service.
//
// The order of a drain must hold although caches lag. A cache that does not show a pod as an endpoint may not have seen yet that it became
// one. So the cache is only the occasion to ask. The wait begins when the API server has the pod out of all EndpointSlices, and right
// before the patch the API server is asked again (Drains). The patch names the pod's resourceVersion, so it is the pod that was taken out
// of service. OpenKruise's issue 2276 (https://github.com/openkruise/kruise/issues/2276) is what happens otherwise.
//
// A pod to which no client is sent does not wait. That is believed only if the cache and the API server, right before the patch, agree. A
// Service that was deleted a moment ago may still be in some proxy. It is not waited for, as natively.
//
// A pod that serves as the last endpoint of a Service is not taken out of service. For that the cache suffices.
//
// EndpointSlices and Services are watched without addresses and ports (cmd/stayput/cluster.go), and read only while pods are updated. At
// the API server they are listed by namespace, twice for each batch of pods.
package drain
