// Package simulation is the simulation of the folder above, whose native controllers are those of Kubernetes itself instead of models of
// them. `make oracle` puts the files of both folders together.
//
// A seed runs in a bubble of testing/synctest, so all time is virtual, and nothing of Kubernetes is changed for that: queues, back-off,
// expectations and minReadySeconds read the bubble's clock, which the world moves. A controller runs as it does in
// kube-controller-manager, with its workers. It stops before it reads the workload that it is going to sync, and at each request to the API
// server. The world decides when it goes on; in odd seeds, others act between two requests of a sync. The API server is an
// http.RoundTripper, so requests are those of client-go, and what Stayput's webhooks decide is the answer.
//
// A seed replays exactly: controllers go through Go's maps, and `make oracle` takes chance out of these.
package simulation
