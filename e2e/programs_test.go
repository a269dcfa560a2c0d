//go:build e2e && (systems || reloader || operators)

package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// beside runs a program beside the cluster, as its administrator, until the test ends. The function returns what the program has said, as
// an error.
func (s *scenario) beside(program *exec.Cmd) (said func() error) {
	s.Helper()
	log, err := os.Create(filepath.Join(s.TempDir(), "log"))
	if err != nil {
		s.Fatal(err)
	}
	program.Env = append(program.Environ(), "KUBECONFIG="+kubeconfig)
	program.Stdout, program.Stderr = log, log
	if err := program.Start(); err != nil {
		s.Fatalf("the make target says which program it needs: %v", err)
	}
	said = func() error {
		text, err := os.ReadFile(log.Name())
		return errors.Join(errors.New(string(text)), err)
	}
	s.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait() // it was killed
		if s.Failed() {
			s.Logf("%s said:\n%v", program.Path, said())
		}
	})
	return said
}

// pushed pushes so many versions of an image with the program, and returns the reference of each, from 1 on. They share the layer with the
// program, and differ in the environment, so that each is an update. The tag has a hash of the program: nodes keep images. No container may
// get an image for the second time (bench_test.go, benchRounds).
func pushed(t *testing.T, program string, versions int) func(version int) string {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatalf("the make target builds it: %v", err)
	}
	tag := fmt.Sprintf("%s:%.4x", filepath.Base(program), sha256.Sum256(content))
	for version := range versions {
		run(t, filepath.Join(binaries, "cluster"), "push", fmt.Sprintf("%s-v%d", tag, version+1), program, fmt.Sprintf("VERSION=v%d", version+1))
	}
	return func(version int) string { return fmt.Sprintf("%s%s-v%d", registry, tag, version) }
}
