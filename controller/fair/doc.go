// Package fair has the queue of the controllers, in which a namespace waits for itself only.
package fair
