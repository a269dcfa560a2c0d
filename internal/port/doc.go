// Package port is the port on which API servers call the webhooks. By default API servers show no certificate, and their addresses are
// not known. So the port answers every client that reaches it. This package limits what unknown clients can take: connections, memory,
// and the time that other clients wait. It knows nothing of what the requests ask.
//
// All limits follow one rule: a new connection or body is let in, and the one that has waited longest is dropped. So an unknown client
// that opens connections, or announces and sends bodies, displaces its own earlier ones. What API servers send arrives within
// milliseconds. Memory to decide requests in goes to those that came first.
//
// The port speaks HTTP/1.1 only, one request at a time on each connection: API servers speak nothing else to webhooks (hookClientConfig
// in apiserver/pkg/util/webhook/client.go).
package port
