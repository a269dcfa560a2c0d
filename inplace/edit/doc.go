// Package edit compares pod templates: what changes in pods, why running pods cannot take the change, and which operations make the
// change in a live pod.
//
// A new kind of change in place is added here first. The package knows templates and the specs of pods. It knows neither the status
// of pods nor the time: package inplace/readiness decides whether a pod may be patched now, and whether its old containers have
// stopped.
package edit
