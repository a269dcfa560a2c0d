//go:build e2e && operators

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestLeaderWorkerSet has LeaderWorkerSet itself, from the folder $LWS, update two groups of two pods in a namespace that asks for updates
// in place. Its StatefulSets are native all the same, so that no group is left with a leader and a worker of different templates.
func TestLeaderWorkerSet(t *testing.T) {
	installGroups(t)
	for _, policy := range []string{"None", "RecreateGroupOnPodRestart"} {
		t.Run(policy, func(t *testing.T) { groupsRecreated(t, policy) })
	}
}

func groupsRecreated(t *testing.T, policy string) {
	s := newStatefulScenario(t, stateful)
	s.eventually("the webhooks of LeaderWorkerSet", func(ctx context.Context) error {
		_, _, err := kubectl(ctx, groups(t, policy), "-n", s.namespace, "apply", "-f", "-")
		return err
	})
	s.haveGroups("v1")
	before := s.recorder.ofGroups()
	s.begin("native", Rules{Created: some, Deleted: some, Outage: true, Orphans: true})
	s.kubectl("", "patch", "leaderworkerset", "llm", "--type=json", "-p", fmt.Sprintf(
		`[{"op":"replace","path":"/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image","value":%q}]`, appImage("v2")))
	s.haveGroups("v2")
	for uid, pod := range s.recorder.ofGroups() {
		if before[uid] != nil {
			t.Errorf("pod %s is still there", pod.Name)
		}
	}
	if ever(s.recorder, isOut) {
		t.Error("a pod was taken out of service")
	}
	s.expectIn(s.workload(statefulSetPrefix + "llm").GetAnnotations()[decisionAnnotation], "LeaderWorkerSet")
	s.reported("StatefulSet", "UpdateRecreatesPods")
}

// haveGroups waits until both groups have that image, and LeaderWorkerSet says that they are updated.
func (s *scenario) haveGroups(tag string) {
	s.Helper()
	s.wait("groups with "+tag, func(w world) error {
		count := 0
		for _, pod := range w.pods {
			if alive(pod) && ready(pod) && imagesOf(pod.Spec)["app"] == appImage(tag) {
				count++
			}
		}
		if count != 4 || len(w.pods) != count {
			return fmt.Errorf("%d of %d pods have it and are Ready", count, len(w.pods))
		}
		return nil
	})
	const counts = `jsonpath={.status.updatedReplicas} {.status.readyReplicas}`
	s.eventually("LeaderWorkerSet to say so", func(ctx context.Context) error {
		said, _, err := kubectl(ctx, "", "-n", s.namespace, "get", "leaderworkerset", "llm", "-o", counts)
		if err == nil && said != "2 2" {
			err = fmt.Errorf("it says %q", said)
		}
		return err
	})
}

// ofGroups returns the live pods by what has arrived.
func (r *Recorder) ofGroups() map[types.UID]*corev1.Pod {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	pods := map[types.UID]*corev1.Pod{}
	for uid, pod := range r.live.pods {
		pods[uid] = pod
	}
	return pods
}

func groups(t *testing.T, policy string) string {
	pod := map[string]any{"containers": []corev1.Container{container("app", 8080)}, "terminationGracePeriodSeconds": 1}
	return manifest(t, map[string]any{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": map[string]any{"name": "llm"},
		"spec": map[string]any{"replicas": 2, "leaderWorkerTemplate": map[string]any{
			"size": 2, "restartPolicy": policy, "workerTemplate": map[string]any{"spec": pod}}},
	})
}

// installGroups installs LeaderWorkerSet by its own manifests, with one replica. It has webhooks for every pod of the cluster, so it is
// removed also after a failure.
func installGroups(t *testing.T) {
	t.Helper()
	image := pushed(t, filepath.Join(os.Getenv("LWS"), "bin", "manager"), 1)
	manifests, _, err := kubectl(t.Context(), "", "kustomize", filepath.Join(os.Getenv("LWS"), "config", "default"))
	if err != nil {
		t.Fatal(err)
	}
	manifests = strings.NewReplacer("us-central1-docker.pkg.dev/k8s-staging-images/lws/lws:main", image(1), "- /manager\n", "- /app\n",
		"replicas: 2\n", "replicas: 1\n").Replace(manifests)
	t.Cleanup(func() {
		if _, _, err := kubectl(context.Background(), manifests, "delete", "--ignore-not-found", "--wait=false", "-f", "-"); err != nil {
			t.Error(err)
		}
	})
	for _, arguments := range [][]string{
		{"apply", "--server-side", "-f", "-"},
		{"-n", "lws-system", "rollout", "status", "deployment/lws-controller-manager", "--timeout=3m"},
	} {
		if _, _, err := kubectl(t.Context(), manifests, arguments...); err != nil {
			t.Fatal(err)
		}
	}
}
