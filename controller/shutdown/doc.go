// Package shutdown leaves nothing behind when a process of Stayput ends: the leader opens the gates that it has closed,
// the last manager leaves its updates to the native controllers, and uninstalling removes everything.
package shutdown
