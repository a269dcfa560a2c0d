package rights

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// Name is the name of the managers' Deployment, and of all objects that give them rights but their ServiceAccount.
const Name = "stayput"

// Rights are the managers' rights.
type Rights struct {
	// Client talks to the API server itself.
	Client client.Client
	// Namespace is Stayput's own namespace. Account is the name of the managers' ServiceAccount there.
	Namespace, Account string

	http   *http.Client
	server *url.URL
}

// New returns the rights of the managers in this namespace with this ServiceAccount.
func New(c client.Client, config *rest.Config, namespace, account string) (Rights, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return Rights{}, fmt.Errorf("the API server's address %q: %w", config.Host, err)
	}
	connection, err := rest.HTTPClientFor(config)
	return Rights{Client: c, Namespace: namespace, Account: account, http: connection, server: server}, err
}

// Objects returns the objects that give the managers their rights.
func (r Rights) Objects() []client.Object {
	return []client.Object{
		object(corev1.SchemeGroupVersion, "ServiceAccount", r.Namespace, r.Account),
		object(rbacv1.SchemeGroupVersion, "Role", r.Namespace, Name),
		object(rbacv1.SchemeGroupVersion, "RoleBinding", r.Namespace, Name),
		object(rbacv1.SchemeGroupVersion, "ClusterRole", "", Name),
		object(rbacv1.SchemeGroupVersion, "ClusterRoleBinding", "", Name),
	}
}

func object(group schema.GroupVersion, kind, namespace, name string) client.Object {
	made := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	made.SetGroupVersionKind(group.WithKind(kind))
	return made
}

// Removal returns by what Stayput is being removed, as a clause; empty if it is not. A rollout of the managers, or a
// manager that is deleted alone, is no removal. If one object cannot be read, the others decide.
func (r Rights) Removal(ctx context.Context) (what string, err error) {
	deployment := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: Name}}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	needed := append([]client.Object{deployment, object(corev1.SchemeGroupVersion, "Namespace", "", r.Namespace)}, r.Objects()...)
	var failed []error
	for _, object := range needed {
		what, err := r.deleted(ctx, object)
		if what != "" {
			return what, nil
		}
		failed = append(failed, err)
	}
	if failed[0] == nil && ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
		return "Deployment " + Name + " is scaled to 0", nil
	}
	return "", errors.Join(failed...)
}

// deleted reads the object and returns that it is being deleted, or is gone; empty if it stays.
func (r Rights) deleted(ctx context.Context, object client.Object) (string, error) {
	name := object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return name + " is gone", nil
	case err != nil:
		return "", fmt.Errorf("read our own %s: %w", name, err)
	case object.GetDeletionTimestamp() != nil:
		return name + " is being deleted", nil
	}
	return "", nil
}

// keep and release are strategic merge patches: they add and remove one finalizer, and leave those of other clients.
const (
	keep    = `{"metadata":{"finalizers":["` + inplace.Finalizer + `"]}}`
	release = `{"metadata":{"$deleteFromPrimitiveList/finalizers":["` + inplace.Finalizer + `"]}}`
)

// Keep puts the finalizer on every object that does not have it.
func (r Rights) Keep(ctx context.Context) error {
	var failed []error
	for _, object := range r.Objects() {
		failed = append(failed, r.keep(ctx, object))
	}
	return errors.Join(failed...)
}

func (r Rights) keep(ctx context.Context, object client.Object) error {
	name := object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil && !slices.Contains(object.GetFinalizers(), inplace.Finalizer) {
		err = r.Client.Patch(ctx, object, client.RawPatch(types.StrategicMergePatchType, []byte(keep)))
	}
	if err != nil {
		return fmt.Errorf("put finalizer %s on our own %s: %w", inplace.Finalizer, name, err)
	}
	return nil
}
