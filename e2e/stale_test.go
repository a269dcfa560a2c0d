//go:build e2e

package e2e

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// staleReplica tests a manager whose cache still shows a pod as it was created. It opens the gate that the leader has closed since. The
// test makes every such write itself, as the manager would make it.
func staleReplica(t *testing.T) {
	s := newStage(t, unending)
	s.followSlices()
	s.create(web(2))
	s.service("web", corev1.ServiceInternalTrafficPolicyCluster)
	s.offered("web")
	before := s.pods("web")
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.wait("a pod to be out of its Service", draining("web"))
	s.opensNewPods()
	s.wait("a pod to be still out of its Service", draining("web"))
	s.kubectl("", "label", ref("web"), drainLabel+"=500ms")
	s.completes("web")
	s.kept("web", before, once)
}

// opensNewPods makes the write that opens the gate, for every pod in every state in which any manager may open it, and checks that each is
// refused.
func (s *stage) opensNewPods() {
	s.Helper()
	tried := 0
	for _, e := range s.recorder.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if !is || !readiness.Unopened(pod) {
			continue
		}
		tried++
		if err := s.patchStatus(podstate.OpenGate(pod, false, time.Now())); !apierrors.IsConflict(err) {
			s.Errorf("opening the gate of pod %s at version %s: %v instead of a conflict", pod.Name, pod.ResourceVersion, err)
		}
	}
	if tried == 0 {
		s.Fatal("no pod was seen before its gate was opened")
	}
}

func (s *stage) patchStatus(step steps.SetGate) error {
	s.Helper()
	body, err := json.Marshal(step.Operations)
	if err != nil {
		s.Fatal(err)
	}
	_, err = clients.CoreV1().Pods(s.namespace).Patch(s.Context(), step.Pod.Name, types.JSONPatchType, body, metav1.PatchOptions{}, "status")
	return err
}
