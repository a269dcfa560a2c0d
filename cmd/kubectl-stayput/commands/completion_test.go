package commands

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// complete returns what the plugin proposes for the last of the words, as kubectl asks it.
func (s *server) complete(words ...string) []string {
	s.Helper()
	var out, errs bytes.Buffer
	arguments := append([]string{"__complete", "--server", s.url, "--kubeconfig", os.DevNull, "--cache-dir", s.TempDir()}, words...)
	if code := Run(s.Context(), arguments, streams{Out: &out, ErrOut: &errs}); code != 0 {
		s.Errorf("%q: exit code %d: %s", words, code, errs.String())
	}
	lines := strings.Fields(strings.ReplaceAll(out.String(), "\t", " # "))
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, ":") })
}

func TestCompletion(t *testing.T) {
	s := serve(t, stored("in-place"))
	for typed, want := range map[string]string{
		"-n shop status ":          "deployment/web daemonset/agent",
		"-n shop status deploy/":   "deploy/web",
		"-n shop status ds ":       "agent",
		"-n shop status ds agent ": "",
		"-n shop status secret/":   "",
		"-n shop status secret ":   "",
		"-n elsewhere status ":     "",
	} {
		if got := strings.Join(s.complete(strings.Split(typed, " ")...), " "); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}
