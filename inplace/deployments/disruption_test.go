package deployments_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// protected is a Deployment of 4 of which 2 may be unavailable, in the middle of an update: p and q have the update revision, r and s the
// old one. A PodDisruptionBudget requires so many healthy pods of them, and the disruption controller has counted so many.
func protected(required, counted int32, changes ...func(*deployments.Rollout)) *deployments.Rollout {
	rollout := twoOfFour(nil, nil, nil, nil)
	for _, change := range changes {
		change(rollout)
	}
	rollout.Seen.Disruption = fixture.Protected(required, counted, rollout.Seen.Pods)
	return rollout
}

// pod changes one of the pods.
func pod(i int, change func(*corev1.Pod)) func(*deployments.Rollout) {
	return func(r *deployments.Rollout) { change(r.Seen.Pods[i]) }
}

// TestBudgetsAreRespected: a pod that is Ready is taken out of service only if the PodDisruptionBudget allows it, and the plan says so.
func TestBudgetsAreRespected(t *testing.T) {
	beside := func(r *deployments.Rollout) { // pods of another workload under the same PodDisruptionBudget
		r.Seen.Disruption.Pods = append(r.Seen.Disruption.Pods, fixture.PatchedOut())
	}
	last := func(r *deployments.Rollout) {
		r.Seen.Endpoints = podstate.Endpoints{"r": {LastOf: "web"}, "s": {LastOf: "api"}}
	}
	relabelled := func(r *deployments.Rollout) {
		r.Deployment.Spec.Template = fixture.App{Image: "v1", Chart: "2"}.Template()
		r.ReplicaSets[1].Spec.Template = r.Deployment.Spec.Template
		r.Seen.DryRun = fixture.Admitted(r.UpdateRevision())
		for _, pod := range r.Seen.Pods {
			pod.Spec.Containers = r.Deployment.Spec.Template.Typed().Spec.Containers
			pod.Status.ContainerStatuses[0].Image, pod.Status.ContainerStatuses[0].ImageID = "v1", "sha256:v1"
		}
	}
	for name, test := range map[string]struct {
		rollout *deployments.Rollout
		beside  bool
		steps   string
		phase   steps.Phase
		waits   string
	}{
		"two may go":                 {protected(2, 4), false, "out r, out s", steps.PhaseUpdating, ""},
		"one may go":                 {protected(3, 4), false, "out r", steps.PhaseUpdating, "3 of 3 required pods are healthy"},
		"none may go":                {protected(4, 4), false, "", steps.PhaseBudget, "4 of 4 required pods are healthy"},
		"not counted yet":            {protected(3, 3), false, "", steps.PhaseBudget, "the disruption controller has counted 3 of 3"},
		"one of another goes":        {protected(4, 5), true, "", steps.PhaseBudget, "4 of 4 required pods are healthy"},
		"one is out, and one may":    {protected(3, 4, pod(2, fixture.Out)), false, "leave", steps.PhaseMoving, "pods change"},
		"last endpoints, one may go": {protected(3, 4, last), false, "move r", steps.PhaseUpdating, "3 of 3 required pods are healthy"},
		"last endpoints, none":       {protected(4, 4, last), false, "", steps.PhaseBudget, "4 of 4 required pods are healthy"},
		"not Ready":                  {protected(4, 3, pod(2, fixture.Unready)), false, "out r", steps.PhaseUpdating, "3 of 4 required pods"},
		"labels only":                {protected(4, 4, relabelled), false, "leave", steps.PhaseMoving, ""},
		"the deadline has passed": {protected(4, 4, func(r *deployments.Rollout) {
			deployments.RemoveCondition(&r.Deployment.Status, "Progressing")
			deployments.SetCondition(&r.Deployment.Status, deployments.NewCondition("Progressing", corev1.ConditionFalse, deployments.ReasonTimedOut,
				`ReplicaSet "web-b" has timed out progressing.`, fixture.Start))
		}), false, "status", steps.PhaseStalled, "4 of 4 required pods are healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			test.rollout.Seen.Batches = nil
			if test.beside {
				beside(test.rollout)
			}
			plan := test.rollout.Plan()
			planned := fixture.Brief(plan.Steps)
			if test.steps == "leave" {
				planned = map[bool]string{true: "leave"}[strings.Contains(planned, "2 → ")]
			}
			if planned != test.steps || plan.Phase != test.phase || !strings.Contains(plan.Message, test.waits) ||
				test.waits == "" && strings.Contains(plan.Message, "PodDisruptionBudget") {
				t.Errorf("%s %q, steps %q; want %s %q, steps %q", plan.Phase, plan.Message, planned, test.phase, test.waits, test.steps)
			}
			waiting := plan.WaitsFor(steps.FilterBudget)
			if waits := len(waiting) > 0 && waiting[0].For == "web"; waits != (test.waits != "") {
				t.Errorf("it waits for %v", waiting)
			}
		})
	}
}

