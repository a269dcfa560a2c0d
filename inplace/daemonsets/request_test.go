package daemonsets_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// TestRequestOfOnePod: the container restarts in a turn of the pod. The revision stays, and so does every other pod.
func TestRequestOfOnePod(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	f.Says = true
	metav1.SetMetaDataAnnotation(&f.Seen.Pods[1].ObjectMeta, inplace.AnnotationRestartContainers, "app")
	f.Rest()
	f.Expect("renew p2", "close p2", "p2 is 1 app="+fixture.Another)
	if !apps.IsTrue(f.Seen.Pods[1], corev1.PodReady) {
		t.Error("the pod does not serve again")
	}
	if result := f.Seen.Pods[1].Annotations[inplace.AnnotationRestarted]; !strings.HasPrefix(result, "restarted app=") {
		t.Errorf("the pod says %q", result)
	}
}

// TestRequestWaitsForAnUpdate: the update goes first, and the pod restarts once more.
func TestRequestWaitsForAnUpdate(t *testing.T) {
	f := fixture.NewFleet(t, 1)
	metav1.SetMetaDataAnnotation(&f.Seen.Pods[0].ObjectMeta, inplace.AnnotationRestartContainers, "app")
	f.Edit(fixture.App{Image: "v2"})
	f.Rest()
	f.Expect("mark 2 true false", "close p1", "p1 is 2 app=v2", "open p1", "mark 2 false false",
		"renew p1", "close p1", "p1 is 2 app=docker.io/library/v2:latest")
}

// TestRequestsOfPodsThatDoNotServe: they cost no budget, and go first.
func TestRequestsOfPodsThatDoNotServe(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	fixture.Unready(f.Seen.Pods[2])
	f.Sick = "p3"
	for _, pod := range f.Seen.Pods[1:] {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
	}
	f.Rest()
	f.Expect("renew p3", "close p3", "p3 is 1 app="+fixture.Another)
	if request := f.Seen.Pods[1].Annotations[inplace.AnnotationRestartContainers]; request != "app" {
		t.Errorf("p2 has request %q although p3 is unavailable", request)
	}
}

// TestRequestWaitsForItsTurnOfAll: a pod that a limit keeps in service is one of those that wait, so that a place is kept for it.
func TestRequestWaitsForItsTurnOfAll(t *testing.T) {
	f := fixture.NewFleet(t, 3)
	f.Seen.Batches = nil
	for _, pod := range f.Seen.Pods[1:] {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, "app")
	}
	seen := concurrency.Seen{Limits: concurrency.Limits{{Flag: concurrency.FlagTotal, Most: 1}},
		Restarting: []concurrency.Pod{{UID: "other", Namespace: "other"}}}
	f.Seen.Share = seen.ShareOf(f.DaemonSet.UID)
	plan := f.Plan()
	if got := fixture.Brief(plan.Steps); got != "" || plan.AwaitsLimit.Count() != 1 {
		t.Errorf("steps %q, %d pods wait for the limit, want 1", got, plan.AwaitsLimit.Count())
	}
}
