package observe

import (
	"context"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// GroupVersion is the group and version of all workloads and of the objects that hold their revisions.
var GroupVersion = appsv1.SchemeGroupVersion

// Kinds has the kinds of workloads that are updated in place. What Stayput watches, caches and indexes follows from it.
var Kinds = []Kind{Deployments, DaemonSets.Kind, StatefulSets.Kind}

// Kind is a kind of workload.
type Kind struct {
	// Workload is the type of the workload, Revision the type of the objects that hold its revisions.
	Workload, Revision Type
	// OnEveryNode: an update depends on all nodes, and not only on those of the workload's pods.
	OnEveryNode bool
	// Scaled: the workload has the subresource scale, so an autoscaler may scale it.
	Scaled bool
	// optedIn reports whether the user asked for updates in place of this kind; nil if the kind needs no opt-in.
	optedIn func(inplace.Settings) bool
	// nudgers returns the rollouts of all workloads of this kind in a namespace, with what Nudge needs.
	nudgers func(ctx context.Context, r Reader, of namespaced) ([]Nudger, error)
}

// ModeOf returns the mode of a workload of this kind with these labels, in a namespace with those.
func (k Kind) ModeOf(namespaceLabels, workloadLabels map[string]string) inplace.Mode {
	mode := inplace.ModeOf(namespaceLabels, workloadLabels)
	return mode.IfOptedIn(k.optedIn == nil || k.optedIn(inplace.SettingsOf(namespaceLabels, workloadLabels)))
}

// NameOf returns the name of the object's controller if the controller is of this kind; "" if not.
func (k Kind) NameOf(object metav1.Object) string {
	owner := controllerOfKind(object, k.Workload.Name)
	if owner == nil {
		return ""
	}
	return owner.Name
}

// Type is a type of objects. The cache may have only outlines of such objects.
type Type struct {
	// Name is the kind in owner references.
	Name string
	// Object returns an empty object of the type, List an empty list.
	Object func() client.Object
	List   func() client.ObjectList

	is           func(client.Object) bool
	outlineOf    func(object client.Object, size int) client.Object
	controllerOf func(ctx context.Context, r Reader, controlled client.Object) (client.Object, error)
	find         func(ctx context.Context, r Reader, key types.NamespacedName) (client.Object, error)
}

// Resource returns the API resource of the type.
func (t Type) Resource() schema.GroupVersionResource {
	resource, _ := apimeta.UnsafeGuessKindToResource(GroupVersion.WithKind(t.Name))
	return resource
}

// typeOf returns the type of group apps with that name. form returns the outline of an object with that metadata.
func typeOf[T any, P object[T]](
	name string, list func() client.ObjectList, form func(of P, form metav1.ObjectMeta) P,
) Type {
	return Type{
		Name:   name,
		Object: func() client.Object { return P(new(T)) },
		List:   list,
		is: func(object client.Object) bool {
			_, is := object.(P)
			return is
		},
		outlineOf: func(object client.Object, size int) client.Object {
			of := object.(P)
			return form(of, outlineMeta(of, size))
		},
		controllerOf: func(ctx context.Context, r Reader, controlled client.Object) (client.Object, error) {
			return orNil(findController[T, P](ctx, r, controlled, name))
		},
		find: func(ctx context.Context, r Reader, key types.NamespacedName) (client.Object, error) {
			return orNil(find[T, P](ctx, r, key))
		},
	}
}

// orNil returns the object, or nil. An interface that holds a nil pointer would not be nil.
func orNil[T any, P object[T]](found P, err error) (client.Object, error) {
	if found == nil || err != nil {
		return nil, err
	}
	return found, nil
}

// controllerRevisions is a type that holds the revisions of several kinds of workloads.
var controllerRevisions = typeOf("ControllerRevision", func() client.ObjectList { return &apps.ControllerRevisionList{} },
	func(revision *apps.ControllerRevision, form metav1.ObjectMeta) *apps.ControllerRevision {
		return &apps.ControllerRevision{ObjectMeta: form, Revision: revision.Revision}
	})

// Types returns the types of workloads and of the objects that hold their revisions.
func Types() []Type {
	var all []Type
	for _, kind := range Kinds {
		all = append(all, kind.Workload)
	}
	return append(all, revisionTypes()...)
}

// revisionTypes returns the types of the objects that hold revisions, each once.
func revisionTypes() []Type {
	var all []Type
	for _, kind := range Kinds {
		if !slices.ContainsFunc(all, func(known Type) bool { return known.Name == kind.Revision.Name }) {
			all = append(all, kind.Revision)
		}
	}
	return all
}

// kindOf returns the kind of an object, or of the items of a list, as users know it. What users read names no types of Go.
func kindOf(object any) string {
	return strings.TrimSuffix(reflect.TypeOf(object).Elem().Name(), "List")
}

// typeFor returns the type of the object; nil if the object is no workload and no revision.
func typeFor(object client.Object) *Type {
	for _, kind := range Kinds {
		switch {
		case kind.Workload.is(object):
			return &kind.Workload
		case kind.Revision.is(object):
			return &kind.Revision
		}
	}
	return nil
}

// isOf reports whether a revision belongs to a workload of one of the Kinds.
func isOf(revision client.Object) bool {
	return slices.ContainsFunc(Kinds, func(kind Kind) bool { return kind.Revision.is(revision) && kind.NameOf(revision) != "" })
}
