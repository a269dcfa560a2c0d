//go:build e2e && bench

package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// resizedPods is the number of pods that are resized.
const resizedPods = 12

// benchResizes raises the CPU request of the pods of a Deployment whose resizePolicy requires no restart. maxUnavailable is the same in
// both races; natively the one has surge pods, as by default, and the other has none.
func benchResizes(t *testing.T) {
	t.Run("images", warmAll)
	for _, r := range []race{
		{name: "12 pods resized, default strategy", object: sizedWeb()},
		{name: "12 pods resized, 25 % without surge", object: sizedWeb(rolling("25%", "0"))},
	} {
		r.native, r.edit, r.bare = true, moreCPU, likeVPA
		t.Run(r.name, r.run)
	}
}

func sizedWeb(options ...option) func(lane int) any {
	return func(int) any { return web(resizedPods, append(options, sized("10m", "32Mi"), declares)...) }
}

// vpaTolerance is the share of a workload's pods that VPA's updater handles in one pass, unless the flag --eviction-tolerance says
// otherwise.
const vpaTolerance = 0.5

// likeVPA does to pods what the updater of the Vertical Pod Autoscaler does in mode InPlaceOrRecreate. Like the updater, it leaves the
// template alone.
var likeVPA = bareWay{"VPA's way", (*side).resizeLikeVPA}

// resizeLikeVPA does what the updater does when nothing fails (kubernetes/autoscaler, vertical-pod-autoscaler/v1.7.1, pkg/updater). A pass
// (RunOnce, logic/updater.go) patches one pod after another and waits for no kubelet, until isPodDisruptable
// (restriction/pods_restriction_factory.go) says that the tolerance is used up. The next pass patches further pods. VPA's next pass comes a
// minute later (--updater-interval); here it comes as soon as the pods of the pass before have their size. The updater's events, the
// recommender and the admission controller are left out.
func (s *side) resizeLikeVPA(e podEdit) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	pods := s.workload(s.name).pods
	for pass := range slices.Chunk(pods, max(1, int(vpaTolerance*float64(len(pods))))) {
		for _, pod := range pass {
			if err := s.resizePod(ctx, pod, e); err != nil {
				s.Fatal(err)
			}
		}
		if err := s.recorder.until(ctx, func(w world) error { return allDone(w, pass, e) }); err != nil {
			s.Fatal(err)
		}
	}
}

// resizePod does what InPlaceUpdate does (restriction/pods_inplace_restriction.go): it resizes the pod, and sets the annotation about it.
func (s *side) resizePod(ctx context.Context, pod *corev1.Pod, e podEdit) error {
	pods, kind := clients.CoreV1().Pods(s.namespace), types.StrategicMergePatchType
	if _, err := pods.Patch(ctx, pod.Name, kind, patchOf(e), metav1.PatchOptions{}, "resize"); err != nil {
		return err
	}
	_, err := pods.Patch(ctx, pod.Name, kind, []byte(`{"metadata":{"annotations":{"vpaInPlaceUpdated":"true"}}}`), metav1.PatchOptions{})
	return err
}

func allDone(w world, pods []*corev1.Pod, e podEdit) error {
	for _, pod := range pods {
		if now := w.pods[pod.UID]; now == nil || !done(e, now, "") {
			return errors.New("pod " + pod.Name + " has not got its size")
		}
	}
	return nil
}

// declares makes the first container say that it needs no restart when its CPU changes.
func declares(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
	}
}
