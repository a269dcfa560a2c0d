//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// caches is the StatefulSet with the policy Parallel, beside members with OrderedReady.
const caches = statefulSetPrefix + "cache"

// meetMembers creates a StatefulSet of each pod management policy.
func meetMembers(t *testing.T, replicas int32, options ...statefulSetOption) meeting {
	t.Helper()
	m := meeting{newStatefulScenario(t, stateful), []string{members, caches}}
	m.submitPolicies(replicas, options...)
	m.each(m.completes)
	return m
}

// submitPolicies creates both StatefulSets and does not wait.
func (s *scenario) submitPolicies(replicas int32, options ...statefulSetOption) {
	s.Helper()
	s.submitStatefulSet(db(replicas, options...))
	s.submitStatefulSet(db(replicas, slices.Concat(options, []statefulSetOption{policies["Parallel"], ofTemplate(named("cache"))})...))
}

// halfway begins the updates to v2. When one is in that state, it calls happens with the name of its StatefulSet.
func (m meeting) halfway(state state, happens func(name string)) {
	m.Helper()
	m.setImages("v2")
	m.each(func(name string) {
		m.reaches(name, state)
		happens(name)
	})
}

func membersUndoneHalfway(t *testing.T) {
	m := meetMembers(t, 3, ofTemplate(slow))
	before := m.podsOfEach()
	m.begin("undone", inPlace)
	m.halfway(partly, func(name string) { m.rollout("undo", name) })
	m.end("v1")
	m.each(func(name string) {
		m.met(name, partly)
		m.kept(name, before[name], restarts{"app": {0, 2}})
	})
}

// membersScaled scales up and down in the middle of an update, which is not held.
func membersScaled(t *testing.T) {
	m := meetMembers(t, 3, ofTemplate(slow))
	before := m.podsOfEach()
	m.begin("scaled", Rules{Created: exactly(4), Deleted: exactly(4)})
	m.halfway(partly, func(name string) { m.kubectl("", "scale", name, "--replicas=5") })
	m.each(m.completes)
	m.each(func(name string) { m.kubectl("", "scale", name, "--replicas=3") })
	m.end("v2")
	m.each(func(name string) { m.kept(name, before[name], once) })
}

// setPartition does not run kubectl, which takes as long as some states of an update.
func (s *scenario) setPartition(name string, kept int) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":%d}}}}`, kept)
	_, err := clients.AppsV1().StatefulSets(s.namespace).Patch(s.Context(), name[len(statefulSetPrefix):], types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: user})
	if err != nil {
		s.Fatal(err)
	}
}

// haveImages checks the images of all pods, lowest ordinal first.
func (s *scenario) haveImages(name string, tags ...string) {
	s.Helper()
	var images []string
	for _, pod := range s.workload(name).pods {
		images = append(images, imagesOf(pod.Spec)["app"][len(appImage("")):])
	}
	if !slices.Equal(images, tags) {
		s.Errorf("the pods of %s have images %v instead of %v", name, images, tags)
	}
}

// membersLost loses pods in each way, and one of them is updated already. The native controller creates each of them again. The other pod
// stays.
func membersLost(t *testing.T) {
	m := meetMembers(t, 4, ofTemplate(slow))
	before := m.podsOfEach()
	m.begin("pods are lost", Rules{Created: exactly(6), Deleted: exactly(6), Outage: true})
	lost := map[string][]*corev1.Pod{}
	m.halfway(partly, func(name string) {
		lost[name] = []*corev1.Pod{m.member(name, 0), m.member(name, 1), m.member(name, 3)}
		deleteByHand(m.scenario, lost[name][0])
		fail(m.scenario, lost[name][1])
		evict(m.scenario, lost[name][2])
	})
	m.each(func(name string) {
		for _, pod := range lost[name] {
			m.gone(pod)
			delete(before[name], pod.UID)
		}
	})
	m.end("v2")
	m.each(func(name string) { m.survived(name, before[name]) })
}

