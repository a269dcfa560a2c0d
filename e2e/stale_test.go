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
	"github.com/stayput/stayput/inplace/steps"
)

// staleLeader tests a manager that still thinks that it leads, and whose cache is behind. It puts a pod back into service that the leader
// has taken out since, or takes one out that is back. The test makes every such write itself, as the manager would make it.
func staleLeader(t *testing.T) {
	s := newScenario(t, unending)
	s.create(web(2))
	before := s.takesOneOut()
	s.refusesStaleWrites()
	s.wait("a pod to be still out of its Service", draining("web"))
	s.kubectl("", "annotate", ref("web"), drainSetting+"=500ms")
	s.completes("web")
	s.refusesStaleWrites()
	s.kept("web", before, once)
}

// refusesStaleWrites makes both writes of Ready for every pod in every state that it has left, and checks that each is refused.
func (s *scenario) refusesStaleWrites() {
	s.Helper()
	left, newest := []*corev1.Pod{}, map[types.UID]*corev1.Pod{}
	for _, e := range s.recorder.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if !is || pulls(pod) || len(pod.Status.Conditions) == 0 {
			continue
		}
		if before := newest[pod.UID]; before != nil {
			left = append(left, before)
		}
		newest[pod.UID] = pod
	}
	if len(left) == 0 {
		s.Fatal("no pod has left a state")
	}
	for _, pod := range left {
		for what, step := range map[string]steps.SetReady{
			"taking out":   podstate.TakeOut(pod, time.Minute, time.Now(), "a test"),
			"putting back": podstate.PutBack(pod, time.Now()),
		} {
			if err := s.patchStatus(step); !apierrors.IsConflict(err) {
				s.Errorf("%s pod %s at version %s: %v instead of a conflict", what, pod.Name, pod.ResourceVersion, err)
			}
		}
	}
}

// patchStatus makes the write in a dry run.
func (s *scenario) patchStatus(step steps.SetReady) error {
	s.Helper()
	body, err := json.Marshal(step.Operations)
	if err != nil {
		s.Fatal(err)
	}
	_, err = clients.CoreV1().Pods(s.namespace).Patch(s.Context(), step.Pod.Name, types.JSONPatchType, body,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
	return err
}

// takesOneOut updates the pods of web behind a Service, and waits until one of them is out of it. It returns the pods of before.
func (s *scenario) takesOneOut() map[types.UID]*corev1.Pod {
	s.Helper()
	s.service("web", corev1.ServiceInternalTrafficPolicyCluster)
	s.offered("web")
	before := s.pods("web")
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.wait("a pod to be out of its Service", draining("web"))
	return before
}
