package statefulsets_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
)

// TestRequestOfOnePod: a pod without a gate restarts while it serves, and never has another revision's label meanwhile. A pod that the
// native partition keeps restarts with the image that it has.
func TestRequestOfOnePod(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fixture.Members)
		want   []string
	}{
		"OrderedReady": {func(*fixture.Members) {}, []string{"renew db-0", "db-0 is db-1 app=" + fixture.Another}},
		"Parallel":     {fixture.Parallel, []string{"renew db-0", "close db-0", "db-0 is db-1 app=" + fixture.Another}},
		"at the partition": {func(m *fixture.Members) {
			fixture.Rolling(7, "")(m)
			m.Edit(fixture.App{Image: "v2"})
		}, []string{"renew db-0", "db-0 is db-1 app=" + fixture.Another}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 2, test.change)
			metav1.SetMetaDataAnnotation(&m.Member(0).ObjectMeta, inplace.AnnotationRestartContainers, "app")
			m.Rest()
			m.Expect(test.want...)
		})
	}
}

// TestRequestDrainsAfterThePatch: where the API server opens gates, a pod of policy OrderedReady leaves service right after the patch. The
// report that opens its gate proves the restart, so the next pod has its turn at once.
func TestRequestDrainsAfterThePatch(t *testing.T) {
	m := fixture.NewMembers(t, 2, fixture.Gated)
	m.Says = true
	for _, pod := range m.Fleet.Seen.Pods {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
	}
	began := m.Fleet.Seen.Now
	m.Rest()
	m.Expect("renew db-1", "db-1 is db-1 app="+fixture.Another, "close db-1",
		"renew db-0", "db-0 is db-1 app="+fixture.Another, "close db-0")
	for _, pod := range m.Fleet.Seen.Pods {
		if !apps.IsTrue(pod, corev1.PodReady) || !strings.HasPrefix(pod.Annotations[inplace.AnnotationRestarted], "restarted app=") {
			t.Errorf("%s says %q and has %+v", pod.Name, pod.Annotations[inplace.AnnotationRestarted], pod.Status.Conditions)
		}
	}
	if took := m.Fleet.Seen.Now.Sub(began); took > readiness.KillMargin+readiness.GracePeriod(m.Member(0)) {
		t.Errorf("it took %s", took)
	}
}

// restarting returns a StatefulSet of two pods with gates, whose higher pod was just patched for its request. The API server opens gates.
func restarting(t *testing.T, containers string) *fixture.Members {
	t.Helper()
	m := fixture.NewMembers(t, 2, fixture.Gated)
	m.Says = true
	metav1.SetMetaDataAnnotation(&m.Member(1).ObjectMeta, inplace.AnnotationRestartContainers, containers)
	for range 5 {
		m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Second)
		if carryOut(m); len(readiness.MoveOf(m.Member(1)).Containers) > 0 {
			m.Steps = nil
			return m
		}
	}
	t.Fatalf("db-1 is not patched: %q", m.Steps)
	return m
}

// TestRequestDrainsOnlyWhileItsContainerIsToStop: otherwise no report of its kubelet might come that opens the gate.
func TestRequestDrainsOnlyWhileItsContainerIsToStop(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *fixture.Members, pod *corev1.Pod)
		closes bool
	}{
		"at once":        {func(*fixture.Members, *corev1.Pod) {}, true},
		"it has no gate": {func(_ *fixture.Members, pod *corev1.Pod) { fixture.Ungated(pod) }, false},
		"its container has restarted": {func(_ *fixture.Members, pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].ContainerID = "other"
		}, false},
		"its spec has changed again":          {func(_ *fixture.Members, pod *corev1.Pod) { pod.Generation++ }, false},
		"what ran before the patch is unsure": {func(_ *fixture.Members, pod *corev1.Pod) { unsure(pod) }, false},
		"its kubelet reports no generations":  {func(_ *fixture.Members, pod *corev1.Pod) { pod.Status.ObservedGeneration = 0 }, false},
		"the namespace loses its label":       {func(m *fixture.Members, _ *corev1.Pod) { m.Rollout.Seen.Mode = inplace.ModeNone }, false},
		"the StatefulSet controller makes an update": {func(m *fixture.Members, _ *corev1.Pod) {
			m.Edit(fixture.App{Image: "v2"})
			m.Fleet.Seen.Fallback = revisions.Fallback{Hash: m.StatefulSet.Spec.Template.Hash(), Code: inplace.CodeRefused}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := restarting(t, "app")
			test.change(m, m.Member(1))
			carryOut(m)
			if closed := slices.Contains(m.Steps, "close db-1"); closed != test.closes {
				t.Errorf("the steps are %q", m.Steps)
			}
		})
	}
}

// TestRequestWithoutManagers: all managers end for good at any moment of a request. The pod serves in the end.
func TestRequestWithoutManagers(t *testing.T) {
	for plans := range 8 {
		m := fixture.NewMembers(t, 2, fixture.Gated)
		m.Says = true
		metav1.SetMetaDataAnnotation(&m.Member(1).ObjectMeta, inplace.AnnotationRestartContainers, "app")
		for range plans {
			m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Second)
			carryOut(m)
		}
		for range 3 {
			m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Second)
			m.Kubelet(m.Member(1))
		}
		if pod := m.Member(1); readiness.Closed(pod) || !apps.IsTrue(pod, corev1.PodReady) {
			t.Errorf("after %q it has %+v", m.Steps, pod.Status.Conditions)
		}
	}
}

// TestEditWhileARequestDrains: the gate stays closed until the container has restarted for the request. Then the update goes on.
func TestEditWhileARequestDrains(t *testing.T) {
	m := restarting(t, "app")
	carryOut(m)
	m.Edit(fixture.App{Image: "v2"})
	for range 3 {
		carryOut(m)
	}
	m.Expect("close db-1", "mark 2 true false")
	for range 30 {
		m.Once()
	}
	m.Expect("db-1 is updating-in-place app=v2", "close db-1", "db-1 is db-2 app=v2",
		"db-0 is updating-in-place app=v2", "close db-0", "db-0 is db-2 app=v2", "mark 2 false false")
}
