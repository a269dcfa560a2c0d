package statefulsets_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

// TestRequestOfOnePod: a pod never has another revision's label meanwhile. One that the native partition keeps restarts with the image that
// it has.
func TestRequestOfOnePod(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fixture.Members)
		want   []string
	}{
		"OrderedReady":      {func(*fixture.Members) {}, []string{"renew db-0", "out db-0", "db-0 is db-1 app=" + fixture.Another}},
		"Parallel":          {fixture.Parallel, []string{"renew db-0", "out db-0", "db-0 is db-1 app=" + fixture.Another}},
		"the last endpoint": {func(m *fixture.Members) { m.Last("db-0") }, []string{"renew db-0", "db-0 is db-1 app=" + fixture.Another}},
		"at the partition": {func(m *fixture.Members) {
			fixture.Rolling(7, "")(m)
			m.Edit(fixture.App{Image: "v2"})
		}, []string{"renew db-0", "out db-0", "db-0 is db-1 app=" + fixture.Another}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fixture.NewMembers(t, 2, test.change)
			metav1.SetMetaDataAnnotation(&m.Member(0).ObjectMeta, inplace.AnnotationRestartContainers, "app")
			m.Rest()
			m.Expect(test.want...)
		})
	}
}

// TestRequestsOfTwoPods: the report that puts a pod back proves its restart, so the next pod has its turn at once.
func TestRequestsOfTwoPods(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	for _, pod := range m.Fleet.Seen.Pods {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
	}
	began := m.Fleet.Seen.Now
	m.Rest()
	m.Expect("renew db-1", "out db-1", "db-1 is db-1 app="+fixture.Another,
		"renew db-0", "out db-0", "db-0 is db-1 app="+fixture.Another)
	for _, pod := range m.Fleet.Seen.Pods {
		if !apps.IsTrue(pod, corev1.PodReady) || !strings.HasPrefix(pod.Annotations[inplace.AnnotationRestarted], "restarted app=") {
			t.Errorf("%s says %q and has %+v", pod.Name, pod.Annotations[inplace.AnnotationRestarted], pod.Status.Conditions)
		}
	}
	if took := m.Fleet.Seen.Now.Sub(began); took > readiness.KubeletMargin+readiness.GracePeriod(m.Member(0)) {
		t.Errorf("it took %s", took)
	}
}

// TestRequestWithoutManagers: all managers end for good at any moment of a request. The pod serves in the end.
func TestRequestWithoutManagers(t *testing.T) {
	for plans := range 8 {
		m := fixture.NewMembers(t, 2)
		metav1.SetMetaDataAnnotation(&m.Member(1).ObjectMeta, inplace.AnnotationRestartContainers, "app")
		for range plans {
			carryOut(m)
		}
		m.Alone = true
		for range 3 {
			m.Fleet.Seen.Now = m.Fleet.Seen.Now.Add(time.Second)
			m.Kubelet(m.Member(1))
		}
		if pod := m.Member(1); readiness.Out(pod) || !apps.IsTrue(pod, corev1.PodReady) {
			t.Errorf("after %q it has %+v", m.Steps, pod.Status.Conditions)
		}
	}
}

// TestEditWhileARequestDrains: the pod stays out of service until its container has restarted for both.
func TestEditWhileARequestDrains(t *testing.T) {
	m := fixture.NewMembers(t, 2)
	metav1.SetMetaDataAnnotation(&m.Member(1).ObjectMeta, inplace.AnnotationRestartContainers, "app")
	for range 5 {
		carryOut(m)
	}
	m.Expect("renew db-1", "out db-1", "db-1 is db-1 app="+fixture.Another)
	m.Edit(fixture.App{Image: "v2"})
	m.Rest()
	m.Expect("mark 2 true false", "db-1 is db-2 app=v2", "out db-0", "db-0 is db-2 app=v2", "mark 2 false false")
}
