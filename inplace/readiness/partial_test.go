package readiness_test

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
)

// container returns one with that CPU request.
func container(name, image, cpu string) corev1.Container {
	c := corev1.Container{Name: name, Image: image}
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	return c
}

func noted(cpu string) readiness.Resize {
	return readiness.Resize{"app": {Back: edit.Amounts{CPURequest: cpu}}}
}

// TestRevert: only what the mark names goes back, and only what has been written. What admission has made of other containers stays.
func TestRevert(t *testing.T) {
	own := []corev1.Container{container("app", "app:1", "100m"), container("side", "side:1", "100m"), container("gone", "gone:1", "100m")}
	was := func(image string) readiness.Move { return readiness.Move{Back: map[string]string{"app": image}} }
	for name, test := range map[string]struct {
		has  []corev1.Container
		move readiness.Move
		want string
	}{
		"nothing is noted":      {[]corev1.Container{container("app", "app:2", "200m")}, readiness.Move{}, ""},
		"the image was written": {[]corev1.Container{container("app", "app:2", "100m")}, was("app:1"), "app: app:1 "},
		"the image was not": {[]corev1.Container{container("app", "mirror/app:1", "100m")},
			was("mirror/app:1"), ""},
		"another container's": {[]corev1.Container{container("app", "app:2", "100m"), container("side", "mirror/side:1", "200m")},
			was("app:1"), "app: app:1 "},
		"the CPU was written": {[]corev1.Container{container("app", "mirror/app:1", "200m")},
			readiness.Move{Resize: noted("100m")}, "app: 100m "},
		"the CPU was not": {[]corev1.Container{container("app", "app:1", "150m")}, readiness.Move{Resize: noted("150m")}, ""},
	} {
		pod, got := &corev1.Pod{Spec: corev1.PodSpec{Containers: test.has}}, ""
		for _, change := range test.move.Revert(pod, own) {
			got += fmt.Sprintf("%s: %s%s ", change.Container, change.Image.To, change.Resources.To.CPURequest)
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestMatchesRevision(t *testing.T) {
	own := []corev1.Container{container("app", "app:1", "100m"), container("side", "side:1", "100m")}
	for name, test := range map[string]struct {
		move readiness.Move
		want bool
	}{
		"nothing is noted":       {readiness.Move{}, true},
		"its image":              {readiness.Move{Back: map[string]string{"app": "app:1"}}, true},
		"another image":          {readiness.Move{Back: map[string]string{"app": "app:0"}}, false},
		"its CPU":                {readiness.Move{Resize: noted("100m")}, true},
		"other CPU":              {readiness.Move{Resize: noted("150m")}, false},
		"of a container besides": {readiness.Move{Back: map[string]string{"injected": "mesh:1"}}, true},
	} {
		if got := test.move.MatchesRevision(own); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRemaining: an image that has another name than in the pod's own revision is noted by the name there.
func TestRemaining(t *testing.T) {
	own := []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "side", Image: "side:1"}}
	for from, want := range map[string]string{"app:1": "app:1", "docker.io/library/app:1": "app:1", "mirror/app:1": "mirror/app:1"} {
		does := edit.ContainerChanges{{Container: "app", Image: edit.ImageChange{From: from, To: "app:2"}}}
		if got := (readiness.Move{}).Remaining(does, own); !maps.Equal(got, map[string]string{"app": want}) {
			t.Errorf("from %s: %v", from, got)
		}
	}
	does := edit.ContainerChanges{{Container: "app", Image: edit.ImageChange{From: "app:2", To: "app:3"}}}
	first := map[string]string{"app": "app:1"}
	if got := (readiness.Move{Back: first}).Remaining(does, own); !maps.Equal(got, first) {
		t.Errorf("after a first write: %v", got)
	}
}
