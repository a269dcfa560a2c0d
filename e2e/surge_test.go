//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// surgeScenarios checks that surge pods exist during an update of which no pod may be unavailable. The judge checks that no pod is
// unavailable, and that there are at most maxSurge surge pods (Rules.AllAvailable).
func surgeScenarios(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"1 replica":           surgeForOne,
		"broken new version":  surgeBroken,
		"quota, a percentage": surgeRefused,
		"replace":             surgeReplaces,
	})
	nightly(t, map[string]func(*testing.T){
		"scaled down half-way": surgeScaledDown,
		"nodes full half-way":  surgeCrowded,
	})
}

func surgeForOne(t *testing.T) {
	s := newScenario(t, surging)
	s.create(web(1))
	s.inPlaceUnder(surge(1), "web", once, func() { s.setImage("web", "app=v2") })
	s.runs("web", "v2")
}

// surged is the state from which on the surge pod is Ready. From then on the other pods have their turn.
var surged = state{"served by a surge pod too", func(t podCounts) bool { return t.done > 0 && t.untouched+t.moving > 0 }}

// surgeBroken checks that only the surge pod fails if the new version does not run.
func surgeBroken(t *testing.T) {
	s := newScenario(t, surging)
	s.create(web(3))
	before := s.pods("web")
	s.begin("broken", surge(1))
	s.setImage("web", "app=crash")
	s.fails("web", "CrashLoopBackOff")
	s.survived("web", before)
	s.rollout("undo", "web")
	s.completes("web")
	s.kept("web", before, nil)
	s.runs("web", "v1")
}

// surgeScaledDown checks that the pods that are left are those of before.
func surgeScaledDown(t *testing.T) {
	s := newScenario(t, surging)
	s.create(web(3, slow))
	before := s.pods("web")
	s.begin("scaling", Rules{Created: exactly(1), Deleted: exactly(2), AllAvailable: true})
	s.setImage("web", "app=v2")
	s.reaches("web", surged)
	s.kubectl("", "scale", "deployment", "web", "--replicas=2")
	s.completes("web")
	s.runs("web", "v2")
	for uid, pod := range s.pods("web") {
		if before[uid] == nil {
			t.Errorf("surge pod %s is still there", pod.Name)
		}
	}
}

// surgeRefused checks that an update whose maxUnavailable is a percentage goes on without a surge pod, but only after the deadline, and
// with an event.
func surgeRefused(t *testing.T) {
	s := newScenario(t, surging)
	s.create(web(2, progressDeadline(15)))
	s.limitPods(2)
	from := time.Now()
	s.inPlace("web", once, func() {
		s.setImage("web", "app=v2")
		s.reported("Deployment", "InPlaceUpdateStalled")
	})
	if waited := s.firstUnavailable(from); waited < 10*time.Second {
		t.Errorf("a pod was not Ready %.1fs after the edit, the deadline is 15s", waited.Seconds())
	}
}

// surgeCrowded checks that a pending pod is removed instead of the surge pod whose place it waits for, because the ReplicaSet controller
// deletes pending pods first.
func surgeCrowded(t *testing.T) {
	s := newScenario(t, surging)
	s.seats(6)
	s.create(web(4, rolling("0", "2"), slow, seated))
	before := s.pods("web")
	// Outage: one pod is deleted here while up to two restart.
	s.begin("crowded", Rules{Created: exactly(3), Deleted: exactly(3), Outage: true})
	s.setImage("web", "app=v2")
	s.reaches("web", surged)
	s.rollout("pause", "web")
	s.rests("web")
	s.seats(5)
	gone := s.untouched("web")
	s.kubectl("", "delete", "pod", gone.Name)
	s.wait("a pod to find no node", of("web", unplaced))
	s.rollout("resume", "web")
	s.completes("web")
	s.runs("web", "v2")
	delete(before, gone.UID)
	s.survived("web", before)
}

// surgeReplaces checks that surge pods stay in place of as many pods, and that more pods restart at a time than may be unavailable. The
// judge finds no more of them unavailable.
func surgeReplaces(t *testing.T) {
	s := newScenario(t, replacing)
	s.create(web(6, rolling("1", "2"), slow))
	before := s.pods("web")
	s.begin("replace", Rules{Created: exactly(2), Deleted: exactly(2)})
	s.setImage("web", "app=v2")
	s.reaches("web", state{"restarting two at a time", func(t podCounts) bool { return t.moving+t.midway >= 2 }})
	s.completes("web")
	s.runs("web", "v2")
	stayed := 0
	for uid := range s.pods("web") {
		if before[uid] != nil {
			stayed++
		}
	}
	if stayed != 4 {
		t.Errorf("%d of 6 pods stayed, want 4", stayed)
	}
}

func unplaced(now workload) error {
	if slices.ContainsFunc(now.pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" }) {
		return nil
	}
	return errors.New("every pod has one")
}

const seat = "example.com/seat"

// seats sets how many pods can get a seat, an extended resource. All of them are on one node.
func (s *scenario) seats(n int) {
	s.Helper()
	seats := fmt.Sprintf(`{"%s":"%d"}`, seat, n)
	s.kubectl("", "patch", "node", s.realNodes()[0], "--subresource=status", "--type=merge",
		"-p", fmt.Sprintf(`{"status":{"capacity":%s,"allocatable":%s}}`, seats, seats))
}

var seated = taking(seat)

// limitPods puts a quota on the namespace's pods and waits until it is in force.
func (s *scenario) limitPods(pods int64) {
	s.Helper()
	s.kubectl(fmt.Sprintf(podQuota, pods), "apply", "-f", "-")
	hard := resource.NewQuantity(pods, resource.DecimalSI)
	s.eventually("the quota", func(ctx context.Context) error {
		quota, err := clients.CoreV1().ResourceQuotas(s.namespace).Get(ctx, "pods", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if counted := quota.Status.Hard[corev1.ResourcePods]; counted.Cmp(*hard) != 0 {
			return errors.New("its status does not say so yet")
		}
		return nil
	})
}

const podQuota = `
apiVersion: v1
kind: ResourceQuota
metadata:
  name: pods
spec:
  hard:
    pods: %d
`

// firstUnavailable returns the time from a moment until a pod that had been Ready was not Ready.
func (s *scenario) firstUnavailable(moment time.Time) time.Duration {
	s.Helper()
	been := map[types.UID]bool{}
	for _, e := range s.recorder.inOrder() {
		pod, ok := e.object.(*corev1.Pod)
		if !ok || pulls(pod) {
			continue
		}
		if been[pod.UID] && !ready(pod) && e.at.After(moment) {
			return e.at.Sub(moment)
		}
		been[pod.UID] = been[pod.UID] || ready(pod)
	}
	s.Fatal("every pod was always Ready")
	return 0
}