// membersTwoAtATime: two of five pods may be unavailable. The judge checks that there are never more.
func membersTwoAtATime(t *testing.T) {
	two := intstr.FromInt32(2)
	atATime := func(sts *appsv1.StatefulSet) {
		sts.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &two}}
	}
	s := newStatefulScenario(t, stateful)
	tried, err := clients.AppsV1().StatefulSets(s.namespace).Create(t.Context(), db(5, atATime), onlyTried)
	if err != nil {
		t.Fatal(err)
	}
	if rolling := tried.Spec.UpdateStrategy.RollingUpdate; rolling == nil || rolling.MaxUnavailable == nil {
		t.Skip("the API server drops maxUnavailable of StatefulSets")
	}
	m := meeting{s, []string{members, caches}}
	m.submitPolicies(5, atATime, ofTemplate(readyAfter("app", "3s")))
	m.each(m.completes)
	before := m.podsOfEach()
	m.begin("in place", inPlace)
	m.halfway(state{"updating two pods at a time", func(now podCounts) bool { return now.moving+now.midway == 2 }}, func(string) {})
	m.end("v2")
	m.each(func(name string) { m.kept(name, before[name], once) })
}

const (
	// longWait is how long a pod recovers.
	longWait = 5 * time.Minute
	// imageWait is how long an image cannot be pulled, and mostRefused how often the controller may try meanwhile to delete a pod.
	imageWait   = 150 * time.Second
	mostRefused = 20
)

// membersWaitForMinutes: a pod at the revision that has proved to work is not Ready for minutes, and its container runs. Nothing of its
// StatefulSet restarts meanwhile. Two others wait for an image that cannot be pulled, and their controller does not try too often.
func membersWaitForMinutes(t *testing.T) {
	const recovering = statefulSetPrefix + "recovering"
	m := meetMembers(t, 3)
	m.submitStatefulSet(db(2, ofTemplate(named("recovering")), ofTemplate(impatientlyProbed)))
	m.completes(recovering)
	all := meeting{m.scenario, append(slices.Clone(m.names), recovering)}
	before, hung := all.podsOfEach(), m.member(recovering, 0)

	m.begin("waiting", Rules{Created: none, Deleted: none, UpdatesOnly: "none", Outage: true})
	m.signal(hung, syscall.SIGSTOP)
	m.wait("the pod not to be Ready", of(recovering, func(now workload) error {
		if ready(now.pods[0]) {
			return errors.New("it is")
		}
		return nil
	}))
	began := time.Now()
	m.setImage(recovering, "app=v2")
	m.setImages(m.unique())
	m.passes(imageWait)
	m.each(func(name string) {
		refused := m.refusedDeletes(name)
		if t.Logf("%d DELETEs of pods of %s were refused in %s", refused, name, imageWait); refused > mostRefused {
			t.Errorf("%d DELETEs of pods of %s were refused in %s, and %d may be", refused, name, imageWait, mostRefused)
		}
		m.rollout("undo", name)
	})
	m.each(m.completes)
	m.passes(time.Until(began.Add(longWait)))
	all.each(func(name string) { m.kept(name, before[name], nil) })

	m.begin("it runs again", Rules{Created: none, Deleted: none, Outage: true})
	m.signal(hung, syscall.SIGCONT)
	m.completes(recovering)
	m.kept(recovering, before[recovering], once)
	m.runs(recovering, "v2")
}

// impatientlyProbed makes the kubelet find within seconds that the application hangs.
func impatientlyProbed(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers[0].ReadinessProbe.TimeoutSeconds = 1
}

// signal sends a signal to all processes of the pod.
func (s *scenario) signal(pod *corev1.Pod, signal syscall.Signal) {
	s.Helper()
	running := processesOf(s, pod)
	if len(running) == 0 {
		s.Fatalf("no process of pod %s is on this machine", pod.Name)
	}
	for _, process := range running {
		send(s, process, signal)
	}
}

// passes waits for so long. The scenario checks what does not happen meanwhile.
func (s *scenario) passes(duration time.Duration) {
	select {
	case <-s.Context().Done():
	case <-time.After(duration):
	}
}

// refusedDeletes returns how many DELETEs of pods Stayput has refused the StatefulSet controller, which reports each of them as an event.
// Its client drops events of an object after 25 (tools/record/events_cache.go of client-go).
func (s *scenario) refusedDeletes(name string) int {
	s.Helper()
	events, err := s.eventsOn(context.Background(), name)
	if err != nil {
		s.Error(err)
	}
	return timesOf(events, "FailedDelete")
}
