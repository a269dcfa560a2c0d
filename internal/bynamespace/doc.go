// Package bynamespace keeps metrics by namespace within bounds: only labelled namespaces have series. The series of a namespace go away
// when the namespace loses its label or is deleted.
package bynamespace
