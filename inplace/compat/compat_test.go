package compat

import "testing"

func TestVersions(t *testing.T) {
	for name, test := range map[string]struct {
		asks      func(version string) bool
		last, new string
	}{
		"supported":       {Supported, "v1.34.9", "v1.35.0-eks-1"},
		"images verified": {VerifiesImages, "v1.34.9", "v1.35.0"},
		"sandbox":         {ReportsSandbox, "v1.35.8+k3s1", "v1.36.0-gke.100"},
	} {
		if test.asks(test.last) || !test.asks(test.new) || test.asks("unknown") {
			t.Errorf("%s: %s %t, %s %t, a version that does not parse %t",
				name, test.last, test.asks(test.last), test.new, test.asks(test.new), test.asks("unknown"))
		}
	}
}
