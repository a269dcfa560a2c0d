package edit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/internal/sample"
)

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
		{"nginx:1" + sample.Digests[0], "docker.io/library/nginx" + sample.Digests[0], true},
		{"r.io/b:1" + sample.Digests[0], "r.io/b:2" + sample.Digests[0], true},
		{"nginx:1" + sample.Digests[0], "docker.io/library/nginx" + sample.Digests[1], false},
		{"nginx:1" + sample.Digests[0], "nginx:1", false},
		{"HOST/b", "docker.io/HOST/b", false},
		{"nginx:1", "nginx:2", false},
		{"r.io/b", "b", false},
		{"", "", false},
	}
	for _, c := range cases {
		if got := SameImage(c.a, c.b); got != c.want {
			t.Errorf("sameImage(%q, %q) is %v", c.a, c.b, got)
		}
	}
}

func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"nginx": "nginx", "nginx:1": "nginx", "nginx" + sample.Digests[0]: "nginx", "nginx:1" + sample.Digests[0]: "nginx",
		"docker.io/library/nginx:1": "docker.io/library/nginx", "localhost:5000/app": "localhost:5000/app",
		"localhost:5000/app:1" + sample.Digests[0]: "localhost:5000/app", "": "",
	} {
		if got := Repository(image); got != want {
			t.Errorf("the repository of %q is %q, want %q", image, got, want)
		}
	}
}

func TestPullsAlways(t *testing.T) {
	for _, test := range []struct {
		policy corev1.PullPolicy
		image  string
		always bool
	}{
		{corev1.PullAlways, "app:1", true}, {"", "app", true}, {"", "app:latest", true}, {"", "app:1", false},
		{corev1.PullIfNotPresent, "app:latest", false}, {corev1.PullNever, "app", false},
	} {
		if got := pullsAlways(test.policy, test.image); got != test.always {
			t.Errorf("%s with policy %q is always pulled: %t", test.image, test.policy, got)
		}
	}
}
