// Package changes is the table of the possible changes of a pod template, and of their effect on running pods.
//
// The table has three uses. The end-to-end suite makes each change on a real cluster, in a Deployment, in a DaemonSet and mostly in a
// StatefulSet (e2e/changes_test.go). A unit test compares each decision with inplace/edit. docs/generate writes docs/reference/changes.md
// from it.
// So a new row needs only a literal in table.go.
package changes
