// Package steps has the types that a plan consists of: the steps (each is one write), the decision, the deferrals, and the plan builder
// that collects them.
//
// The code that carries plans out needs no more than this. It must not know how a plan came to a step.
package steps
