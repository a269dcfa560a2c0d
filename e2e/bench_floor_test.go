//go:build e2e && bench

package e2e

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// incarnation identifies a container among those that have run in the same pod.
type incarnation string

// incarnations returns the containers that run now, by pod.
func incarnations(pods []*corev1.Pod) map[types.UID]incarnation {
	running := map[types.UID]incarnation{}
	for _, pod := range pods {
		running[pod.UID] = incarnationOf(pod)
	}
	return running
}

// incarnationOf returns the application's container. It is empty before the kubelet has reported one.
func incarnationOf(pod *corev1.Pod) incarnation {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == "app" {
			return incarnation(status.ContainerID)
		}
	}
	return ""
}

// floor only patches pods, so many at a time, each after the drain. The controllers of the pods ignore the images of their pods.
func floor(atOnce int) bareWay {
	return bareWay{"floor", func(s *side, e podEdit) { s.editPods(e, atOnce) }}
}

func (s *side) editPods(e podEdit, atOnce int) {
	s.Helper()
	pods := s.workload(s.name).pods
	old := incarnations(pods)
	group, ctx := errgroup.WithContext(s.Context())
	group.SetLimit(atOnce)
	for _, pod := range pods {
		group.Go(func() error { return s.editPod(ctx, pod, e, old[pod.UID]) })
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
}

// editPod returns when the pod's new container is ready.
func (s *side) editPod(ctx context.Context, pod *corev1.Pod, e podEdit, before incarnation) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.drain):
	}
	pods, kind := clients.CoreV1().Pods(s.namespace), types.StrategicMergePatchType
	if _, err := pods.Patch(ctx, pod.Name, kind, patchOf(e), metav1.PatchOptions{}); err != nil {
		return err
	}
	return s.recorder.until(ctx, func(w world) error {
		if now := w.pods[pod.UID]; now == nil || !done(e, now, before) {
			return errors.New("the new container of " + pod.Name + " is not ready")
		}
		return nil
	})
}

// arrivals returns when each pod was updated and Ready, in seconds after the moment from.
func arrivals(events []event, from time.Time, edited podEdit, old map[types.UID]incarnation) []float64 {
	applied := map[types.UID]float64{}
	for _, e := range events {
		pod, ok := e.object.(*corev1.Pod)
		if _, known := applied[e.object.GetUID()]; ok && !known && alive(pod) && done(edited, pod, old[pod.UID]) && ready(pod) {
			applied[pod.UID] = e.at.Sub(from).Seconds()
		}
	}
	return slices.Sorted(maps.Values(applied))
}

// stepTimes are the durations of one pod's update, in seconds. The floor takes no pod out of service.
type stepTimes struct {
	whole     float64 // from when it is taken out of service, or patched, until it is Ready
	patched   float64 // from when it is taken out of service to its patch
	restarted float64 // from the patch until the kubelet has applied it, and its containers are ready
	said      float64 // from then on until the pod is Ready
}

// stepsIn returns the durations of all pods that existed before the update.
func stepsIn(events []event, edited podEdit, old map[types.UID]incarnation) []stepTimes {
	var all []stepTimes
	for uid, before := range old {
		if s, complete := stepOf(uid, events, edited, before); complete {
			all = append(all, s)
		}
	}
	return all
}

// stepOf returns the durations of one pod. complete is true if the pod existed until the end of its update.
func stepOf(uid types.UID, events []event, edited podEdit, before incarnation) (s stepTimes, complete bool) {
	var out, patched, restarted, said time.Time
	note := func(when *time.Time, e event, holds bool) {
		if holds && when.IsZero() {
			*when = e.at
		}
	}
	for _, e := range events {
		pod, ok := e.object.(*corev1.Pod)
		if !ok || pod.UID != uid {
			continue
		}
		note(&out, e, isOut(pod) || edited.asked(pod))
		note(&patched, e, edited.asked(pod))
		note(&restarted, e, done(edited, pod, before))
		note(&said, e, done(edited, pod, before) && ready(pod))
	}
	return stepTimes{
		whole:     said.Sub(out).Seconds(),
		patched:   patched.Sub(out).Seconds(),
		restarted: restarted.Sub(patched).Seconds(),
		said:      said.Sub(restarted).Seconds(),
	}, !said.IsZero()
}

// stepFigures returns the durations of all pods of all updates, without the drain.
func stepFigures(costs []cost, drain time.Duration) []figure {
	var all []stepTimes
	for _, c := range costs {
		all = append(all, c.steps...)
	}
	var figures []figure
	for _, part := range []struct {
		name string
		of   func(stepTimes) float64
	}{
		{"step: all, without drain", func(s stepTimes) float64 { return s.whole - drain.Seconds() }},
		{"step: out of service to patch, without drain", func(s stepTimes) float64 { return s.patched - drain.Seconds() }},
		{"step: patch to container ready", func(s stepTimes) float64 { return s.restarted }},
		{"step: container ready to pod Ready", func(s stepTimes) float64 { return s.said }},
	} {
		values := make([]float64, len(all))
		for i, s := range all {
			values[i] = part.of(s)
		}
		figures = append(figures, figure{part.name + ", s, p50", quantile(values, 0.5)}, figure{part.name + ", s, p99", quantile(values, 0.99)})
	}
	return figures
}
