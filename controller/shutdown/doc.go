// Package shutdown leaves nothing behind when a process of Stayput ends: the last manager leaves its updates to the
// native controllers, and uninstalling removes everything. Pods that are out of service need nothing: their kubelets put
// them back.
package shutdown
