package statefulsets_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestMembersPastTheWebhooks: a pod of a StatefulSet need not have a gate. One that was created in the middle of an update without a
// webhook being asked shows a bypass, with either policy. After the second one the update falls back.
func TestMembersPastTheWebhooks(t *testing.T) {
	unasked := func(pod *corev1.Pod) { pod.Annotations, pod.Spec.ReadinessGates = nil, nil }
	admitted := func(*corev1.Pod) {}
	gated := func(pod *corev1.Pod) {
		pod.Annotations, pod.Spec.ReadinessGates = nil, []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}
	}
	for name, test := range map[string]struct {
		change       func(*fixture.Members)
		higher       func(*corev1.Pod)
		again        func(*corev1.Pod)
		bypass, held bool
	}{
		"OrderedReady, asked":     {func(*fixture.Members) {}, admitted, admitted, false, true},
		"OrderedReady, one":       {func(*fixture.Members) {}, unasked, admitted, true, true},
		"OrderedReady, one again": {func(*fixture.Members) {}, unasked, unasked, false, false},
		"Parallel, asked":         {fixture.Parallel, gated, admitted, false, true},
		"Parallel, one":           {fixture.Parallel, unasked, gated, true, true},
		"Parallel, one again":     {fixture.Parallel, unasked, unasked, false, false},
		"OnDelete":                {onDeleteInPlace, unasked, unasked, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 4, test.change)
			m.Edit(fixture.App{Image: "v2"})
			m.Once() // writes the mark
			for age, pod := range map[time.Duration]*corev1.Pod{time.Second: m.Member(2), 2 * podstate.QuietAfterBypass: m.Member(3)} {
				pod.CreationTimestamp = metav1.NewTime(m.Of().Seen.Now.Add(time.Minute - age))
				pod.Labels[inplace.LabelRevisionHash], pod.Spec.Containers[0].Image = "db-2", "v2"
			}
			test.higher(m.Member(3))
			test.again(m.Member(2))
			m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Minute)
			plan := m.Of().Plan()
			if test.bypass && plan.Phase == steps.PhaseWaiting {
				t.Errorf("it waits although all has been quiet since: %s", plan.Message)
			}
			if said := "no webhook was asked about the creation of pod db-3"; (plan.Bypassed == said) != test.bypass ||
				plan.Decision.Held != test.held {
				t.Errorf("bypassed: %q, held: %t", plan.Bypassed, plan.Decision.Held)
			}
			if !test.held && plan.Decision.Reasons[0].Code != inplace.CodeBypassed {
				t.Errorf("it falls back for %s", plan.Decision.Reasons)
			}
		})
	}
}

// TestMemberPastTheWebhooksJustNow: nothing begins until it is clear that there was only one.
func TestMemberPastTheWebhooksJustNow(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	m.Edit(fixture.App{Image: "v2"})
	m.Once() // writes the mark
	created := m.Member(1)
	created.Annotations, created.CreationTimestamp = nil, metav1.NewTime(m.Of().Seen.Now.Add(time.Second))
	created.Labels[inplace.LabelRevisionHash], created.Spec.Containers[0].Image = "db-2", "v2"
	if plan := m.Once(); plan.Phase != steps.PhaseWaiting || len(disrupted(plan.Steps)) > 0 || plan.After <= 0 {
		t.Errorf("it is %s: %s, takes %v, and looks again after %s", plan.Phase, plan.Message, disrupted(plan.Steps), plan.After)
	}
	m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(podstate.QuietAfterBypass)
	plan := m.Once()
	if !slices.Equal(disrupted(plan.Steps), []string{"db-0"}) {
		t.Errorf("later it takes %v: %s", disrupted(plan.Steps), plan.Message)
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
