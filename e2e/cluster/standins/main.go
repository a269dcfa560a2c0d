// Command standins pushes substitutes for the images of Kubernetes' own tests, with the references in its arguments.
package main

import (
	"fmt"
	"os"

	"github.com/stayput/stayput/e2e/cluster/registry"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "standins takes the binaries of agnhost and busybox, both static, and references such as 127.0.0.1:5000/pause:3.10")
		os.Exit(2)
	}
	if err := push(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "standins:", err)
		os.Exit(1)
	}
}

func push(agnhost, busybox string, references []string) error {
	images, err := registry.Agnhost(agnhost, busybox, references)
	if err != nil {
		return err
	}
	for reference, image := range images {
		if err := registry.Push(reference, image); err != nil {
			return err
		}
	}
	return nil
}
