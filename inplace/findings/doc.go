// Package findings caches what was computed from texts that never change.
//
// It knows neither what the texts are nor what was computed, and nothing may depend on a value being cached: without one, only time is
// lost.
package findings
