package simulation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// endpointsController is pkg/controller/endpointslice for one Service with one slice, on a cache that lags.
type endpointsController struct {
	*world
	pods *informer[*corev1.Pod]
	// away says that it does not run.
	away bool
}

func newEndpointsController(w *world) *endpointsController {
	return &endpointsController{world: w, pods: w.pods.informer()}
}

func (c *endpointsController) run() {
	if c.away || c.unserved {
		return
	}
	next := fixture.Slice("web")
	for _, pod := range c.pods.list() {
		if len(pod.Status.ContainerStatuses) == 0 {
			continue // it has no address yet
		}
		e := fixture.Endpoint(pod.Name, apps.IsTrue(pod, corev1.PodReady) && pod.DeletionTimestamp == nil)
		e.TargetRef.UID = pod.UID
		next.Endpoints = append(next.Endpoints, e)
	}
	current := c.slices.objects[next.Name]
	if current == nil || !equality.Semantic.DeepEqual(current.Endpoints, next.Endpoints) {
		put(c.world, c.slices, &next)
	}
	c.rules.sliceWritten(c.world)
}

// endpointsOf returns the endpoints in the slices and pods that one reader sees.
func (w *world) endpointsOf(pods []*corev1.Pod, shown map[string]*discoveryv1.EndpointSlice) podstate.Endpoints {
	var all []discoveryv1.EndpointSlice
	for _, s := range shown {
		all = append(all, *s)
	}
	var services []corev1.Service
	if !w.unserved {
		services = append(services, fixture.Service("web", fixture.Selecting("app", "web")))
	}
	return podstate.EndpointsOf(pods, all, services)
}

// ask reads the slices from the API server. The cache says when to ask, and the API server's answer counts.
func (w *world) ask(remembered *engine.Memory, pods []*corev1.Pod) podstate.Endpoints {
	endpoints := w.endpointsOf(pods, w.slices.objects)
	remembered.Drains, _ = remembered.Drains.Noted(endpoints, w.now).Complete(endpoints)
	return endpoints
}

// endpoints returns the endpoints to plan on.
func (s *stayput) endpoints() podstate.Endpoints {
	endpoints := s.endpointsOf(s.pods.list(), s.slices.objects)
	if s.settings.Drain == 0 {
		return endpoints
	}
	left, known := s.remembered.Drains.Complete(endpoints)
	if s.remembered.Drains = left; known {
		return endpoints
	}
	return s.ask(&s.remembered, s.pods.list())
}

// confirmed leaves out patches of pods whose drain is not over. It notes which pods are patched because they are a last endpoint.
func (s *stayput) confirmed(planned []steps.Step) []steps.Step {
	cached := s.endpointsOf(s.pods.list(), s.slices.objects)
	var current podstate.Endpoints
	if s.settings.Drain > 0 {
		current = s.ask(&s.remembered, s.pods.list())
	}
	return slices.DeleteFunc(slices.Clone(planned), func(step steps.Step) bool {
		patch, ok := step.(steps.PatchPod)
		if !ok {
			return false
		}
		goesOn := s.rules.last[patch.Pod.Name] && readiness.MoveOf(patch.Pod).PartiallyPatched() // or back, while it serves
		s.rules.last[patch.Pod.Name] = goesOn || cached[patch.Pod.UID].LastOf != "" || current[patch.Pod.UID].LastOf != "" ||
			othersLeave(planned, s.pods.list(), patch.Pod)
		if !patch.Drained || s.settings.Drain == 0 {
			return false
		}
		drained, _ := current[patch.Pod.UID].Drained(patch.Pod, s.settings.Drain, patch.ServesOn, s.now)
		s.stale = s.stale || !drained
		return !drained
	})
}

// othersLeave reports whether the steps take all other pods that are Ready out of service. Then the pod serves until its containers stop.
func othersLeave(planned []steps.Step, pods []*corev1.Pod, pod *corev1.Pod) bool {
	out := map[string]bool{}
	for _, step := range planned {
		if set, ok := step.(steps.SetReady); ok && set.Out {
			out[set.Pod.Name] = true
		}
	}
	return len(out) > 0 && !slices.ContainsFunc(pods, func(other *corev1.Pod) bool {
		stays := readiness.Live(other) && apps.IsTrue(other, corev1.PodReady)
		return stays && other.Name != pod.Name && !out[other.Name]
	})
}

// sliceWritten notes since when pods are out of the slice. This includes pods that never were in it, for which no slice need be written.
func (j *invariants) sliceWritten(w *world) {
	offered := map[string]bool{}
	for _, e := range w.slices.objects["web-1"].Endpoints {
		offered[e.TargetRef.Name] = *e.Conditions.Ready
		if *e.Conditions.Ready {
			delete(j.gone, e.TargetRef.Name)
		}
	}
	for name := range w.pods.objects {
		if _, known := j.gone[name]; !known && !offered[name] {
			j.gone[name] = w.now
		}
	}
}

// stopping checks a drained pod whose containers are about to stop. No slice may offer it, and no proxy that catches up within the drain.
// Exceptions are the last endpoint and a drain that took too long.
func (j *invariants) stopping(w *world, pod *corev1.Pod) {
	if w.settings.Drain == 0 || w.unserved || j.last[pod.Name] ||
		w.now.Sub(readiness.OutAt(pod)) >= podstate.DrainPatience+w.settings.Drain {
		return
	}
	if out, known := j.gone[pod.Name]; !known || w.now.Sub(out) < w.settings.Drain {
		w.violated("%s is restarted although it may still be called (out %v, since %s)", pod.Name, known, w.now.Sub(out))
	}
}

// serveOn demands that the last ready endpoint of the Service is not taken out of service, as far as the leader's cache has the slices. A
// pod with a hook is: its Ready tells the other controller.
func (j *invariants) serveOn(w *world, pod *corev1.Pod) {
	current := w.endpointsOf(sorted(w.pods.objects), w.slices.objects)
	for annotation := range pod.Annotations {
		if strings.HasPrefix(annotation, inplace.PreRestartHookPrefix) {
			return
		}
	}
	if w.stayput.slices.at == len(w.slices.log) && current[pod.UID].LastOf != "" && !j.disturbed && !j.loose && !readiness.Removing(pod) {
		w.violated("%s is taken out of service, and is the last endpoint", pod.Name)
	}
}

// cameBack checks a pod that was out of service and no longer is. No container may still run that the kubelet must stop for its image.
// Otherwise the pod would be reported Ready with that container, count as updated, and then restart while it serves.
func (j *invariants) cameBack(w *world, pod *corev1.Pod) {
	for _, want := range fixture.Living(pod.Spec) {
		if c := w.kubelet.state[pod.Name][want.Name]; c != nil && c.running && c.dying.IsZero() && c.image != want.Image && !j.fellBack {
			w.violated("%s comes back into service while it still runs %s", pod.Name, c.image)
		}
	}
}

// killed checks a container that the kubelet stops for its image.
func (j *invariants) killed(w *world, name, container string) {
	pod := w.pods.objects[name]
	if pod == nil || j.listed.Has(container) || w.settings.Drain == 0 || w.unserved || j.last[name] || j.flapped[name] ||
		!j.gone[name].IsZero() {
		return
	}
	w.violated("%s is restarted while it is offered", name)
}
