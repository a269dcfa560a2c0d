package commands

import (
	"errors"
	"strings"
	"testing"

	"github.com/stayput/stayput/internal/check"
)

func TestExitCodesOfCheck(t *testing.T) {
	finding := func(level check.Level) check.Finding { return check.Finding{Level: level} }
	for name, test := range map[string]struct {
		findings []check.Finding
		want     error
	}{
		"nothing":                 {nil, nil},
		"a warning":               {[]check.Finding{finding(check.Warning)}, nil},
		"not checked":             {[]check.Finding{finding(check.Warning), finding(check.Unchecked)}, exitFailed},
		"an error":                {[]check.Finding{finding(check.Error)}, exitWrong},
		"an error, not all known": {[]check.Finding{finding(check.Unchecked), finding(check.Error)}, exitWrong},
	} {
		if got := exitCodeOf(check.Report{Findings: test.findings}); !errors.Is(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestCheckWithoutCluster checks that a cluster that does not answer, or a wrong flag, is an error and no finding.
func TestCheckWithoutCluster(t *testing.T) {
	for _, test := range []struct{ arguments, says string }{
		{"check --server http://127.0.0.1:1", "connection refused"},
		{"check -o xml", `unknown output "xml"; it is json or yaml`},
		{"check everything", `unknown command "everything"`},
	} {
		var out, messages strings.Builder
		code := Run(t.Context(), strings.Fields(test.arguments), streams{Out: &out, ErrOut: &messages})
		if code != int(exitFailed) || out.Len() > 0 || !strings.Contains(messages.String(), test.says) {
			t.Errorf("%s: exit code %d, %q, %q", test.arguments, code, out.String(), messages.String())
		}
	}
}
