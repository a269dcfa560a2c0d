package write

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace/steps"
)

// TestTry has a policy that changes the image of every pod that is written.
func TestTry(t *testing.T) {
	for name, test := range map[string]struct {
		policy  func(image string) string
		refused string
	}{
		"no policy":                {func(image string) string { return image }, ""},
		"a policy that idles here": {func(image string) string { return "mirror/" + strings.TrimPrefix(image, "mirror/") }, ""},
		"a policy that repeats itself": {func(image string) string { return "mirror/" + image },
			"container app gets image mirror/mirror/app:2 instead of mirror/app:2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			pod := c.Snapshot().Read.Seen.Pods[0]
			dry := false
			c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch,
				object client.Object, _ client.Patch, options ...client.PatchOption) error {
				dry = len((&client.PatchOptions{}).ApplyOptions(options).DryRun) > 0
				object.(*corev1.Pod).Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: test.policy("mirror/app:2")}}}
				return nil
			}})
			step := steps.PatchPod{Pod: pod, Operations: []jsonpatch.Operation{
				jsonpatch.NewOperation("replace", "/spec/containers/0/image", "mirror/app:2")}}
			err := c.writer().Try(t.Context(), step)
			if is := errors.As(err, new(Refusal)); is != (test.refused != "") || is && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("the error is %v, want %q", err, test.refused)
			}
			if !dry {
				t.Error("it was no dry run")
			}
		})
	}
}

func TestChangesImages(t *testing.T) {
	patch := func(operation, path string) steps.Step {
		return steps.PatchPod{Pod: &corev1.Pod{}, Operations: []jsonpatch.Operation{jsonpatch.NewOperation(operation, path, "app:2")}}
	}
	for _, test := range []struct {
		step steps.Step
		want bool
	}{
		{patch("replace", "/spec/containers/0/image"), true},
		{patch("replace", "/spec/initContainers/1/image"), true},
		{patch("test", "/spec/containers/0/image"), false},
		{patch("replace", "/metadata/labels/image"), false},
		{steps.SetReady{}, false},
	} {
		if got := ChangesImages(test.step); got != test.want {
			t.Errorf("%+v changes images: %t", test.step, got)
		}
	}
}
