// Package simulation is the simulation of the folder above, whose native controllers are those of Kubernetes itself instead of models of
// them. Its files are those of both folders, which `make oracle` puts together.
//
// A seed runs in a bubble of testing/synctest, so all time is virtual, and nothing of Kubernetes is changed for that: queues, back-off,
// expectations and minReadySeconds read the bubble's clock. The world moves it. A controller runs as it does in kube-controller-manager, with
// its workers, and stops at two places: before it reads the workload that it is going to sync, and at each request to the API server. The
// world decides when it goes on. The API server is an http.RoundTripper, so requests are those of client-go, and what Stayput's webhooks
// decide is the answer.
package simulation
