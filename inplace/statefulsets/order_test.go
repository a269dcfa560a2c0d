package statefulsets_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/steps"
)

// moved returns the steps by which a pod is updated that stays in service until its containers stop.
func moved(pod, revision, image string) []string {
	return []string{pod + " is updating-in-place app=" + image, pod + " is " + revision + " app=" + image}
}

// drained returns the steps by which a pod is updated that is taken out of service.
func drained(pod, revision, image string) []string {
	return []string{"out " + pod, pod + " is " + revision + " app=" + image}
}

func TestSteps(t *testing.T) {
	two := func(a, b string) []string { return []string{a, b} }
	for name, test := range map[string]struct {
		replicas int32
		changes  []func(*fixture.Members)
		want     [][]string
	}{
		"OrderedReady": {3, nil, [][]string{drained("db-2", "db-2", "v2"), drained("db-1", "db-2", "v2"), drained("db-0", "db-2", "v2")}},
		"Parallel": {3, []func(*fixture.Members){fixture.Parallel},
			[][]string{drained("db-2", "db-2", "v2"), drained("db-1", "db-2", "v2"), drained("db-0", "db-2", "v2")}},
		"native partition":                  {3, []func(*fixture.Members){fixture.Rolling(2, "")}, [][]string{drained("db-2", "db-2", "v2")}},
		"partition beyond the last ordinal": {3, []func(*fixture.Members){fixture.Rolling(7, "")}, nil},
		"maxUnavailable 2 of 5, in batches": {5, []func(*fixture.Members){fixture.Rolling(0, "2")}, [][]string{
			two("out db-4", "out db-3"), two("db-4 is db-2 app=v2", "db-3 is db-2 app=v2"),
			two("out db-2", "out db-1"), two("db-2 is db-2 app=v2", "db-1 is db-2 app=v2"), drained("db-0", "db-2", "v2")}},
		"the last endpoint": {2, []func(*fixture.Members){func(m *fixture.Members) { m.Last("db-1") }},
			[][]string{moved("db-1", "db-2", "v2"), drained("db-0", "db-2", "v2")}},
		"the annotation stayput.dev/partition says nothing": {1, []func(*fixture.Members){func(m *fixture.Members) {
			m.Rollout.Seen.Settings.Partition.Value = "1"
		}}, [][]string{drained("db-0", "db-2", "v2")}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, test.replicas, test.changes...)
			m.Edit(fixture.App{Image: "v2"})
			m.Rest()
			want := slices.Concat(test.want...)
			if len(want) > 0 {
				want = slices.Concat([]string{"mark 2 true false"}, want, []string{"mark 2 false false"})
			}
			m.Expect(want...)
		})
	}
}

func TestTenthOrdinalGoesBeforeTheNinth(t *testing.T) {
	m := fixture.NewMembers(t, 11)
	m.Edit(fixture.App{Image: "v2"})
	for range 5 {
		m.Once()
	}
	m.Expect("mark 2 true false", "out db-10", "db-10 is db-2 app=v2", "out db-9")
}

// TestNextPodWaitsForTheStatus: before the StatefulSet controller has seen that a pod has the update revision, it may delete it.
func TestNextPodWaitsForTheStatus(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	m.Edit(fixture.App{Image: "v2"})
	for range 4 {
		m.Once()
	}
	m.Expect("mark 2 true false", "out db-1", "db-1 is db-2 app=v2")
	for name, test := range map[string]struct {
		revision string
		updated  int32
		begins   bool
	}{
		"it has seen none":           {"db-2", 0, false},
		"it counts the old revision": {"db-1", 1, false},
		"it has seen the pod":        {"db-2", 1, true},
	} {
		m.StatefulSet.Status.UpdateRevision, m.StatefulSet.Status.UpdatedReplicas = test.revision, test.updated
		if begins := len(m.Of().Plan().Steps) > 0; begins != test.begins {
			t.Errorf("%s: the next pod begins: %t", name, begins)
		}
	}
}

// TestLabelsChangeAtOnce: nothing restarts, so no pod waits for another.
func TestLabelsChangeAtOnce(t *testing.T) {
	m := fixture.NewMembers(t, 3)
	m.Ail("db-0")
	m.Edit(fixture.App{Image: "v1", Chart: "2"})
	m.Once()
	m.Once()
	m.Expect("mark 2 true false", "db-2 is db-2 app=v1", "db-1 is db-2 app=v1", "db-0 is db-2 app=v1")
}

