package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWorkloadsBecomeReady(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	web, agent := deployment(namespace, "web", 20, podSpec("v1")), daemonSet(namespace, "agent", podSpec("v1"))
	create(t, web, agent)
	awaitDeployment(t, web)
	nodes := realNodes(t)
	awaitDaemonSet(t, agent, len(nodes))

	var agents corev1.PodList
	if err := cluster.List(t.Context(), &agents, client.InNamespace(namespace), client.MatchingLabels{"app": "agent"}); err != nil {
		t.Fatal(err)
	}
	on := map[string]bool{}
	for _, pod := range agents.Items {
		on[pod.Spec.NodeName] = true
	}
	if len(on) != len(nodes) {
		t.Errorf("the daemon set runs on %v, want each of %v", on, nodes)
	}
}

func TestSetImageRestartsInPlace(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	web := pod(namespace, "web", podSpec("v1"))
	create(t, web)
	awaitPod(t, web)
	restartInPlace(t, web)
	awaitAnswer(t, "http://"+web.Status.PodIP+":8080", "v2")
}

// restartInPlace changes the image of the ready pod from v1 to v2, and checks that the same pod gets one new container.
func restartInPlace(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	before := pod.DeepCopy()
	kubectl(t, "-n", pod.Namespace, "set", "image", "pod/"+pod.Name, "app="+image("v2"))
	eventually(t, "the container is Ready with its new image", func(ctx context.Context) (bool, string) {
		if err := fetch(ctx, pod); err != nil {
			return false, err.Error()
		}
		return pod.Status.ContainerStatuses[0].Image == image("v2") && isReady(pod), describe(pod)
	})

	was, is := before.Status.ContainerStatuses[0], pod.Status.ContainerStatuses[0]
	if is.RestartCount != 1 || is.ContainerID == was.ContainerID || is.ImageID == was.ImageID {
		t.Errorf("the container is %+v and was %+v: want one restart, another ID, another image ID", is, was)
	}
	if pod.UID != before.UID || pod.Spec.NodeName != before.Spec.NodeName || pod.Status.PodIP != before.Status.PodIP {
		t.Errorf("the pod is %s on %s with %s, was %s on %s with %s", pod.UID, pod.Spec.NodeName, pod.Status.PodIP,
			before.UID, before.Spec.NodeName, before.Status.PodIP)
	}
}

func TestCrashingContainerIsRestarted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, nil)
	crash := pod(namespace, "crash", podSpec("crash"))
	create(t, crash)
	eventually(t, "the container is in CrashLoopBackOff", func(ctx context.Context) (bool, string) {
		if err := fetch(ctx, crash); err != nil {
			return false, err.Error()
		}
		for _, status := range crash.Status.ContainerStatuses {
			waiting := status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"
			if waiting && status.RestartCount > 0 {
				return true, ""
			}
		}
		return false, describe(crash)
	})
	last := crash.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.ExitCode != 1 {
		t.Errorf("the last state is %+v, want terminated with exit code 1", last)
	}
}

// A restricted namespace admits only pods with a seccomp profile, which needs a runc with seccomp.
func TestRestrictedNamespace(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	spec := podSpec("v1")
	err := cluster.Create(t.Context(), pod(namespace, "loose", spec), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("creating a pod without restrictions gives error %v, want one of PodSecurity", err)
	}
	yes, no := true, false
	spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   &yes,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	strict := pod(namespace, "strict", spec)
	create(t, strict)
	awaitPod(t, strict)
}

// awaitAnswer waits until url answers with the version.
func awaitAnswer(t *testing.T, url, version string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s answers %s", url, version), func(ctx context.Context) (bool, string) {
		got, err := get(ctx, url)
		return err == nil && got == version, fmt.Sprintf("%q, error %v", got, err)
	})
}
