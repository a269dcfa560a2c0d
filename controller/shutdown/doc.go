// Package release gives back what is under way when Stayput goes: a leader its gates, the last manager its updates, and an uninstallation
// everything.
package shutdown
