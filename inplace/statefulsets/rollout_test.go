package statefulsets_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// TestDryRunIsOfAnotherName: the pod is what the StatefulSet controller would create with the highest ordinal, apart from its name.
func TestDryRunIsOfAnotherName(t *testing.T) {
	m := fixture.NewMembers(t, 3)
	for _, pod := range m.Fleet.Seen.Pods {
		claimed(m, pod, "data-"+pod.Name)
	}
	m.Edit(fixture.App{Image: "v2"})
	m.Fleet.Seen.DryRun = dryrun.Result{}
	m.Once() // the mark
	asked := m.Of().Plan().DryRun
	if asked == nil {
		t.Fatal("no dry run is asked for")
	}
	var pod corev1.Pod
	if err := json.Unmarshal(asked.Pod, &pod); err != nil {
		t.Fatal(err)
	}
	if pod.Name != "" || pod.GenerateName != "db-" || pod.Spec.Hostname != "db-2" || pod.Spec.Subdomain != "db" ||
		pod.Labels[inplace.LabelRevisionHash] != "db-2" || pod.Labels[inplace.LabelPodName] != "db-2" ||
		pod.Labels[inplace.LabelPodIndex] != "2" {
		t.Errorf("it is %s %s, %s.%s, with labels %v", pod.Name, pod.GenerateName, pod.Spec.Hostname, pod.Spec.Subdomain, pod.Labels)
	}
	if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil ||
		pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-db-2" {
		t.Errorf("its volumes are %+v", pod.Spec.Volumes)
	}
}

// TestIdentityStays: the labels that the controller gives a pod when it creates it are in no template, and stay.
func TestIdentityStays(t *testing.T) {
	m := fixture.NewMembers(t, 1)
	m.Member(0).Labels[inplace.LabelPodName], m.Member(0).Labels[inplace.LabelPodIndex] = "db-0", "0"
	m.Edit(fixture.App{Image: "v2", Chart: "2"})
	m.Rest()
	labels := m.Member(0).Labels
	if labels[inplace.LabelPodName] != "db-0" || labels[inplace.LabelPodIndex] != "0" || labels["chart"] != "2" {
		t.Errorf("its labels are %v", labels)
	}
}

func TestPodProgress(t *testing.T) {
	m := fixture.NewMembers(t, 3, fixture.Rolling(1, ""))
	m.Edit(fixture.App{Image: "v2"})
	m.Once()
	m.Once()
	want := []podstate.PodPhase{podstate.Updating, podstate.Waiting, podstate.AtPartition}
	for i, pod := range m.Of().PodProgress() {
		if pod.Phase != want[i] {
			t.Errorf("%s is %s, %s; want %s", pod.Pod.Name, pod.Phase, pod.Awaits, want[i])
		}
	}
	m.Rest()
	if pods := m.Of().PodProgress(); pods[2].Phase != podstate.AtPartition || m.Of().Unfinished() {
		t.Errorf("in the end %s is %s, and the update is unfinished %t", pods[2].Pod.Name, pods[2].Phase, m.Of().Unfinished())
	}
}

// TestPartitionCountsFromTheFirstOrdinal: as natively, a partition keeps so many pods, not those below an ordinal.
func TestPartitionCountsFromTheFirstOrdinal(t *testing.T) {
	for _, test := range []struct {
		start     int
		partition int32
		want      []string // images of the pods, the lowest ordinal first
	}{
		{5, 0, []string{"v2", "v2", "v2"}},
		{5, 2, []string{"v1", "v1", "v2"}},
		{1, 2, []string{"v1", "v1", "v2"}},
		{5, 7, []string{"v1", "v1", "v1"}},
	} {
		m := fixture.NewMembers(t, 3, fixture.Rolling(test.partition, ""), fixture.From(test.start))
		m.Edit(fixture.App{Image: "v2"})
		m.Rest()
		for i, want := range test.want {
			if got := m.Member(test.start + i).Spec.Containers[0].Image; got != want {
				t.Errorf("partition %d: db-%d has image %s, natively %s", test.partition, test.start+i, got, want)
			}
		}
		if stage := m.Of().Stage(); stage.Kept != min(int(test.partition), 3) || stage.Reached != (test.partition > 0) {
			t.Errorf("from %d on, partition %d: the stage is %+v", test.start, test.partition, stage)
		}
	}
}

