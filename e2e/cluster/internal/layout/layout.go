// Package layout has the paths of the cluster's files. All are under one directory, .cluster.
package layout

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir is the absolute path of the .cluster directory.
type Dir string

// Own returns the directory that the running binary belongs to: it is Own()/bin/cluster.
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

// Bin returns the path of a built binary; Bin() is the directory of binaries. They stay when the cluster is taken down.
func (d Dir) Bin(elements ...string) string { return d.path(append([]string{"bin"}, elements...)...) }

// Share returns the path of another built file, such as cert-manager's CRDs. It stays when the cluster is taken down.
func (d Dir) Share(elements ...string) string {
	return d.path(append([]string{"share"}, elements...)...)
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// PKI returns the directory of keys, certificates and the components' kubeconfigs.
func (d Dir) PKI(elements ...string) string { return d.path(append([]string{"pki"}, elements...)...) }

// Data returns the directory of the configuration and the data of the component name.
func (d Dir) Data(name string, elements ...string) string {
	return d.path(append([]string{"data", name}, elements...)...)
}

// Logs returns the directory of the components' logs.
func (d Dir) Logs() string { return d.path("log") }

// Log returns the log of the component name.
func (d Dir) Log(name string) string { return d.path("log", name+".log") }

// Run returns the directory of the records about what runs and what was changed on the machine.
func (d Dir) Run(elements ...string) string { return d.path(append([]string{"run"}, elements...)...) }

// Lock returns the file that the running launcher has locked.
func (d Dir) Lock() string { return d.path("lock") }

// Transient returns the paths that exist only as long as the cluster. The records come last: with them down works even if the removal of
// the others was interrupted.
func (d Dir) Transient() []string {
	return []string{d.path("data"), d.path("log"), d.path("pki"), d.Kubeconfig(), d.Run()}
}
