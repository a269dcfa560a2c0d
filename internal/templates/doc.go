// Package templates makes random pod templates, edits them, and says what a pod must be after an edit. It is for tests of what can be
// made in place, by computation (inplace/edit) and against an API server (e2e). Only tests may import it.
package templates
