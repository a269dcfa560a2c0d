// Package port is the port that API servers call the webhooks on. By default API servers show no certificate and their addresses are not known, so
// the port answers whatever reaches it. This package keeps what strangers can take below what would hurt: connections, memory, and the time that
// others wait. It knows nothing of what is asked.
//
// All its bounds follow one rule: what comes is let in, and what has waited longest goes. A stranger that opens connections, or announces and sends
// bodies, so takes the room of its own earlier ones. What API servers send is here within milliseconds.
//
// HTTP/1.1 only, one request at a time on each connection: API servers speak nothing else to webhooks
// (hookClientConfig in apiserver/pkg/util/webhook/client.go).
package port
