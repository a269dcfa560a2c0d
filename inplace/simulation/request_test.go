package simulation

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
)

// request writes the annotation by which containers of the pod with that number are to restart, and a deadline unless it is 0.
func (s *lockstep) request(number int, containers string, within time.Duration) {
	pod := sorted(s.pods.objects)[number-1].DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, containers)
	if within > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartDeadline, s.now.Add(within).UTC().Format(time.RFC3339))
	}
	put(s.world, s.pods, pod)
}

// asked returns what the pod with that number says of its request.
func (s *lockstep) asked(number int) (request, result string) {
	annotations := sorted(s.pods.objects)[number-1].Annotations
	return annotations[inplace.AnnotationRestartContainers], annotations[inplace.AnnotationRestarted]
}

// ids returns the IDs of the containers of the pod with that number: app, and side if there is one.
func (s *lockstep) ids(number int) (app, side string) {
	state := s.kubelet.state[sorted(s.pods.objects)[number-1].Name]
	if state["side"] == nil {
		return state["app"].id, ""
	}
	return state["app"].id, state["side"].id
}

func twoContainers(d *apps.Deployment) {
	d.Spec.Template = fixture.App{Image: "v1", Sidecar: "s1"}.Template()
}

// restartedInOrder is what becomes of the request side,app.
var restartedInOrder = regexp.MustCompile("^restarted side=19[-0-9T:]+Z,app=19[-0-9T:]+Z$")

// TestRequestOfOnePod: the containers restart one after the other, each after a drain, and nothing else happens.
func TestRequestOfOnePod(t *testing.T) {
	s := newLockstep(t, 3, twoContainers)
	before := sorted(s.pods.objects)
	app, side := s.ids(2)
	s.request(2, "side,app", 0)
	s.rest()
	one := []string{"renew 2", "out 2", "patch 2"}
	s.expect(slices.Concat(one, one)...)
	s.intact(before)
	appNow, sideNow := s.ids(2)
	request, result := s.asked(2)
	if app == appNow || side == sideNow || request != "" || !restartedInOrder.MatchString(result) {
		t.Errorf("app %s is %s, side %s is %s, request %q, result %q", app, appNow, side, sideNow, request, result)
	}
	s.rest()
	s.expect()
}

// TestRequestsShareTheBudget: one pod of three may be unavailable, so the pods take turns.
func TestRequestsShareTheBudget(t *testing.T) {
	s := newLockstep(t, 3, nil)
	for _, number := range []int{3, 1} {
		s.request(number, "app", 0)
	}
	s.rest()
	s.expect("renew 1", "out 1", "patch 1", "renew 3", "out 3", "patch 3")
}

// TestRequestIsWithdrawn: the user removes the annotation while the pod drains.
func TestRequestIsWithdrawn(t *testing.T) {
	s := newLockstep(t, 3, nil)
	app, _ := s.ids(2)
	s.request(2, "app", 0)
	s.until(func() bool { return strings.HasSuffix(strings.Join(s.steps, " "), "out 2") })
	pod := sorted(s.pods.objects)[1].DeepCopy()
	delete(pod.Annotations, inplace.AnnotationRestartContainers)
	put(s.world, s.pods, pod)
	s.rest()
	s.expect("renew 2", "out 2", "back 2")
	if now, _ := s.ids(2); now != app {
		t.Error("the container has restarted")
	}
}

// TestRequestMeetsAnUpdate: an edit in the middle of a request is carried out in all pods. The rest of the request follows.
func TestRequestMeetsAnUpdate(t *testing.T) {
	for _, last := range []string{"out 2", "patch 2"} {
		s := newLockstep(t, 3, twoContainers)
		before := sorted(s.pods.objects)
		s.request(2, "side,app", 0)
		s.until(func() bool { return len(s.steps) > 0 && s.steps[len(s.steps)-1] == last })
		s.edit("sets an image", fixture.App{Image: "v2", Sidecar: "s1"})
		for range 6 { // it may have to wait until the old container must have been killed
			s.now = s.now.Add(time.Minute)
			s.rest()
		}
		s.intact(before)
		for _, pod := range sorted(s.pods.objects) {
			if image := pod.Spec.Containers[0].Image; fixture.Plain.Replace(image) != "v2" {
				t.Errorf("%s: %s runs %s", last, pod.Name, image)
			}
		}
		if request, result := s.asked(2); request != "" || !restartedInOrder.MatchString(result) {
			t.Errorf("%s: request %q, result %q", last, request, result)
		}
	}
}

