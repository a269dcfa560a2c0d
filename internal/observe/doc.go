// Package observe reads what package inplace decides on, at one moment: a Deployment with its ReplicaSets and pods, or
// a DaemonSet with its ControllerRevisions, pods and nodes. It also reads the mode that applies to the workload, and
// whether a leader renews its Lease, without which no webhook may hold writes.
//
// It reads through any client.Reader: a cache, or the API server itself. It never writes.
//
// # Memory
//
// Every manager watches the whole cluster, and any user may fill a namespace. So the cache keeps little:
//
//   - It keeps outlines (outline.go) of workloads, revisions and pods in namespaces without the label, of every object above
//     64 KiB, of what exceeds a namespace's share of 128 MiB, and of what exceeds 384 MiB of all namespaces
//     (cacheform.go). Sizes are those in memory (size.go). What a plan needs of an outline is read from the API server,
//     and remembered as long as the outline stays the same, within the same share (whole.go). So nothing depends
//     on what the cache knew of a label when an object came. An outline of a pod takes 1.4 KiB (BenchmarkCachedPods in
//     cmd/stayput): 1.2 KiB are the empty type.
//   - It trims pods to about 2.7 KiB each, where templates are shared: names of variables without their values, no
//     volumes but images and claims, no annotations that Stayput does not read, and of containers which ones run and since when.
//     Maps and lists are copied to their exact size, and a text that all pods of a template share is there once. The pod
//     that a dry run returns is trimmed in the same way (Compared).
//   - Plans and webhooks get the cache's own pods and nodes, not copies (stores.go).
//
// The first list of a watch comes as a stream (cmd/stayput/cluster.go). Lists from the API server come in pages (list.go).
// Results that were computed from a template are remembered by the digest of its text (apps.Findings).
//
// # Limits
//
// What a plan or a decision may cost is limited, so that neither has to be interrupted. A workload beyond these limits is
// native, with reason inplace.CodeTooLarge, or inplace.CodeTemplateField for a template:
//
//   - at most 100 containers in a template or a pod (apps.MostContainers), and as many readiness gates and conditions; a
//     pod with more is never read;
//   - at most 256 KiB and 20,000 elements of lists and objects in a template;
//   - at most 250 revisions, and 8 MiB of them;
//   - at most 8 MiB of pods that are large, or that have no room in the cache (whole.go).
//
// Webhooks stop listing where it is too much. Of EndpointSlices and Services no more than 50,000 endpoints are listed
// (endpoints.go). In a namespace with more, containers restart as late as if the slices could not be read.
package observe
