// Package patches writes JSON patches that name only what they change, on what was read.
//
// A patch of the whole object would take away the fields of newer clusters, and one without a guard could rest on what is no longer so. It
// knows the shape of metadata and conditions, but not what the entries mean.
package patches
