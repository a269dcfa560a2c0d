// Package changes is the table of what may be changed in a pod template, and of what then becomes of running pods.
//
// It stands once and is used three times: the end-to-end suite makes each change on a real cluster, in a Deployment and in a DaemonSet
// (e2e/changes_test.go); a unit test holds each verdict against inplace/edit; and docs/changes.md is written from it (docs/generate). So a new row
// is a literal in table.go and nothing else.
package changes