// TestRangeMovesAtThePartition: the partition counts from the new first ordinal, and the pod that is not wanted any more is housekeeping.
func TestRangeMovesAtThePartition(t *testing.T) {
	m := fixture.NewMembers(t, 3, fixture.Rolling(2, ""), fixture.From(5))
	m.Edit(fixture.App{Image: "v2"})
	m.Rest()
	m.StatefulSet.Spec.Ordinals.Start = 4
	m.AddNode("n4")
	m.AddMember(4)
	m.Rest()
	for ordinal, want := range map[int]string{5: "v1", 6: "v2", 7: "v2"} {
		if got := m.Member(ordinal).Spec.Containers[0].Image; got != want {
			t.Errorf("db-%d has image %s instead of %s", ordinal, got, want)
		}
	}
	if held, why := m.Of().HoldsDeletion(m.Member(7)); held || why.Code != inplace.CodeHousekeeping {
		t.Errorf("the deletion of db-7 is held %t: %s", held, why.Message)
	}
}

func TestPreview(t *testing.T) {
	for name, test := range map[string]struct {
		changes              []func(*fixture.Members)
		mode                 inplace.Mode
		kept, moving, atTime int
		forbidden, inPlace   bool
	}{
		"all":       {nil, inplace.ModeInPlace, 0, 3, 1, false, true},
		"partition": {[]func(*fixture.Members){fixture.Rolling(2, "3")}, inplace.ModeInPlace, 2, 1, 1, false, true},
		"partition, from 5 on": {[]func(*fixture.Members){fixture.Rolling(2, "3"), fixture.From(5)},
			inplace.ModeInPlace, 2, 1, 1, false, true},
		"in-place-only, asked for": {[]func(*fixture.Members){onDelete}, inplace.ModeInPlaceOnly, 0, 3, 1, true, false},
		"not asked for":            {nil, inplace.ModeNotOptedIn, 0, 3, 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 3, test.changes...)
			before := m.StatefulSet.Spec.Template
			m.Edit(fixture.App{Image: "v2"})
			m.Rollout.Seen.Mode = test.mode
			preview := m.Of().Preview(before)
			if preview.AtPartition != test.kept || preview.Moving() != test.moving || preview.AtATime != test.atTime ||
				preview.Forbidden != test.forbidden || preview.InPlace() != test.inPlace {
				t.Errorf("the preview is %+v", preview)
			}
		})
	}
}

func onDelete(m *fixture.Members) { m.StatefulSet.Spec.UpdateStrategy.Type = "OnDelete" }

// TestFallBackNudgesByAPod: events of ControllerRevisions wake no StatefulSet controller.
func TestFallBackNudgesByAPod(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	m.Edit(fixture.App{Image: "v2"})
	m.Once()
	plan := m.Of().FallBack(inplace.Reason{Code: inplace.CodeRefused, Message: "a policy refuses it"})
	nudged := 0
	for _, step := range plan.Steps {
		if patch, is := step.(steps.PatchPod); is && patch.Why == "nudge the native controller" {
			nudged++
		}
	}
	if nudged != 1 {
		t.Errorf("%d pods are annotated", nudged)
	}
	if again := m.Of().Nudge(); len(again) != 1 {
		t.Errorf("at shutdown there are %d steps", len(again))
	}
}

// TestWithdrawalNudgesByAPod: the user takes back the opt-in in the middle of an update. The controller was refused a deletion, and would
// try again late.
func TestWithdrawalNudgesByAPod(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	m.Edit(fixture.App{Image: "v2"})
	m.Once()
	m.Once()
	m.Rollout.Seen.Mode = inplace.ModeNotOptedIn
	m.Once()
	nudges := func() int {
		count := 0
		for _, pod := range m.Of().Seen.Pods {
			if pod.Annotations[inplace.AnnotationNudged] != "" {
				count++
			}
			delete(pod.Annotations, inplace.AnnotationNudged)
		}
		return count
	}
	if first := nudges(); first != 1 {
		t.Errorf("%d pods are annotated", first)
	}
	m.Rest()
	if again := nudges(); again != 0 || m.Of().UpdateRevision().Labels[inplace.LabelUpdating] != "" {
		t.Errorf("%d pods are annotated again, and the update revision has %v", again, m.Of().UpdateRevision().Labels)
	}
}
