package daemonsets_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// fleetThatPulls returns a DaemonSet on three nodes, that many of which pull at a time. It is at that partition, and its image is edited.
func fleetThatPulls(t *testing.T, parallel int, partition, image string) *fixture.Fleet {
	f := fixture.NewFleet(t, 3)
	f.AtPartition(partition).PullsFirst(parallel)
	f.Edit(fixture.App{Image: image})
	return f
}

// tells demands the phase and message of the next plan.
func tells(t *testing.T, f *fixture.Fleet, phase steps.Phase, message string) {
	t.Helper()
	if plan := f.Once(); plan.Phase != phase || plan.Message != message {
		t.Errorf("the update is %s %q, not %s %q", plan.Phase, plan.Message, phase, message)
	}
}

// TestPartitionThatKeepsAllPullsImages: every node pulls, one at a time, and nothing restarts until the partition is lowered.
func TestPartitionThatKeepsAllPullsImages(t *testing.T) {
	f := fleetThatPulls(t, 1, "100%", "v2")
	tells(t, f, steps.PhaseUpdating, "mark the update revision")
	tells(t, f, steps.PhaseUpdating, "0 of 3 pods updated, 0 in progress; new images on 0 of 3 nodes; waiting for image v2 on node n1")
	tells(t, f, steps.PhaseUpdating, "0 of 3 pods updated, 0 in progress; new images on 1 of 3 nodes; waiting for image v2 on node n2")
	f.Rest()
	f.Expect("mark 1 false false", "mark 2 true false", "pull n1", "pull n2", "pull n3")
	tells(t, f, steps.PhasePartition, "waiting at partition 100%: 0 of 3 pods updated; new images on 3 of 3 nodes")
	f.AtPartition("2").Rest()
	f.Expect("out p1", "p1 is 2 app=v2", "drop n2", "drop n3", "drop n1")
	tells(t, f, steps.PhasePartition, "waiting at partition 2: 1 of 3 pods updated")
}

// TestPartitionThatKeepsAll: which nodes pull, and what the update waits for then.
func TestPartitionThatKeepsAll(t *testing.T) {
	for name, test := range map[string]struct {
		partition, image string
		change           func(*fixture.Fleet)
		steps            []string
		phase            steps.Phase
		message          string
	}{
		"as a number": {"3", "v2", nil, []string{"pull n1", "pull n2", "pull n3"}, steps.PhasePartition,
			"waiting at partition 3: 0 of 3 pods updated; new images on 3 of 3 nodes"},
		"a node has the image": {"100%", "v2", func(f *fixture.Fleet) {
			f.Pull.Nodes[1].Status.NodeInfo.KubeletVersion = "v1.34.9" // newer ones may ask the registry all the same
			f.Pull.Nodes[1].Status.Images = []corev1.ContainerImage{{Names: []string{"docker.io/library/v2:latest"}}}
			f.Seen.Pods[1].Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
		}, []string{"pull n1", "pull n3"}, steps.PhasePartition,
			"waiting at partition 100%: 0 of 3 pods updated; new images on 3 of 3 nodes"},
		"a node cannot mount images": {"100%", "v2", func(f *fixture.Fleet) { f.Pull.Nodes[1].Status.NodeInfo.OperatingSystem = "windows" },
			[]string{"pull n1", "pull n3"}, steps.PhasePartition,
			"waiting at partition 100%: 0 of 3 pods updated; new images on 2 of 3 nodes"},
		"an image that does not exist": {"100%", "bad", nil, []string{"pull n1", "pull n2", "pull n3"}, steps.PhaseUpdating,
			"0 of 3 pods updated, 0 in progress; new images on 0 of 3 nodes; waiting for image bad on node n1: bad: not found"},
		"nothing is pulled first": {"100%", "v2", func(f *fixture.Fleet) { f.Pull.Parallel = 0 }, nil, steps.PhasePartition,
			"waiting at partition 100%: 0 of 3 pods updated"},
		"an invalid one": {"all", "v2", nil, nil, steps.PhaseStalled,
			`waiting for a valid partition: annotation stayput.dev/partition: "all" is neither a number nor 0% to 100%`},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleetThatPulls(t, 3, test.partition, test.image)
			if test.change != nil {
				test.change(f)
			}
			f.Rest()
			f.Expect(append([]string{"mark 1 false false", "mark 2 true false"}, test.steps...)...)
			tells(t, f, test.phase, test.message)
		})
	}
}