func TestResourcesChangeInThatOrder(t *testing.T) {
	m := fixture.NewMembers(t, 2, func(m *fixture.Members) {
		m.Edit(fixture.App{Image: "v1", CPU: "100m"})
		m.StatefulSet.Status.CurrentRevision = "db-2"
		for _, pod := range m.Of().Seen.Pods {
			pod.Labels[inplace.LabelRevisionHash] = "db-2"
			pod.Spec.Containers[0].Resources = m.StatefulSet.Spec.Template.Typed().Spec.Containers[0].Resources
			m.Kubelet(pod)
		}
	})
	m.Edit(fixture.App{Image: "v1", CPU: "200m"})
	m.Rest()
	m.Expect("mark 3 true false", "db-1 is updating-in-place app=v1", "db-1 gets 200m", "db-1 is db-3 app=v1",
		"db-0 is updating-in-place app=v1", "db-0 gets 200m", "db-0 is db-3 app=v1", "mark 3 false false")
}

// TestUndoInTheMiddle: a pod that was only taken out of service is put back.
func TestUndoInTheMiddle(t *testing.T) {
	last := func(m *fixture.Members) { m.Last("db-1") }
	begin := []string{"mark 1 true false", "mark 2 false false"}
	for name, test := range map[string]struct {
		change      func(*fixture.Members)
		plans       int
		there, back []string
	}{
		"it drains": {func(*fixture.Members) {}, 2, []string{"out db-1"}, []string{"back db-1", "mark 2 false false"}},
		"it is patched": {func(*fixture.Members) {}, 3, drained("db-1", "db-2", "v2"), slices.Concat(begin,
			drained("db-1", "db-1", "v1"), []string{"mark 1 false false"})},
		"the last endpoint": {last, 2, moved("db-1", "db-2", "v2")[:1], slices.Concat(begin, moved("db-1", "db-1", "v1"),
			[]string{"mark 1 false false"})},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 2, test.change)
			m.Edit(fixture.App{Image: "v2"})
			for range test.plans {
				m.Once()
			}
			m.Edit(fixture.App{Image: "v1"})
			m.Rest()
			m.Expect(slices.Concat([]string{"mark 2 true false"}, test.there, test.back)...)
			if !apps.IsTrue(m.Member(1), corev1.PodReady) {
				t.Error("db-1 is not Ready")
			}
		})
	}
}

// TestDeadlockIsCured: kubernetes#67250. Natively the StatefulSet controller waits for the pod with the bad image for ever.
func TestDeadlockIsCured(t *testing.T) {
	t.Run("after an update", func(t *testing.T) {
		m := fixture.NewMembers(t, 2)
		m.Edit(fixture.App{Image: "bad"})
		m.Rest()
		m.Expect("mark 2 true false", "out db-1", "db-1 is db-2 app=bad")
		m.Edit(fixture.App{Image: "v1"})
		m.Rest()
		m.Expect("mark 1 true false", "mark 2 false false", "out db-1", "db-1 is db-1 app=v1", "mark 1 false false")
		if !apps.IsTrue(m.Member(1), corev1.PodReady) {
			t.Error("db-1 is not Ready")
		}
	})
	t.Run("at the first deployment", func(t *testing.T) {
		m := fixture.NewMembers(t, 1)
		m.Ail("db-0")
		m.Edit(fixture.App{Image: "v2"})
		m.Once()
		m.Once()
		m.Expect("mark 2 true false") // it may yet become Ready
		m.Member(0).Status.ContainerStatuses[0].State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		m.Sick = ""
		m.Rest()
		m.Expect("out db-0", "db-0 is db-2 app=v2", "mark 2 false false")
	})
}

