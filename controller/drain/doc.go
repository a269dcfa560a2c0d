// Package drain knows since when pods that wait for their restart are out of service.
package drain
