// Package apps has the workloads and revisions of apps/v1 as the API server sent them, with raw templates. It decides whether two
// templates are the same.
//
// Templates are never decoded and written back: fields of newer clusters would be lost, and a change of such a field would not be
// noticed. A change that Stayput's types cannot interpret counts as a difference, and is left to the native controller.
//
// The package may know how the native controllers read these objects. It knows nothing of updates: neither whether a difference can
// be made in place, nor when.
package apps
