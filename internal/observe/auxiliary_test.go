package observe

import (
	"testing"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// TestAuxiliaryOfAnOutline checks that a rollout has the workload's annotation about its containers even if the cache
// has only an outline of the workload.
func TestAuxiliaryOfAnOutline(t *testing.T) {
	objects := shopOf(t, 1, 100)
	for _, object := range objects {
		if deployment, is := object.(*apps.Deployment); is {
			deployment.Annotations = map[string]string{inplace.AnnotationAuxiliary: "shipper"}
		}
	}
	cache := cacheOf(t, serve(t, objects...), keepOf(t), objects...)
	if form := (&apps.Deployment{}); cache.Get(t.Context(), key, form) != nil || inplace.AuxiliaryOf(form.Annotations).Has("shipper") {
		t.Error("the cache has more than an outline")
	}
	if rollout := rolloutOf(t, cache); !inplace.AuxiliaryOf(rollout.Deployment.Annotations).Has("shipper") {
		t.Errorf("the annotations are %v", rollout.Deployment.Annotations)
	}
}
