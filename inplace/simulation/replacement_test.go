package simulation

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

const watchOfPods = 2

// TestReplacementIsTheOnlyPodCreated: another client deletes a pod while a second one is out of service and about to move, and watches of
// pods lag. No pod is created but the replacement. Controllers 1.36 and newer wait for what they have created
// (StaleControllerConsistencyReplicaSet), 1.35 does not.
func TestReplacementIsTheOnlyPodCreated(t *testing.T) {
	replaced := 0
	for seed := range int64(20) {
		w := newWorld(t, seed, true)
		leaving := w.outInAnUpdateOfFour()
		if leaving == nil || !w.replacedBeside(leaving) {
			continue
		}
		replaced++
		made := w.made
		for range 100 { // the controller does not see the replacement, and Stayput sees it only when it has written to a pod
			w.turn(w.owner(leaving.Name) != w.uidOf(leaving), false)
		}
		for range 200 {
			w.turn(true, true)
		}
		if w.failed != "" || w.made > made || w.living() > 4 {
			t.Errorf("seed %d: %d more pods created, %d of 4 live; %s", seed, w.made-made, w.living(), w.failed)
		}
	}
	if replaced == 0 {
		t.Error("in no world was a pod replaced beside one that is about to move")
	}
}

// outInAnUpdateOfFour goes on until a pod is out of service, and returns that pod.
func (w *world) outInAnUpdateOfFour() *corev1.Pod {
	w.unserved, w.claim, w.settings = true, "", inplace.Settings{}
	w.calm()
	w.rules.loose = true
	w.user("strategy", func(d *apps.Deployment) {
		d.Spec.Replicas, d.Spec.MinReadySeconds, d.Spec.Template = new(int32(4)), 0, fixture.App{Image: "v1"}.Template()
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(1))}}
	})
	w.calm()
	w.rules.loose, w.rules.native = false, false
	w.user("edit", func(d *apps.Deployment) { d.Spec.Template = fixture.App{Image: "v3"}.Template() })
	for range 500 {
		w.turn(true, true)
		for _, pod := range sorted(w.pods.objects) {
			if readiness.Out(pod) {
				return pod
			}
		}
	}
	return nil
}

// replacedBeside deletes another pod of the same ReplicaSet, as another client, and lets the controller create one in its place.
func (w *world) replacedBeside(leaving *corev1.Pod) bool {
	for _, pod := range sorted(w.pods.objects) {
		if pod.Name != leaving.Name && w.uidOf(pod) == w.uidOf(leaving) {
			_ = w.terminate(pod.Name)
			break
		}
	}
	w.replicaSetController.deliver(watchOfPods, 100)
	w.stayput.deliver(watchOfPods, 100)
	made := w.made
	for range 20 {
		if w.replicaSetController.run(); w.made > made {
			return w.failed == ""
		}
	}
	return false
}

func (w *world) owner(name string) string { return w.uidOf(w.pods.objects[name]) }

// uidOf returns the UID of the pod's controller.
func (w *world) uidOf(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return string(metav1.GetControllerOf(pod).UID)
}

// turn lets all processes act. Stayput's watch of pods delivers if ours is set, and that of the ReplicaSet controller if theirs is set.
func (w *world) turn(ours, theirs bool) {
	for watch := range 4 {
		w.deploymentController.deliver(watch, 100)
		if watch != watchOfPods || theirs {
			w.replicaSetController.deliver(watch, 100)
		}
		if watch != watchOfPods || ours {
			w.stayput.deliver(watch, 100)
		}
	}
	w.runOthers()
	w.stayput.run()
	w.now = w.now.Add(10 * time.Millisecond)
}
