package observe

import (
	"context"
	"fmt"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace/edit"
)

func scalerOf(namespace, name, kind, target string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: kind, Name: target},
			Metrics:        []autoscalingv2.MetricSpec{{Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU}}},
		},
	}
}

// TestAutoscalersComeInPages checks that the reader lists autoscalers of the workload's namespace only, a page at a
// time, until it finds one, and no more than mostScalers. It lists none where nothing restarts, or no autoscaler can
// scale the workload.
func TestAutoscalersComeInPages(t *testing.T) {
	image := edit.Change{Containers: edit.ContainerChanges{{Container: "app", Image: edit.ImageChange{From: "app:1", To: "app:2"}}}}
	for name, test := range map[string]struct {
		kind      Kind
		namespace string
		before    int
		change    edit.Change
		finds     bool
		pages     int
	}{
		"the first":            {Deployments, "shop", 0, image, true, 1},
		"of a StatefulSet":     {StatefulSets, "shop", 0, image, true, 1},
		"of a DaemonSet":       {DaemonSets, "shop", 0, image, false, 0},
		"on the third page":    {Deployments, "shop", 2 * othersAtATime, image, true, 3},
		"behind too many":      {Deployments, "shop", mostScalers, image, false, mostScalers / othersAtATime},
		"in another namespace": {Deployments, "other", 0, image, false, 1},
		"nothing restarts":     {Deployments, "shop", 0, edit.Change{}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{scalerOf(test.namespace, "z", test.kind.Workload.Name, "web")}
			for i := range test.before {
				objects = append(objects, scalerOf("shop", fmt.Sprintf("a-%03d", i), test.kind.Workload.Name, "api"))
			}
			pages := 0
			paged := builder(t, objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					pages++
					if err := c.List(ctx, into, options...); err != nil {
						return err
					}
					list := into.(*autoscalingv2.HorizontalPodAutoscalerList)
					list.Items, list.Continue = pageOfItems(list.Items, (&client.ListOptions{}).ApplyOptions(options))
					return nil
				},
			}).Build()
			web := types.NamespacedName{Namespace: "shop", Name: "web"}
			about, err := test.kind.AboutAutoscalers(t.Context(), Reader{Reader: paged}, web, test.change)
			finds := strings.HasPrefix(about, "HorizontalPodAutoscaler z scales by cpu")
			if err != nil || finds != test.finds || pages != test.pages {
				t.Errorf("got %q, %v, after %d pages; want a line: %t, after %d pages", about, err, pages, test.finds, test.pages)
			}
		})
	}
}
