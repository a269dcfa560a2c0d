package observe

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
)

// sending returns that many Services, each with a slice of that many endpoints. The last endpoint of each slice is pod
// w.
func sending(count, endpoints int) []client.Object {
	var all []client.Object
	for i := range count {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: meta(fmt.Sprintf("slice-%03d", i), "")}
		slice.Labels = map[string]string{
			discoveryv1.LabelServiceName: fmt.Sprint("service-", i), discoveryv1.LabelManagedBy: podstate.SliceController}
		for e := range endpoints {
			uid := types.UID(fmt.Sprint(i, "-", e))
			if e == endpoints-1 {
				uid = "w"
			}
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: uid}})
		}
		service := &corev1.Service{ObjectMeta: meta(fmt.Sprint("service-", i), "")}
		all = append(all, slice, service)
	}
	return all
}

// TestEndpointsComeInPages lists more than one page of slices and of Services, and checks that no list has more than a
// page.
func TestEndpointsComeInPages(t *testing.T) {
	out := &corev1.Pod{ObjectMeta: meta("p", "w")}
	out.Status.Conditions = []corev1.PodCondition{readiness.TakenOutUntil(out, time.Now(), time.Now())}
	const count = 2*othersAtATime + 1
	largest := 0
	paged := builder(t, sending(count, 1)...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			asked := (&client.ListOptions{}).ApplyOptions(options)
			if err := c.List(ctx, into, options...); err != nil {
				return err
			}
			switch list := into.(type) {
			case *discoveryv1.EndpointSliceList:
				list.Items, list.Continue = pageOfItems(list.Items, asked)
				largest = max(largest, len(list.Items))
			case *corev1.ServiceList:
				list.Items, list.Continue = pageOfItems(list.Items, asked)
				largest = max(largest, len(list.Items))
			}
			return nil
		},
	}).Build()
	found, err := Reader{Reader: paged}.Endpoints(t.Context(), "shop", []*corev1.Pod{out})
	if err != nil || !found["w"].Listed || found["w"].LastOf == "" || found["w"].NoClientSent {
		t.Errorf("got %+v, %v for the pod", found["w"], err)
	}
	if largest != othersAtATime {
		t.Errorf("the largest page has %d objects", largest)
	}
}

func TestTooManyEndpointsAreNotListed(t *testing.T) {
	objects := sending(mostEndpoints/1000+1, 1000)
	if _, err := (Reader{Reader: builder(t, objects...).Build()}).Endpoints(t.Context(), "shop", nil); err == nil {
		t.Error("want an error for too many endpoints")
	}
	if _, err := cacheHas(t, objects...).Endpoints(t.Context(), "shop", nil); err != nil {
		t.Errorf("a cache has all endpoints in memory, want no error: %v", err)
	}
	elsewhere := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a"}}
	if _, err := (Reader{Reader: builder(t, append(objects, elsewhere)...).Build()}).Endpoints(t.Context(), "other", nil); err != nil {
		t.Errorf("another namespace has few: %v", err)
	}
}