// TestRequestOutlivesManagers: the pod serves again although no manager runs, and the next one goes on.
func TestRequestOutlivesManagers(t *testing.T) {
	s := newLockstep(t, 3, twoContainers)
	before := sorted(s.pods.objects)
	s.request(2, "side,app", 0)
	s.until(func() bool { return len(s.steps) > 0 && s.steps[len(s.steps)-1] == "patch 2" })
	s.stayput.running = false
	s.rest()
	s.intact(before)
	s.stayput.running = true
	s.rest()
	s.intact(before)
	if request, result := s.asked(2); request != "" || !restartedInOrder.MatchString(result) {
		t.Errorf("request %q, result %q", request, result)
	}
}

// TestRequestsThatAreRefused: the pod says why, and nothing restarts.
func TestRequestsThatAreRefused(t *testing.T) {
	zero := func(d *apps.Deployment) {
		twoContainers(d)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
			MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))}
	}
	for asks, test := range map[string]struct {
		change func(*apps.Deployment)
		within time.Duration
		want   string
	}{
		"ghost":     {twoContainers, 0, "refused ghost: the pod has no container or sidecar ghost"},
		"app,ghost": {twoContainers, 0, "refused app,ghost: the pod has no container or sidecar ghost"},
		"":          {twoContainers, 0, `refused annotation stayput.dev/restart-containers: "" is no list of containers such as app,side`},
		"app,,side": {twoContainers, 0, `refused annotation stayput.dev/restart-containers: "app,,side" is no list of containers such as app,side`},
		"app,app":   {twoContainers, 0, "refused annotation stayput.dev/restart-containers names container app twice"},
		"app=now,side": {twoContainers, 0,
			`refused annotation stayput.dev/restart-containers: "app=now,side" is no list of containers such as app,side`},
		"app=2030-01-01T00:00:00Z": {twoContainers, 0,
			"refused annotation stayput.dev/restart-containers names no container that has yet to restart"},
		strings.Repeat("a,", 9000) + "a": {twoContainers, 0,
			"refused annotation stayput.dev/restart-containers has more than 16384 characters"},
		"side": {zero, 0, "refused side: maxUnavailable 0 means that no pod may be unavailable"},
		"app":  {twoContainers, time.Nanosecond, "refused app: 1970-01-12T13:46:44Z has passed, and container app waited for its turn"},
	} {
		s := newLockstep(t, 3, test.change)
		made := s.kubelet.ids
		s.request(2, asks, test.within)
		s.rest()
		s.expect("patch 2")
		if request, result := s.asked(2); request != "" || result != test.want || s.kubelet.ids != made {
			t.Errorf("%.40q: request %q, result\n\t%s\nnot\n\t%s", asks, request, result, test.want)
		}
	}
}

// TestRequestHeldByAHook: the pod says which hook it waits for. Where the deadline passes meanwhile, it serves again, and then the request
// is refused: both are writes of the same pod.
func TestRequestHeldByAHook(t *testing.T) {
	s, before := hookedLockstep(t, nil)
	s.registrar.dead = true
	s.request(1, "app", time.Minute)
	s.until(func() bool { return strings.HasSuffix(strings.Join(s.steps, " "), "out 1") })
	s.rest()
	r := s.rollout()
	if progress := r.PodProgress()[0]; progress.Phase != podstate.Updating ||
		!strings.HasPrefix(progress.Awaits, "annotation "+hook+" to be removed, for ") {
		t.Errorf("pod 1 waits for %q", progress.Awaits)
	}
	s.now = s.now.Add(time.Minute)
	s.rest()
	s.intact(before)
	s.expect("renew 1", "out 1", "back 1", "patch 1")
	if request, result := s.asked(1); request != "" || !strings.HasPrefix(result, "refused app: 1970-01-12T13:") {
		t.Errorf("request %q, result %q", request, result)
	}
}
