package simulation

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// impatient sets a deadline that is shorter than the containers' grace period.
func impatient(d *apps.Deployment) { d.Spec.ProgressDeadlineSeconds = new(int32(20)) }

// overdueAfter lets all processes act for that long. It returns when the status said that the deadline had passed; 0 if it did not.
func (s *lockstep) overdueAfter(most time.Duration) time.Duration {
	for start := s.now; s.now.Sub(start) < most; s.now = s.now.Add(500 * time.Millisecond) {
		s.round()
		if deployments.Overdue(s.deployment()) {
			return s.now.Sub(start)
		}
	}
	s.check()
	if s.failed != "" {
		s.t.Fatal(s.failed)
	}
	return 0
}

// TestSlowStopIsNoLackOfProgress: natively the next pod starts while another still stops. So the time that a container takes to stop is no
// lack of progress. This holds for images and for resizes.
func TestSlowStopIsNoLackOfProgress(t *testing.T) {
	for name, edit := range map[string]struct{ from, to fixture.App }{
		"image":  {fixture.App{Image: "v1"}, fixture.App{Image: "v2"}},
		"resize": {fixture.App{Image: "v1", CPU: "100m", Renews: true}, fixture.App{Image: "v1", CPU: "200m", Renews: true}},
	} {
		s := newLockstep(t, 2, func(d *apps.Deployment) { impatient(d); d.Spec.Template = edit.from.Template() })
		s.kubelet.stops = 28 * time.Second
		before := sorted(s.pods.objects)
		s.edit("edits", edit.to)
		if after := s.overdueAfter(2 * time.Minute); after != 0 {
			t.Fatalf("%s: the deadline passed after %s: %q", name, after, s.steps)
		}
		s.has(map[string]int{"B": 2})
		s.intact(before)
	}
}

// TestDeadlineAfterASlowStop: the container that starts after the old one has stopped has at least half the deadline, and no more than
// natively.
func TestDeadlineAfterASlowStop(t *testing.T) {
	s := newLockstep(t, 1, impatient)
	s.kubelet.stops = 28 * time.Second
	s.edit("sets an image that does not exist", fixture.App{Image: "bad"})
	if after := s.overdueAfter(2 * time.Minute); after < 38*time.Second || after > 52*time.Second {
		t.Errorf("the deadline passed after %s: %q", after, s.steps)
	}
}

// TestDeadlineOfAContainerThatDoesNotStop: a container that does not stop is a lack of progress once its grace period and the margin for
// its kubelet are over.
func TestDeadlineOfAContainerThatDoesNotStop(t *testing.T) {
	s := newLockstep(t, 1, impatient)
	s.kubelet.stops = time.Hour
	s.edit("sets the image", fixture.App{Image: "v2"})
	if after := s.overdueAfter(3 * time.Minute); after < 50*time.Second || after > 64*time.Second {
		t.Errorf("the deadline passed after %s: %q", after, s.steps)
	}
}

// TestMarkFromTheFutureHoldsNoDeadline: another client may write a mark. A time in the future does not extend the deadline.
func TestMarkFromTheFutureHoldsNoDeadline(t *testing.T) {
	r := fixture.New(1, fixture.App{Image: "v2"})
	pod := fixture.PodOf(r, "p", fixture.ReplicaSetOf(r, "a", fixture.App{Image: "v2"}, 1))
	running := pod.Status.ContainerStatuses[0].ContainerID
	for at, want := range map[time.Duration]time.Time{-time.Second: fixture.Start.Add(39 * time.Second), time.Hour: {}} {
		move := readiness.Move{Containers: map[string]readiness.MovedContainer{"app": {ContainerID: running,
			At: metav1.NewTime(fixture.Start.Add(at))}}}
		if by := move.StopsBy(pod, fixture.Start); !by.Equal(want) {
			t.Errorf("marked %s from now it stops by %s", at, by)
		}
		if until := move.OnTimeUntil(pod, fixture.Start); until.IsZero() != want.IsZero() {
			t.Errorf("marked %s from now it is on time until %s", at, until)
		}
	}
}

func TestLongDrainIsNoLackOfProgress(t *testing.T) {
	s := newLockstep(t, 2, impatient)
	s.settings.Drain = time.Minute
	before := sorted(s.pods.objects)
	s.edit("sets the image", fixture.App{Image: "v2"})
	if after := s.overdueAfter(4 * time.Minute); after != 0 {
		t.Fatalf("the deadline passed after %s: %q", after, s.steps)
	}
	s.has(map[string]int{"B": 2})
	s.intact(before)
}

// TestDeadlineIsRenewed: the native controller computes its deadline from the condition alone, and may look at any moment. So the time in
// it is never older than half the deadline while pods stop, and Stayput does not write it more often than that.
func TestDeadlineIsRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		onTimeUntil, last time.Duration
		renewed           bool
		again             time.Duration
	}{
		"nothing is waited for":              {-time.Hour, -11 * time.Second, false, 10 * time.Second},
		"pods stop":                          {0, -9 * time.Second, false, 2 * time.Second},
		"pods stop, half is over":            {0, -10 * time.Second, true, 11 * time.Second},
		"they stopped a moment ago":          {-3 * time.Second, -9 * time.Second, false, 2 * time.Second},
		"they stopped, half is over":         {-3 * time.Second, -11 * time.Second, true, 18 * time.Second},
		"they stopped before that":           {-12 * time.Second, -11 * time.Second, false, 10 * time.Second},
		"Stayput did not look for very long": {0, -time.Hour, true, 11 * time.Second},
	} {
		d := fixture.NewDeployment(1, fixture.App{Image: "v2"})
		impatient(d)
		d.Status.Conditions = []appsv1.DeploymentCondition{deployments.NewCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue,
			deployments.ReasonUpdated, "", fixture.Start.Add(c.last))}
		f := deployments.StatusFormula{Deployment: d, OnTimeUntil: fixture.Start.Add(c.onTimeUntil), Now: fixture.Start}
		status := f.NativeStatus()
		got, want := apps.DeploymentCondition(status, appsv1.DeploymentProgressing), d.Status.Conditions[0]
		if c.renewed {
			want.LastUpdateTime = metav1.NewTime(f.OnTimeUntil)
		}
		if *got != want || f.UntilDeadline(status) != c.again {
			t.Errorf("%s: the condition is %+v, to be looked at again after %s", name, got, f.UntilDeadline(status))
		}
	}
}
