package inplace

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// ofDigest are two digests.
var ofDigest = []string{"@sha256:" + strings.Repeat("a", 64), "@sha256:" + strings.Repeat("b", 64)}

func TestSameImage(t *testing.T) {
	cases := []struct {
		a, b string
		want bool
	}{
		{"nginx", "docker.io/library/nginx:latest", true},
		{"nginx:1", "docker.io/library/nginx:1", true},
		{"docker.io/nginx:1", "nginx:1", true},
		{"index.docker.io/nginx:1", "docker.io/library/nginx:1", true},
		{"index.docker.io/a/b", "a/b:latest", true},
		{"a/b:1", "docker.io/a/b:1", true},
		{"localhost/b:1", "localhost/b:1", true},
		{"localhost:5000/b", "localhost:5000/b:latest", true},
		{"HOST/b", "HOST/b:latest", true},
		{"r.io/b@sha256:1", "r.io/b@sha256:1", true},
		{"nginx:1" + ofDigest[0], "docker.io/library/nginx" + ofDigest[0], true},
		{"r.io/b:1" + ofDigest[0], "r.io/b:2" + ofDigest[0], true},
		{"nginx:1" + ofDigest[0], "docker.io/library/nginx" + ofDigest[1], false},
		{"nginx:1" + ofDigest[0], "nginx:1", false},
		{"HOST/b", "docker.io/HOST/b", false},
		{"nginx:1", "nginx:2", false},
		{"r.io/b", "b", false},
		{"", "", false},
	}
	for _, c := range cases {
		if got := sameImage(c.a, c.b); got != c.want {
			t.Errorf("sameImage(%q, %q) is %v", c.a, c.b, got)
		}
	}
}

func TestPullPolicyByDefault(t *testing.T) {
	ofADigest := "@sha256:" + strings.Repeat("a", 64)
	for image, want := range map[string]corev1.PullPolicy{
		"app":                    corev1.PullAlways,
		"localhost:5000/app":     corev1.PullAlways,
		"app:latest":             corev1.PullAlways,
		"app:latest" + ofADigest: corev1.PullAlways, // no use, but so says the API server
		"app:1":                  corev1.PullIfNotPresent,
		"app" + ofADigest:        corev1.PullIfNotPresent,
		"app:1" + ofADigest:      corev1.PullIfNotPresent,
		"App":                    corev1.PullIfNotPresent, // is none: nothing is known of it
	} {
		if got := pullPolicy(&corev1.Pod{}, ContainerChange{Container: "app", Image: ImageChange{To: image}}); got != want {
			t.Errorf("%s is pulled %s, want %s", image, got, want)
		}
	}
}
