package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestKubectlRollout(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	web := deployment(namespace, "web", 3, podSpec("v1"))
	create(t, web)
	rollout := func(command string, flags ...string) string {
		t.Helper()
		return kubectl(t, append([]string{"-n", namespace, "rollout", command, "deployment/web"}, flags...)...)
	}
	awaitRollout := func() {
		t.Helper()
		if status := rollout("status", "--timeout="+patience.String()); !strings.Contains(status, "successfully rolled out") {
			t.Errorf("rollout status says %q", status)
		}
	}

	awaitRollout()
	kubectl(t, "-n", namespace, "set", "image", "deployment/web", "app="+image("v2"))
	awaitRollout()
	awaitImages(t, namespace, image("v2"))
	if history := rollout("history"); !strings.Contains(history, "\n2 ") {
		t.Errorf("rollout history does not list revision 2: %s", history)
	}
	if revision := rollout("history", "--revision=1"); !strings.Contains(revision, image("v1")) {
		t.Errorf("revision 1 does not have image v1: %s", revision)
	}
	rollout("undo")
	awaitRollout()
	awaitImages(t, namespace, image("v1"))
}

// awaitImages waits until all pods, including terminating ones, run one image.
func awaitImages(t *testing.T, namespace, image string) {
	t.Helper()
	eventually(t, "all pods run "+image, func(ctx context.Context) (bool, string) {
		var pods corev1.PodList
		if err := cluster.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		var images []string
		for _, pod := range pods.Items {
			images = append(images, pod.Spec.Containers[0].Image)
		}
		for _, other := range images {
			if other != image {
				return false, fmt.Sprint(images)
			}
		}
		return len(images) > 0, fmt.Sprint(images)
	})
}

// A request's line may come after its answer, and may reach the API server later than the container wrote it: wait for both.
func TestKubectlLogs(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	web := pod(namespace, "web", podSpec("v1"))
	create(t, web)
	awaitPod(t, web)
	lines := []string{"version v1 listens on :8080", "GET /?request=1", "GET /?request=2"}
	awaitLog(t, web, lines[0])
	for i, line := range lines[1:] {
		awaitAnswer(t, fmt.Sprintf("http://%s:8080/?request=%d", web.Status.PodIP, i+1), "v1")
		awaitLog(t, web, line)
	}
	if log := kubectl(t, "-n", namespace, "logs", "web"); !inOrder(log, lines) {
		t.Errorf("the log does not have the lines %q in this order:\n%s", lines, log)
	}
}

func awaitLog(t *testing.T, pod *corev1.Pod, line string) {
	t.Helper()
	eventually(t, "the log of "+pod.Name+" has the line "+line, func(ctx context.Context) (bool, string) {
		log, err := tryKubectl(ctx, "-n", pod.Namespace, "logs", pod.Name)
		return err == nil && strings.Contains(log, line), fmt.Sprintf("%q, error %v", log, err)
	})
}

func inOrder(text string, parts []string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

func TestKubectlExec(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	web := pod(namespace, "web", podSpec("v3"))
	create(t, web)
	awaitPod(t, web)
	eventually(t, "exec prints the version", func(ctx context.Context) (bool, string) {
		got, err := tryKubectl(ctx, "-n", namespace, "exec", "web", "--", "/app", "version")
		return err == nil && strings.TrimSpace(got) == "v3", fmt.Sprintf("%q, error %v", got, err)
	})
}

func TestKubectlEvents(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	create(t, deployment(namespace, "web", 1, podSpec("v1")))
	// One by the scheduler, one by the Deployment controller, one by the kubelet.
	for _, reason := range []string{"Scheduled", "ScalingReplicaSet", "Started"} {
		eventually(t, "an event "+reason, func(ctx context.Context) (bool, string) {
			events, err := tryKubectl(ctx, "-n", namespace, "get", "events")
			return err == nil && strings.Contains(events, reason), fmt.Sprintf("%s, error %v", events, err)
		})
	}
}
