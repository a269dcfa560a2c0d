package prepull

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/edit"
)

func TestPullPolicyByDefault(t *testing.T) {
	ofADigest := "@sha256:" + strings.Repeat("a", 64)
	for image, want := range map[string]corev1.PullPolicy{
		"app":                    corev1.PullAlways,
		"localhost:5000/app":     corev1.PullAlways,
		"app:latest":             corev1.PullAlways,
		"app:latest" + ofADigest: corev1.PullAlways, // pointless, but it is the API server's default
		"app:1":                  corev1.PullIfNotPresent,
		"app" + ofADigest:        corev1.PullIfNotPresent,
		"app:1" + ofADigest:      corev1.PullIfNotPresent,
		"App":                    corev1.PullIfNotPresent, // not a valid name, so nothing is known of it
	} {
		if got := pullPolicy(&corev1.Pod{}, edit.ContainerChange{Container: "app", Image: edit.ImageChange{To: image}}); got != want {
			t.Errorf("%s is pulled %s, want %s", image, got, want)
		}
	}
}
