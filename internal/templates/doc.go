// Package templates makes pod templates at random, edits them, and says what a pod has to be after an edit: for tests of what can be made in place, by
// computation (inplace/edit) and against an API server (e2e). Nothing but tests may know it.
package templates
