package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/serving"
	"github.com/stayput/stayput/inplace/steps"
)

// endpointsController is pkg/controller/endpointslice for one Service with one slice, on a cache that lags.
type endpointsController struct {
	*world
	pods *informer[*corev1.Pod]
	// away: it does not run.
	away bool
}

func newEndpointsController(w *world) *endpointsController {
	return &endpointsController{world: w, pods: w.pods.informer()}
}

func (c *endpointsController) run() {
	if c.away || c.unserved {
		return
	}
	next := slice("web")
	for _, pod := range c.pods.list() {
		if len(pod.Status.ContainerStatuses) == 0 {
			continue // it has no address yet
		}
		e := endpoint(pod.Name, conditions.IsTrue(pod, corev1.PodReady) && pod.DeletionTimestamp == nil)
		e.TargetRef.UID = pod.UID
		next.Endpoints = append(next.Endpoints, e)
	}
	current := c.slices.objects[next.Name]
	if current == nil || !equality.Semantic.DeepEqual(current.Endpoints, next.Endpoints) {
		put(c.world, c.slices, &next)
	}
	c.rules.sliceWritten(c.world)
}

// endpointsOf are those that slices show, of one reader.
func (w *world) endpointsOf(pods []*corev1.Pod, shown map[string]*discoveryv1.EndpointSlice) serving.Endpoints {
	var all []discoveryv1.EndpointSlice
	for _, s := range shown {
		all = append(all, *s)
	}
	var services []corev1.Service
	if !w.unserved {
		services = append(services, service("web", selecting("app", "web")))
	}
	return serving.EndpointsOf(pods, all, services)
}

// drains is what the controller does around a plan: the cache says when to ask, the API server says what is.
type drains struct {
	out map[types.UID]time.Time
}

// known completes what was read; not known if a pod is out that nobody has seen to be.
func (d *drains) known(endpoints serving.Endpoints) bool {
	known := true
	for uid := range d.out {
		if e, closed := endpoints[uid]; !closed || e.Listed {
			delete(d.out, uid)
		}
	}
	for uid, e := range endpoints {
		e.OutSince = d.out[uid]
		endpoints[uid] = e
		known = known && (e.Listed || e.NoClientSent || !e.OutSince.IsZero())
	}
	return known
}

// ask asks the API server.
func (w *world) ask(d *drains, pods []*corev1.Pod) serving.Endpoints {
	endpoints := w.endpointsOf(pods, w.slices.objects)
	d.known(endpoints)
	for uid, e := range endpoints {
		if _, known := d.out[uid]; !known && !e.Listed {
			d.out[uid] = w.now
		}
	}
	d.known(endpoints)
	return endpoints
}

// endpoints are those to plan on.
func (s *stayput) endpoints() serving.Endpoints {
	endpoints := s.endpointsOf(s.pods.list(), s.slices.objects)
	if s.settings.Drain == 0 || s.drains.known(endpoints) {
		return endpoints
	}
	return s.ask(&s.drains, s.pods.list())
}

// confirmed leaves out what may not be stopped yet.
func (s *stayput) confirmed(planned []steps.Step) []steps.Step {
	if s.settings.Drain == 0 {
		return planned
	}
	current := s.ask(&s.drains, s.pods.list())
	return slices.DeleteFunc(slices.Clone(planned), func(step steps.Step) bool {
		patch, ok := step.(steps.PatchPod)
		if !ok || !patch.Drained {
			return false
		}
		e := current[patch.Pod.UID]
		s.rules.last[patch.Pod.Name] = e.LastOf != ""
		drained, _ := e.Drained(patch.Pod, s.settings.Drain, patch.ServesOn, s.now)
		s.stale = s.stale || !drained
		return !drained
	})
}

// sliceWritten notes since when pods are really out: those that never were in as well, which no slice need be written for.
func (j *judge) sliceWritten(w *world) {
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

// stopping: containers of a pod with a gate are about to stop. Nothing may offer it, and no proxy that follows within the drain,
// unless it was the last or had waited too long.
func (j *judge) stopping(w *world, pod *corev1.Pod) {
	gate := conditions.Condition(pod, inplace.ConditionServing)
	if w.settings.Drain == 0 || w.unserved || j.last[pod.Name] || gate == nil || w.now.Sub(gate.LastTransitionTime.Time) >= serving.DrainPatience+w.settings.Drain {
		return
	}
	if out, known := j.gone[pod.Name]; !known || w.now.Sub(out) < w.settings.Drain {
		w.violated("%s is restarted although it may still be called (out %v, since %s)", pod.Name, known, w.now.Sub(out))
	}
}

// reopened: a gate that was closed opens. No container may be left that was told to stop and has not been: the pod would be
// reported Ready with it, taken for updated, and then restart while it serves.
func (j *judge) reopened(w *world, pod *corev1.Pod) {
	for _, want := range kept(pod.Spec) {
		if c := w.kubelet.state[pod.Name][want.Name]; c != nil && c.running && c.dying.IsZero() && c.image != want.Image && !j.fellBack {
			w.violated("the gate of %s opens while it still runs %s", pod.Name, c.image)
		}
	}
}

// killed: the kubelet stops a container for its image.
func (j *judge) killed(w *world, name, container string) {
	pod := w.pods.objects[name]
	if pod == nil || !readiness.Gated(pod) || j.listed.Has(container) || w.settings.Drain == 0 || w.unserved || j.last[name] || !j.gone[name].IsZero() {
		return
	}
	w.violated("%s is restarted while it is offered", name)
}
