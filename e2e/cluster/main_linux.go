// Command cluster starts and stops a real Kubernetes cluster on this machine. Its commands are in internal/launcher.
package main

import (
	"os"

	"github.com/stayput/stayput/e2e/cluster/internal/launcher"
)

func main() {
	os.Exit(launcher.Main(os.Args[1:]))
}
