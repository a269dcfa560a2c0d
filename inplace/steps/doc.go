// Package steps has the words in which a plan is told: the steps, each one write, the verdict, what is put off, and the draft in which they
// gather.
//
// Who carries plans out needs no more than this. It must not know how anybody comes to a step.
package steps
