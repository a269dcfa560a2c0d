// Package patches makes JSON patches that name only what they change, and that fail if the object has changed since it was read.
//
// A patch of the whole object would remove fields that only newer clusters know, and a patch without a guard could depend on outdated
// facts. The package knows the form of metadata and conditions, but not what the entries mean.
package patches
