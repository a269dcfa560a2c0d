// Package operators is what e2e/prometheusoperator_test.go runs. The Prometheus operator and its config-reloader are tools of this module:
// go build takes them from the Go module proxy, unchanged. They are in no other module, because what they require is many times as large as
// Stayput.
package operators
