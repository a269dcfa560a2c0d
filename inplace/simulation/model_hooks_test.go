package simulation

import (
	"math/rand"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
)

// registrar is another controller, on a cache that lags: it has a hook on the pods of the workload.
type registrar struct {
	*world
	pods *informer[*corev1.Pod]
	rng  *rand.Rand
	// dead: it does nothing any more. fickle: it sometimes sets the annotation on a pod that is out of service already.
	dead, fickle bool
}

const hook = inplace.PreRestartHookPrefix + "lb"

// hooked gives the Deployment the hook and its controller.
func (w *world) hooked(timeout time.Duration) *registrar {
	w.settings.PreRestartTimeout = timeout
	w.user("names a hook", func(d *apps.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.AnnotationPreRestartHooks, "lb")
	})
	w.registrar = &registrar{world: w, pods: w.pods.informer(), rng: rand.New(rand.NewSource(w.seed))}
	return w.registrar
}

// run looks at one pod.
func (r *registrar) run(pod *corev1.Pod) {
	_, has := pod.Annotations[hook]
	wants := apps.IsTrue(pod, corev1.PodReady) && !readiness.Out(pod) || r.fickle && r.rng.Intn(3) == 0
	if has == wants || r.dead {
		return
	}
	_, err := alter(r.world, r.world.pods, pod.Name, pod.ResourceVersion, func(pod *corev1.Pod) {
		if delete(pod.Annotations, hook); wants {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, hook, "")
		} else if len(pod.Annotations) == 0 {
			pod.Annotations = nil // as the API server stores it
		}
	})
	r.logf("registrar: the hook of %s is set: %t, %v", pod.Name, wants, err)
}

func (w *world) tickHooks() {
	if w.registrar == nil {
		return
	}
	switch pods := w.registrar.pods.list(); w.registrar.rng.Intn(20) {
	case 0, 1, 2:
		w.registrar.pods.advance(1 + w.registrar.rng.Intn(4))
	case 3, 4:
		if len(pods) > 0 {
			w.registrar.run(pods[w.registrar.rng.Intn(len(pods))])
		}
	}
}

// runHooks delivers all events of pods to the registrar.
func (w *world) runHooks() {
	if w.registrar == nil {
		return
	}
	w.registrar.pods.advance(1000)
	for _, pod := range w.registrar.pods.list() {
		w.registrar.run(pod)
	}
}

// hookKept demands that containers of a drained pod stop only when it has no hook, or when the hook has held it for as long as it may.
func (j *invariants) hookKept(w *world, s steps.PatchPod) {
	if w.registrar == nil || len(inplace.HooksOf(w.deployment().Annotations).On(w.pods.objects[s.Pod.Name])) == 0 {
		return
	}
	if held := w.now.Sub(readiness.OutAt(s.Pod)); held < w.settings.PreRestartTimeout {
		w.violated("%s restarts while a hook holds it, after %s", s.Pod.Name, held)
	}
}
