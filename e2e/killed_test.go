//go:build e2e && removal

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// perKill is how many StatefulSets are being updated when the managers are killed. Each of them counts as a kill.
const perKill = 32

// TestKilled kills all managers for good in the middle of updates of StatefulSets, until $KILLS updates have been in progress then. Half of
// the StatefulSets are OrderedReady. The StatefulSet controller must end each update. The judge checks at every event that no more pods are
// unavailable than the StatefulSet allows. $SEED repeats a test.
func TestKilled(t *testing.T) {
	seed, wanted := numberOf(t, "SEED", uint64(time.Now().Unix())), int(numberOf(t, "KILLS", 20))
	t.Cleanup(func() { restoreManagers(t) })
	states := map[string]int{}
	for round := uint64(0); total(states) < wanted; round++ {
		if !t.Run(fmt.Sprintf("seed %d", seed+round), func(t *testing.T) { killedAtRandom(t, seed+round, states) }) {
			break
		}
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

// killedAtRandom edits StatefulSets one after another, and kills the managers at a random moment. It counts the states of the updates.
func killedAtRandom(t *testing.T, seed uint64, states map[string]int) {
	random := rand.New(rand.NewPCG(seed, 0))
	restoreManagers(t)
	s := &group{newStatefulStage(t, with(with(stateful, drainLabel, "1s"), parallelismLabel, "0"))} // pre-pull pods take longer than updates
	s.create(random)
	s.begin("the end by the native controller", Rules{Created: anyNumber, Deleted: anyNumber})
	s.edit(random)
	for _, state := range s.killManagers() {
		states[state]++
	}
	s.wait("every StatefulSet to be rolled out", rolledOutAll)
}

// group is a namespace with many StatefulSets.
type group struct {
	*stage
}

func nameInGroup(i int) string { return fmt.Sprintf("db-%02d", i) }

// create creates the StatefulSets. Their pods take up to 4 s to stop and to become ready, so that each state of a move lasts in some of
// them.
func (s *group) create(random *rand.Rand) {
	s.Helper()
	for i := range perKill {
		policy := []statefulKnob{policies["OrderedReady"], policies["Parallel"]}[i%2]
		lasting := func(d *appsv1.Deployment) {
			named(nameInGroup(i))(d)
			stopsAfter([]string{"0s", "2s", "4s"}[random.IntN(3)], 10)(d)
			readyAfter("app", []string{"0s", "2s", "4s"}[random.IntN(3)])(d)
		}
		sts := db(2, policy, ofTemplate(lasting))
		sts.Name, sts.Spec.ServiceName = nameInGroup(i), nameInGroup(i)
		s.submitStatefulSet(sts)
	}
	s.wait("every pod to be Ready", rolledOutAll)
}

// rolledOutAll returns nil if all StatefulSets are rolled out and every pod is Ready.
func rolledOutAll(now world) error {
	if len(now.statefulSets) != perKill {
		return fmt.Errorf("there are %d StatefulSets", len(now.statefulSets))
	}
	for _, sts := range now.statefulSets {
		if done, why := membersRolledOut(sts); !done {
			return fmt.Errorf("%s: %s", sts.Name, why)
		}
		for _, pod := range now.members(sts) {
			if !ready(pod) || !hasImages(pod, sts.Spec.Template.Spec) {
				return fmt.Errorf("pod %s is %v and runs %v", pod.Name, pod.Status.Conditions, imagesOf(pod.Spec))
			}
		}
	}
	return nil
}

// edit changes the image of all StatefulSets, and waits for at most the time that most of the updates take.
func (s *group) edit(random *rand.Rand) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, appImage("v2"))
	for i := range perKill {
		if _, err := clients.AppsV1().StatefulSets(s.namespace).Patch(s.Context(), nameInGroup(i), types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	time.Sleep(time.Duration(random.Int64N(int64(8 * time.Second))))
}

// killManagers kills the managers before they can end anything, and keeps them away. It returns the states of the updates in progress.
func (s *group) killManagers() []string {
	s.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(s.Context(), managers)
	if err != nil {
		s.Fatal(err)
	}
	for i := range pods.Items {
		killProcess(s.stage, &pods.Items[i])
	}
	states := s.states()
	removeManagers(s.stage)
	return states
}

// states describes each update that is in progress.
func (s *group) states() []string {
	s.Helper()
	var states []string
	err := s.recorder.until(s.Context(), func(now world) error {
		for _, sts := range now.statefulSets {
			if state := stateOf(now, sts); state != "updated; updated" && state != "old; old" {
				states = append(states, string(sts.Spec.PodManagementPolicy)+": "+state)
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return states
}

// stateOf describes the states of the pods, highest ordinal first.
func stateOf(now world, sts *appsv1.StatefulSet) string {
	var states []string
	for _, pod := range slices.Backward(now.members(sts)) {
		states = append(states, stateOfMember(sts, pod, now.updateRevisionOf(sts)))
	}
	return strings.Join(states, "; ")
}

// stateOfMember describes the state of a pod in its move.
func stateOfMember(sts *appsv1.StatefulSet, pod *corev1.Pod, target *appsv1.ControllerRevision) string {
	patched, moved := hasImages(pod, sts.Spec.Template.Spec), isMemberOf(pod, target)
	state := map[bool]string{true: "patched", false: "old"}[patched]
	if moved {
		state = "updated"
	}
	var also []string
	if !gateOpen(pod) {
		also = append(also, "gate closed")
	}
	if patched && !runsWhatItSays(pod) {
		also = append(also, "the old container runs")
	}
	if !ready(pod) {
		also = append(also, "not Ready")
	}
	if len(also) > 0 {
		state += " (" + strings.Join(also, ", ") + ")"
	}
	return state
}
