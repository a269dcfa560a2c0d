// Package findings remembers what was worked out of texts that never change.
//
// It knows neither what the texts are nor what was found in them, and nothing may depend on what it remembers: to forget costs time only.
package findings
