//go:build e2e && bench

package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// resizedPods is how many pods get another size.
const resizedPods = 12

// benchResizes raises the CPU request of the pods of a Deployment that say that nothing has to restart for it. How many of them may be missing at
// a time is the same natively: with surge, as by default, and without.
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

func sizedWeb(knobs ...knob) func(lane int) any {
	return func(int) any { return web(resizedPods, append(knobs, sized("10m", "32Mi"), declares)...) }
}

// vpaTolerance is the share of a workload's pods that VPA's updater takes in one pass, if no flag says otherwise (--eviction-tolerance).
const vpaTolerance = 0.5

// likeVPA does to pods what the updater of the Vertical Pod Autoscaler does in mode InPlaceOrRecreate, and as there nothing to their template.
var likeVPA = bareWay{"VPA's way", (*side).resizeLikeVPA}

// resizeLikeVPA is what is left of it when nothing goes wrong (kubernetes/autoscaler, vertical-pod-autoscaler/v1.7.1, pkg/updater): a pass (RunOnce,
// logic/updater.go) patches one pod after another and waits for no kubelet, until isPodDisruptable (restriction/pods_restriction_factory.go) says
// that the tolerance is used up; the others get their turn in the next pass. That one comes a minute later (--updater-interval), here as soon as
// the pods of the former have their size. The updater's events, and what recommender and admission controller do, are left out.
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

// resizePod is InPlaceUpdate (restriction/pods_inplace_restriction.go): the resize, and the annotation that tells of it.
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
