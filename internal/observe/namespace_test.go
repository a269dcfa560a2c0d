package observe

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

func TestWithoutNodes(t *testing.T) {
	noNodes := interceptor.Funcs{
		Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*corev1.Node); is {
				return errors.New("node " + key.Name + " was read")
			}
			return from.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.NodeList); is {
				return errors.New("nodes were listed")
			}
			return from.List(ctx, list, options...)
		},
	}
	objects := append(shop(), agents()[1:]...)
	for _, object := range objects {
		if pod, is := object.(*corev1.Pod); is {
			pod.Spec.NodeName = "one"
		}
	}
	reader := Reader{Reader: builder(t, objects...).WithInterceptorFuncs(noNodes).Build()}
	if _, err := reader.Rollout(context.Background(), key); err == nil {
		t.Error("no node was read, although the reader is not one without nodes")
	}
	if rollout, err := reader.WithoutNodes().Rollout(context.Background(), key); err != nil || rollout.Seen.Nodes != nil {
		t.Errorf("Deployment: %v, %v", rollout, err)
	}
	if rollout, err := DaemonSets.Rollout(context.Background(), reader.WithoutNodes(), key); err != nil || rollout.Seen.Nodes != nil {
		t.Errorf("DaemonSet: %v, %v", rollout, err)
	}
}

// TestMaintenanceWindow: a window that is closed keeps all pods. A workload's own overrides that of its namespace.
func TestMaintenanceWindow(t *testing.T) {
	says := func(objects []client.Object, is func(client.Object) bool, window string) {
		for _, object := range objects {
			if is(object) {
				object.SetAnnotations(map[string]string{inplace.AnnotationMaintenanceWindow: window})
			}
		}
	}
	namespace := func(object client.Object) bool { _, is := object.(*corev1.Namespace); return is }
	deployment := func(object client.Object) bool { _, is := object.(*apps.Deployment); return is }
	for name, test := range map[string]struct {
		namespace, workload string
		keeps               int
	}{
		"none": {"", "", 0}, "closed": {"never", "", 3}, "its own": {"", "never", 3}, "closed, and the workload's is open": {"never", "always", 0},
	} {
		objects := shop()
		if test.namespace != "" {
			says(objects, namespace, test.namespace)
		}
		if test.workload != "" {
			says(objects, deployment, test.workload)
		}
		rollout, err := Reader{Reader: builder(t, objects...).Build()}.Rollout(t.Context(), key)
		if err != nil || rollout == nil {
			t.Fatal(rollout, err)
		}
		if keeps := rollout.Seen.Settings.Partition.Keeps(3); keeps != test.keeps {
			t.Errorf("%s: %d pods are kept, want %d", name, keeps, test.keeps)
		}
	}
}
