// Package webhook answers admission requests. It tells users what an edit of a pod template will do. It holds the writes by which native
// controllers would replace pods. And it leaves pods out of service that kubelets would put back before their containers have restarted.
// It decodes the request, asks package inplace and answers; it writes nothing.
//
// A request that does not concern Stayput is allowed first. A request that cannot be decided is allowed with a warning, except by
// /validate-in-place-only: a read failed, or an object does not decode or lacks its metadata. A handler that panics drops the connection,
// so that the webhook's failurePolicy decides.
//
// Any client in the cluster can reach the port. So a request is decided only if its namespace is labelled: the cache knows that, and the
// API server is asked a few times a second. A handler lists only what a stored object selects. Package port limits how many requests are
// in progress, and how long each may take.
//
// # What an answer rests on
//
// The table of what is held, and of what the native controllers then do, is in docs/architecture.md. A native controller repeats a write
// that was refused with a Conflict, so the cache may deny it. An allowed write cannot be taken back, so only live reads allow one
// (hold.go).
// A deletion that was refused with NotFound does not come again, so the denial rests on live reads, and so does that of a status that says
// that all is done. The exception is the deletion of a DaemonSet's pod that is out of service: its return makes the controller look again
// (daemonset.go). Where a live read fails or takes too long, the cache may deny with a Conflict (hold.go).
//
// # How a request flows
//
// A route (routes.go) leads to a handler: of template edits (workload.go), of native controllers' writes (replicaset.go, status.go,
// deletion.go), or of new pods and their status (pod.go, podstatus.go). Native writes get there only while a leader is alive. What a
// handler needs to know of a kind stands in the kind's file. Whether a write is held is decided below all of them (deploymenthold.go,
// revised.go, hold.go). A handler reads the cache and decides, and only before it allows a native write it reads the API server and decides
// again (Sources.either). No function calls one of a file above its own.
//
// # What the API server calls the webhooks for
//
// charts/stayput/templates/webhooks.yaml says when each webhook is called, how long the API server waits for it, and what happens without
// an answer. A dry run gets the same answer and changes nothing. The handlers check users and operations themselves; matchConditions save
// calls. TestWebhooksAreCalledForWhatTheyDecide compares both.
package webhook
