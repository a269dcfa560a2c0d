// Package gate opens the readiness gates of new pods, on every replica, and finds out whether this process can open
// gates.
package gate