// TestDrainOfNodeThatPulled: the pre-pull pod is evicted, and no other takes its place until the node is uncordoned. Otherwise a drain that
// looks again would never end.
func TestDrainOfNodeThatPulled(t *testing.T) {
	f := fleetThatPulls(t, 3, "100%", "v2")
	f.Rest()
	f.Expect("mark 1 false false", "mark 2 true false", "pull n1", "pull n2", "pull n3")
	f.Pull.Nodes[1].Spec.Unschedulable = true
	f.Rest()
	f.Expect()
	f.Pull.PrePullPods = slices.Delete(f.Pull.PrePullPods, 1, 2)
	f.Rest()
	f.Expect()
	tells(t, f, steps.PhasePartition, "waiting at partition 100%: 0 of 3 pods updated; new images on 2 of 3 nodes")
	f.Pull.Nodes[1].Spec.Unschedulable = false
	f.Rest()
	f.Expect("pull n2")
}

// TestMissingPodsComeBeforeImages: a quota or a node may have no room for a pod besides the pre-pull pods, which stay for as long as the
// partition does.
func TestMissingPodsComeBeforeImages(t *testing.T) {
	f := fleetThatPulls(t, 3, "100%", "v2")
	f.Rest()
	f.Steps = nil
	lost := f.Seen.Pods[2]
	f.Seen.Pods = f.Seen.Pods[:2]
	f.Rest()
	f.Expect("drop n1", "drop n2", "drop n3")
	f.Seen.Pods = append(f.Seen.Pods, lost)
	f.Rest()
	f.Expect("pull n1", "pull n2", "pull n3")
}

// TestPodTellsThatItsNodePulls: a pod at the partition waits for its node first.
func TestPodTellsThatItsNodePulls(t *testing.T) {
	f := fleetThatPulls(t, 1, "100%", "bad")
	f.Rest()
	f.Once()
	for pod, want := range []string{"its node to pre-pull images: bad: not found", "the partition to be lowered or removed"} {
		if told := f.PodProgress()[pod]; told.Phase != podstate.AtPartition || told.Awaits != want {
			t.Errorf("%s is %s and waits for %q, not %q", told.Pod.Name, told.Phase, told.Awaits, want)
		}
	}
}

// TestUndoWhereImagesArePulled: the pre-pull pods go.
func TestUndoWhereImagesArePulled(t *testing.T) {
	f := fleetThatPulls(t, 3, "100%", "v2")
	f.Rest()
	f.Steps = nil
	f.Edit(fixture.App{Image: "v1"})
	f.Rest()
	f.Expect("drop n1", "drop n2", "drop n3", "mark 1 false false", "mark 2 false false")
	f.UpdatedAll("1", "app=v1")
}

// TestPartitionIsRaisedToAll: the pod that has its turn goes on, and the nodes of the others pull.
func TestPartitionIsRaisedToAll(t *testing.T) {
	f := fleetThatPulls(t, 1, "0", "v2")
	for range 4 {
		f.Once()
	}
	f.Expect("mark 1 false false", "mark 2 true false", "pull n1", "out p1", "pull n2", "p1 is 2 app=v2")
	f.AtPartition("100%").Rest()
	f.Expect("pull n3", "drop n1")
}

// TestPodThatHasMovedIsNotKeptFromPulling: it is not at the partition, so it gets the next image, although the nodes of the others keep
// their pre-pull pods.
func TestPodThatHasMovedIsNotKeptFromPulling(t *testing.T) {
	f := fleetThatPulls(t, 1, "2", "v2")
	f.DaemonSet.Annotations = map[string]string{inplace.AnnotationCanaryNodes: "canary"}
	f.Pull.Nodes[2].Labels = map[string]string{"canary": ""}
	f.Rest()
	f.Expect("mark 1 false false", "mark 2 true false", "pull n3", "out p3", "p3 is 2 app=v2", "drop n3")
	delete(f.DaemonSet.Annotations, inplace.AnnotationCanaryNodes)
	f.AtPartition("100%").Edit(fixture.App{Image: "v3"})
	f.Rest()
	f.Expect("mark 3 true false", "mark 2 false false", "pull n1", "pull n2", "pull n3", "out p3", "p3 is 3 app=v3", "drop n3")
}
