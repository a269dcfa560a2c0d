package rights

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// installed returns the objects of an installation with two managers, without finalizers.
func installed() map[string]client.Object {
	own := metav1.ObjectMeta{Namespace: "own", Name: "stayput"}
	deployment := &apps.Deployment{ObjectMeta: own}
	deployment.Spec.Replicas = ptr.To[int32](2)
	return map[string]client.Object{
		"Namespace":          &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own"}},
		"Deployment":         deployment,
		"ServiceAccount":     &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "managers"}},
		"Role":               &rbacv1.Role{ObjectMeta: own},
		"RoleBinding":        &rbacv1.RoleBinding{ObjectMeta: own},
		"ClusterRole":        &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "stayput"}},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "stayput"}},
	}
}

func rightsIn(t *testing.T, objects map[string]client.Object) Rights {
	t.Helper()
	scheme := runtime.NewScheme()
	known := runtime.NewSchemeBuilder(corev1.AddToScheme, rbacv1.AddToScheme, apps.AddToScheme)
	if err := known.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, object := range objects {
		builder = builder.WithObjects(object)
	}
	return Rights{Client: builder.Build(), Namespace: "own", Account: "managers"}
}

// going gives the object a finalizer and deletes it.
func going(object client.Object) {
	object.SetFinalizers([]string{"example.com/other"})
	object.SetDeletionTimestamp(ptr.To(metav1.Now()))
}

func TestRemoval(t *testing.T) {
	is := func(kind string, change func(client.Object)) func(map[string]client.Object) {
		return func(all map[string]client.Object) { change(all[kind]) }
	}
	scaled := func(replicas int32) func(client.Object) {
		return func(object client.Object) { object.(*apps.Deployment).Spec.Replicas = &replicas }
	}
	gone := func(kind string) func(map[string]client.Object) {
		return func(all map[string]client.Object) { delete(all, kind) }
	}
	for name, test := range map[string]struct {
		happens func(map[string]client.Object)
		want    string
	}{
		"nothing happens":         {func(map[string]client.Object) {}, ""},
		"one manager less":        {is("Deployment", scaled(1)), ""},
		"no manager any more":     {is("Deployment", scaled(0)), "Deployment stayput is scaled to 0"},
		"its Deployment goes":     {is("Deployment", going), "Deployment stayput is being deleted"},
		"its Deployment is gone":  {gone("Deployment"), "Deployment stayput is gone"},
		"its namespace goes":      {is("Namespace", going), "Namespace own is being deleted"},
		"its account goes":        {is("ServiceAccount", going), "ServiceAccount managers is being deleted"},
		"its Role goes":           {is("Role", going), "Role stayput is being deleted"},
		"its RoleBinding is gone": {gone("RoleBinding"), "RoleBinding stayput is gone"},
		"its ClusterRole goes":    {is("ClusterRole", going), "ClusterRole stayput is being deleted"},
		"its last binding goes":   {is("ClusterRoleBinding", going), "ClusterRoleBinding stayput is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := installed()
			test.happens(objects)
			if got, err := rightsIn(t, objects).Removal(t.Context()); err != nil || got != test.want {
				t.Errorf("removed by %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// TestRemovalIsSeenWithFewerRights has a manager that may not read one of the objects.
func TestRemovalIsSeenWithFewerRights(t *testing.T) {
	objects := installed()
	for _, want := range []string{"", "ClusterRole stayput is being deleted"} {
		r := rightsIn(t, objects)
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
				if key.Name == r.Account {
					return errors.New("forbidden")
				}
				return c.Get(ctx, key, into)
			}})
		got, err := r.Removal(t.Context())
		if got != want || (err == nil) != (want != "") {
			t.Errorf("removed by %q, %v; want %q", got, err, want)
		}
		going(objects["ClusterRole"])
	}
}

// TestLookKeepsFinalizers checks that the finalizer is added to those of other clients, and that nothing is written if it is there.
func TestLookKeepsFinalizers(t *testing.T) {
	objects := installed()
	objects["Role"].SetFinalizers([]string{"example.com/other"})
	r := rightsIn(t, objects)
	end := func(cause error) { t.Errorf("the manager ends: %v", cause) }
	var versions []string
	for range 2 {
		if err := r.look(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		for _, object := range r.Objects() {
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			kind := object.GetObjectKind().GroupVersionKind().Kind
			others := slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == inplace.Finalizer })
			if has := len(object.GetFinalizers()) - len(others); has != 1 || (len(others) == 1) != (kind == "Role") {
				t.Errorf("%s has the finalizers %q", kind, object.GetFinalizers())
			}
			versions = append(versions, object.GetResourceVersion())
		}
	}
	if n := len(versions) / 2; !slices.Equal(versions[:n], versions[n:]) {
		t.Errorf("the second look wrote: versions are %q", versions)
	}
}

func TestLookEndsTheManager(t *testing.T) {
	objects := installed()
	going(objects["ClusterRole"])
	ctx, end := context.WithCancelCause(t.Context())
	if err := rightsIn(t, objects).look(ctx, end); err != nil {
		t.Fatal(err)
	}
	want := "Stayput is being removed: ClusterRole stayput is being deleted"
	if context.Cause(ctx) == nil || context.Cause(ctx).Error() != want {
		t.Errorf("it ends because %v, want %s", context.Cause(ctx), want)
	}
}
