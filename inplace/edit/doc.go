// Package edit says what one template makes of pods of another: what changes, why running pods cannot take it if they cannot, and which
// operations make it in a live pod.
//
// A new kind of change that can be made in place begins here. It knows templates and the specs of pods, but neither their status nor time: whether
// now is the moment, and whether the containers have followed, is for inplace/readiness.
package edit
