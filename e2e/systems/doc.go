// Package systems is what e2e/systems_test.go runs: stateful systems as they are released, and volumes that a node has to be given.
//
//	csi     a CSI driver whose attachments take as long as a volume asks; sanity_test.go checks it with csi-test
//	device  a device plugin with one device, for e2e/devices_test.go
//	member  the init container of an etcd cluster that grows by one member at a time, as OrderedReady lets it
//	writer  writes at a fixed rate to etcd or NATS, remembers what was acknowledged, and reads all of it back
//
// etcd, NATS and the external-attacher are tools of this module: go build takes them from the Go module proxy, unchanged. They are in no
// other module, because what they require is many times as large as Stayput.
package systems
