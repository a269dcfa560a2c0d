// Package apps has the workloads and revisions of apps/v1 as the API server sent them, their templates raw, and says when two templates are
// the same.
//
// Templates are never decoded and written back: the fields of newer clusters would be lost, and a change of one would look like none. What our
// types cannot tell counts as different, and goes native.
//
// It may know how the native controllers read these objects, and nothing of updates: not whether a difference can be made in place, nor when.
package apps
