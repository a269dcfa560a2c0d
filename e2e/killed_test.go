//go:build e2e && removal

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// perKill is how many workloads are being updated when the managers are killed. Each of them counts as a kill.
const perKill = 24

// takenBackLate is how long a pod may stay out of service if no manager answers, on a machine with 40 processes for each processor. There a
// kubelet may come to a pod only after several of its rounds.
const takenBackLate = 75 * time.Second

// TestKilled kills all managers for good in the middle of updates, until $KILLS updates have been in progress then. The workloads are
// Deployments, DaemonSets, and StatefulSets of both pod management policies, half of them behind Services. Soon no pod is out of
// service any more, and the native controllers end each update. The judge checks at every event that at most one pod more is
// unavailable than the workload allows. $SEED repeats a test.
func TestKilled(t *testing.T) {
	seed, wanted := numberOf(t, "SEED", uint64(time.Now().Unix())), int(numberOf(t, "KILLS", 20))
	t.Logf("seed %d", seed)
	t.Cleanup(func() { restoreManagers(t) })
	restoreManagers(t)
	random := rand.New(rand.NewPCG(seed, 0))
	unpulled := with(stateful, parallelismSetting, "0") // pre-pull pods take longer than updates
	s := &group{scenario: newStatefulScenario(t, with(unpulled, drainSetting, "2s"))}
	s.create(random)
	states := map[string]int{}
	for total(states) < wanted {
		restoreManagers(t)
		s.killedAtRandom(random, states)
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		t.Logf("%4d × %s", states[state], state)
	}
	t.Logf("%d updates in progress when the managers were killed", total(states))
}

func total(states map[string]int) int {
	sum := 0
	for _, count := range states {
		sum += count
	}
	return sum
}

// killedAtRandom edits all workloads, and kills the managers at a random moment. It counts the states of the updates.
func (s *group) killedAtRandom(random *rand.Rand, states map[string]int) {
	s.Helper()
	s.begin("the end by the native controllers", Rules{Created: anyNumber, Deleted: anyNumber, Spare: 1})
	s.edit(random)
	killed := s.killManagers()
	for _, state := range killed {
		states[state]++
	}
	s.Logf("%d updates are in progress as the managers are killed, %d with those before", len(killed), total(states))
	s.noneStaysOutFor(takenBackLate, time.Now())
	s.rollOut()
}

// group is a namespace with many workloads.
type group struct {
	*scenario
	names []string
	// edits is how often all workloads have been edited.
	edits int
}

// image returns the image of the last edit.
func (s *group) image() string { return appImage(fmt.Sprintf("v%d", 1+s.edits%9)) }

// create creates workloads of each kind in turns. Their pods take up to 4 s to stop and to become ready, so that each state of a move lasts
// in some of them.
func (s *group) create(random *rand.Rand) {
	s.Helper()
	for i := range perKill {
		name := fmt.Sprintf("app-%02d", i)
		delays := []string{"0s", "2s", "4s"}
		options := []option{named(name), stopsAfter(delays[random.IntN(3)], 10), readyAfter("app", delays[random.IntN(3)])}
		s.names = append(s.names, s.submitOne(i%4, name, options))
		if i%8 < 4 {
			s.service(s.names[i], corev1.ServiceInternalTrafficPolicyCluster)
		}
	}
	s.rollOut()
}

// rollOut waits until all workloads are rolled out and every pod is Ready.
func (s *group) rollOut() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), removalPatience)
	defer cancel()
	err := s.recorder.until(ctx, func(now world) error { return now.rolledOut(s.names, false) })
	if err != nil {
		s.Fatalf("waited in vain for every workload to be rolled out: %v", err)
	}
}

// edit changes the image of all workloads at once, and waits until a random number of their pods is updated, at most one for each.
func (s *group) edit(random *rand.Rand) {
	s.Helper()
	s.edits++
	var edits errgroup.Group
	for _, name := range s.names {
		edits.Go(func() error { return s.tryImage(s.Context(), name, s.image()) })
	}
	if err := edits.Wait(); err != nil {
		s.Fatal(err)
	}
	s.updated(random.IntN(len(s.names) + 1))
}

// updated waits until that many pods are updated.
func (s *group) updated(pods int) {
	s.Helper()
	s.wait(fmt.Sprintf("%d updated pods", pods), func(now world) error {
		updated := 0
		for _, of := range now.workloads() {
			for _, pod := range of.pods {
				if imagesOf(pod.Spec)["app"] == s.image() && of.updated(pod) {
					updated++
				}
			}
		}
		if updated < pods {
			return fmt.Errorf("there are %d", updated)
		}
		return nil
	})
}

// killManagers kills the managers before they can end anything, and keeps them away. It returns the states of the updates in progress.
func (s *group) killManagers() []string {
	s.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(s.Context(), managers)
	if err != nil {
		s.Fatal(err)
	}
	for i := range pods.Items {
		if process := managerProcess(s.scenario, &pods.Items[i]); process != 0 { // a probe may just have ended it
			kill(s.scenario, process)
		}
	}
	states := s.states()
	removeManagers(s.scenario)
	return states
}

// states describes each update that is in progress.
func (s *group) states() []string {
	s.Helper()
	var states []string
	err := s.recorder.until(s.Context(), func(now world) error {
		for _, of := range now.workloads() {
			if state := s.stateOf(of); state != "" {
				states = append(states, state)
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return states
}

// stateOf describes the states of the pods of a workload, which are all old while its update has not begun. It is empty if that is over.
func (s *group) stateOf(of workload) string {
	var states []string
	for _, pod := range of.pods {
		states = append(states, s.stateOfPod(of, pod))
	}
	slices.Sort(states)
	if each := slices.Compact(slices.Clone(states)); len(each) == 1 && each[0] == "updated" && of.complete() == nil {
		return ""
	}
	return kindOfWorkloadOf(of) + ": " + strings.Join(states, "; ")
}

// kindOfWorkloadOf returns the kind of a workload, or the pod management policy of a StatefulSet.
func kindOfWorkloadOf(of workload) string {
	switch object := of.Object.(type) {
	case *appsv1.DaemonSet:
		return "DaemonSet"
	case *appsv1.StatefulSet:
		return string(object.Spec.PodManagementPolicy)
	}
	return "Deployment"
}

// stateOfPod describes the state of a pod in its move.
func (s *group) stateOfPod(of workload, pod *corev1.Pod) string {
	patched := imagesOf(pod.Spec)["app"] == s.image()
	state := map[bool]string{true: "patched", false: "old"}[patched]
	if of.updated(pod) {
		state = "updated"
	}
	var also []string
	if patched && !runsWhatItSays(pod) {
		also = append(also, "the old container runs")
	}
	switch {
	case isOut(pod):
		also = append(also, "out of service")
	case !ready(pod):
		also = append(also, "not Ready")
	}
	if len(also) > 0 {
		state += " (" + strings.Join(also, ", ") + ")"
	}
	return state
}
