// Package gate opens the readiness gates of newborn pods, on every replica, and finds out whether this process can.
package gate