// TestTheStatusSaysWhichBudget: when the deadline has passed, the status says what the update waits for, in the plan's words.
func TestTheStatusSaysWhichBudget(t *testing.T) {
	r := protected(4, 4)
	r.Seen.Batches = nil
	r.Seen.Now = r.Seen.Now.Add(time.Hour)
	want := "waiting for PodDisruptionBudget web, which allows no disruption: 4 of 4 required pods are healthy"
	for _, step := range r.Plan().Steps {
		if status, is := step.(steps.PatchStatus); is {
			for _, condition := range status.Status.Conditions {
				if strings.Contains(condition.Message, want) {
					return
				}
			}
			t.Fatalf("the status is %+v", status.Status.Conditions)
		}
	}
	t.Fatal("no status is written")
}

// TestProgressSaysWhichBudget: a pod that a PodDisruptionBudget keeps says so.
func TestProgressSaysWhichBudget(t *testing.T) {
	r := protected(4, 4)
	want := "PodDisruptionBudget web, which allows no disruption: 4 of 4 required pods are healthy"
	for i, progress := range r.PodProgress() {
		if says := progress.Awaits == want; says != (i > 1) {
			t.Errorf("pod %s waits for %q", progress.Pod.Name, progress.Awaits)
		}
	}
}

// TestSurgePodsUnderABudget: a surge pod is one healthy pod more than the PodDisruptionBudget requires, so one pod may restart. It is
// removed when that is allowed; in any case when all pods are healthy, since the workload wants no more of them.
func TestSurgePodsUnderABudget(t *testing.T) {
	for name, test := range map[string]struct {
		required, counted int32
		pod               func(*corev1.Pod)
		goes              bool
	}{
		"one is required":                  {1, 2, nil, true},
		"not counted yet":                  {1, 1, nil, false},
		"more are required than there are": {2, 2, nil, true},
		"another is not healthy":           {2, 1, fixture.Unready, false},
	} {
		r := oneAndSurge(test.pod, nil, "b")
		r.Seen.Disruption = fixture.Protected(test.required, test.counted, r.Seen.Pods)
		if goes := strings.Contains(fixture.Brief(r.Plan().Steps), "move surge"); goes != test.goes {
			t.Errorf("%s: the surge pod goes: %t, want %t: %q", name, goes, test.goes, fixture.Brief(r.Plan().Steps))
		}
	}
}

// TestAuxiliaryContainersNeedAllowance: a pod in which only auxiliary containers restart is not Ready meanwhile, though it is not drained.
func TestAuxiliaryContainersNeedAllowance(t *testing.T) {
	for required, want := range map[int32]string{0: "move p", 1: ""} {
		r := fixture.New(1, fixture.App{Image: "v1", Sidecar: "s2"})
		r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
		r.Deployment.Annotations[inplace.AnnotationAuxiliary] = "side"
		a, b := fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v1", Sidecar: "s1"}, 1), fixture.ReplicaSetOf(r, "b",
			fixture.App{Image: "v1", Sidecar: "s2"}, 0)
		a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
		fixture.PodOf(r, "p", a)
		r.Seen.Disruption = fixture.Protected(required, 1, r.Seen.Pods)
		if planned := strings.TrimSuffix(fixture.Brief(r.Plan().Steps), ", status"); strings.TrimPrefix(planned, "status, ") != want &&
			strings.TrimSuffix(planned, "status") != want {
			t.Errorf("%d required: %q, want %q", required, planned, want)
		}
	}
}

// TestBudgetThatNoSurgePodHelps: there are no more surge pods than pods beyond those that may be unavailable. Where there are none, an edit
// tells that a PodDisruptionBudget never allows a restart.
func TestBudgetThatNoSurgePodHelps(t *testing.T) {
	for name, test := range map[string]struct {
		maxUnavailable, maxSurge, required int32
		warns                              bool
	}{
		"one surge pod":            {3, 2, 4, false},
		"no surge pod":             {4, 2, 4, true},
		"as many as pods":          {0, 9, 7, false},
		"as many as pods, too few": {0, 9, 8, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := protected(test.required, 4)
			r.Seen.Settings.Surge = inplace.SurgeReplace
			rolling := r.Deployment.Spec.Strategy.RollingUpdate
			rolling.MaxUnavailable, rolling.MaxSurge = new(intstr.FromInt32(test.maxUnavailable)), new(intstr.FromInt32(test.maxSurge))
			if told := r.DecideEdit(r.ReplicaSets[0].Spec.Template).Budget; (told != "") != test.warns {
				t.Errorf("it tells %q", told)
			}
		})
	}
}
