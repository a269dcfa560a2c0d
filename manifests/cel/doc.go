// Package cel evaluates the policies of manifests with the API server's own compiler, and compares them with the rules in Go that they
// repeat. It is a module of its own, so that the program does not depend on the API server's modules.
package cel
