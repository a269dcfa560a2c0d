// Package layout says where the cluster's files are. Everything lives under one directory, .cluster.
package layout

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir is the absolute path of the .cluster directory.
type Dir string

// Own is the directory that the running binary belongs to: it is Own()/bin/cluster.
func Own() (Dir, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return "", err
	}
	bin := filepath.Dir(resolved)
	if filepath.Base(bin) != "bin" {
		return "", fmt.Errorf("this binary is %s, but it must be bin/cluster in the cluster's directory: build it with make cluster", resolved)
	}
	return Dir(filepath.Dir(bin)), nil
}

func (d Dir) path(elements ...string) string {
	return filepath.Join(append([]string{string(d)}, elements...)...)
}

// Bin is a built binary, and Bin() their directory. It outlives the cluster.
func (d Dir) Bin(elements ...string) string { return d.path(append([]string{"bin"}, elements...)...) }

// Share is a built file that is not a binary, such as cert-manager's CRDs. It outlives the cluster.
func (d Dir) Share(elements ...string) string {
	return d.path(append([]string{"share"}, elements...)...)
}

// Kubeconfig gives administrators access.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// PKI is the directory of keys, certificates and the components' kubeconfigs.
func (d Dir) PKI(elements ...string) string { return d.path(append([]string{"pki"}, elements...)...) }

// Data is where the component name keeps its configuration and what it stores.
func (d Dir) Data(name string, elements ...string) string {
	return d.path(append([]string{"data", name}, elements...)...)
}

// Logs is the directory of the components' logs.
func (d Dir) Logs() string { return d.path("log") }

// Log is the log of the component name.
func (d Dir) Log(name string) string { return d.path("log", name+".log") }

// Run is the directory of the records of what runs and what was changed on the machine.
func (d Dir) Run(elements ...string) string { return d.path(append([]string{"run"}, elements...)...) }

// Lock is the file that the running launcher has locked.
func (d Dir) Lock() string { return d.path("lock") }

// Transient are the paths that exist only as long as the cluster. The records come last: with them it can still be
// taken down when removing the others was interrupted.
func (d Dir) Transient() []string {
	return []string{d.path("data"), d.path("log"), d.path("pki"), d.Kubeconfig(), d.Run()}
}
