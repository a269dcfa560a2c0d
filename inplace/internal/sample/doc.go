// Package sample has templates and names for the tests of several rooms, and the native rule that our own is compared with. Nothing but tests may
// know it.
package sample