// TestWhichPodsBegin: an update to v2 of three pods of db-1. It lists which pods are patched first.
func TestWhichPodsBegin(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	ails := func(ordinal int, reason string) func(*fixture.Members) {
		return func(m *fixture.Members) {
			m.Sick = m.Member(ordinal).Name
			fixture.Unready(m.Member(ordinal))
			if reason != "" {
				m.Member(ordinal).Status.ContainerStatuses[0].State = waiting(reason)
			}
		}
	}
	soon := func(ordinals ...int) func(*fixture.Members) {
		return func(m *fixture.Members) {
			m.StatefulSet.Spec.MinReadySeconds = 10
			for _, ordinal := range ordinals {
				apps.Condition(m.Member(ordinal), corev1.PodReady).LastTransitionTime = metav1.NewTime(m.Of().Seen.Now)
			}
		}
	}
	for name, test := range map[string]struct {
		change            func(*fixture.Members)
		ordered, parallel []string
	}{
		"all are Ready":             {change: func(*fixture.Members) {}, ordered: []string{"db-2"}, parallel: []string{"db-2"}},
		"one is not Ready":          {change: ails(0, ""), parallel: []string{"db-0"}},
		"the highest is not Ready":  {change: ails(2, ""), parallel: []string{"db-2"}},
		"one cannot pull its image": {change: ails(0, "ImagePullBackOff"), ordered: []string{"db-0"}, parallel: []string{"db-0"}},
		"one crashes":               {change: ails(1, "CrashLoopBackOff"), ordered: []string{"db-1"}, parallel: []string{"db-1"}},
		"one cannot be created":     {change: ails(1, "CreateContainerConfigError"), ordered: []string{"db-1"}, parallel: []string{"db-1"}},
		"one is being created":      {change: ails(1, "ContainerCreating"), parallel: []string{"db-1"}},
		"one is not Ready, of another revision": {change: func(m *fixture.Members) {
			ails(0, "")(m)
			m.StatefulSet.Status.CurrentRevision = "db-9"
		}, ordered: []string{"db-0"}, parallel: []string{"db-0"}},
		"all are Ready, not for minReadySeconds yet":         {change: soon(0, 1, 2), parallel: []string{"db-2"}},
		"the highest is Ready, not for minReadySeconds yet":  {change: soon(2), parallel: []string{"db-2"}},
		"the lowest is Ready, not for minReadySeconds yet":   {change: soon(0)},
		"the highest is not Ready, the others only just are": {change: func(m *fixture.Members) { ails(2, "")(m); soon(0, 1)(m) }, parallel: []string{"db-2"}},
		"one is missing": {change: func(m *fixture.Members) { m.Lose(0) }},
		"one terminates": {change: func(m *fixture.Members) { m.Member(0).DeletionTimestamp = &metav1.Time{Time: fixture.Start} }},
		"one does not answer": {change: func(m *fixture.Members) {
			fixture.Unready(m.Member(2))
			m.Away("n2")
		}},
		"one is no longer wanted": {change: func(m *fixture.Members) { *m.StatefulSet.Spec.Replicas = 2 },
			ordered: []string{"db-1"}, parallel: []string{"db-1"}},
		"scaled up, and two are missing": {change: func(m *fixture.Members) { *m.StatefulSet.Spec.Replicas = 5 }},
	} {
		for policy, want := range map[string][]string{"OrderedReady": test.ordered, "Parallel": test.parallel} {
			t.Run(name+", "+policy, func(t *testing.T) {
				m := fixture.NewMembers(t, 3)
				if policy == "Parallel" {
					fixture.Parallel(m)
				}
				m.Edit(fixture.App{Image: "v2"})
				m.Once() // the mark
				test.change(m)
				if got := begin(m.Of().Plan()); !slices.Equal(got, want) {
					t.Errorf("these begin: %q, want %q", got, want)
				}
			})
		}
	}
}

// begin returns the pods that the plan takes out of service, or patches.
func begin(plan steps.Plan) []string {
	var names []string
	for _, step := range plan.Steps {
		switch s := step.(type) {
		case steps.SetReady:
			names = append(names, s.Pod.Name)
		case steps.PatchPod:
			names = append(names, s.Pod.Name)
		}
	}
	return names
}

func TestMinReadySecondsCount(t *testing.T) {
	m := fixture.NewMembers(t, 2, func(m *fixture.Members) { m.StatefulSet.Spec.MinReadySeconds = 10 })
	m.Edit(fixture.App{Image: "v2"})
	for range 4 {
		m.Once()
	}
	m.Expect("mark 2 true false", "out db-1", "db-1 is db-2 app=v2")
	apps.Condition(m.Member(1), corev1.PodReady).LastTransitionTime = metav1.NewTime(m.Of().Seen.Now)
	for second := 1; second < 10; second++ {
		if m.Once(); len(m.Steps) > 0 {
			t.Fatalf("Ready for %d s, the steps are %q", second, m.Steps)
		}
	}
	m.Once()
	m.Expect("out db-0")
}
