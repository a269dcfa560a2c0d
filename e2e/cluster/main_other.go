//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "cluster: this is %s, but kubelets and containers need Linux: run it on a Linux machine\n", runtime.GOOS)
	os.Exit(1)
}
