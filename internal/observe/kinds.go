package observe

import (
	"context"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/controllerrevisions"
	"github.com/stayput/stayput/inplace/daemonsets"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/statefulsets"
	"github.com/stayput/stayput/inplace/steps"
)

// Kinds has the kinds of workloads that are updated in place. From it follows what Stayput watches, caches and indexes, which edits and
// native writes its webhooks decide on, which events enqueue which workload, which updates fall back when Stayput is uninstalled, what
// metrics count, and what the plugin reads.
var Kinds = []Kind{Deployments, DaemonSets, StatefulSets}

// The kinds.
var (
	Deployments  = Kind{Traits: deployments.Traits, Workload: typeOf(&apps.Deployment{}, nil), Revision: replicaSets}
	DaemonSets   = revised(daemonsets.Of)
	StatefulSets = revised(statefulsets.Of)
)

// Kind is a kind of workload, with how it is read.
type Kind struct {
	engine.Traits
	// Workload is the type of the workload, Revision the type of the objects that hold its revisions.
	Workload, Revision Type
	// Of returns all that is special about a workload of this kind, if its revisions are ControllerRevisions. Workloads of such a kind control
	// their pods themselves. It is nil for Deployments.
	Of func(workload client.Object) controllerrevisions.Kind
}

// revised returns the kind whose revisions are ControllerRevisions.
func revised[T any, P interface {
	*T
	apps.Workload
}](of func(P) controllerrevisions.Kind) Kind {
	empty := P(new(T))
	return Kind{Traits: of(empty).Traits(), Workload: typeOf(empty, nil), Revision: controllerRevisions,
		Of: func(workload client.Object) controllerrevisions.Kind { return of(workload.(P)) }}
}

// Finished reports whether the native controller is done with the workload.
func (k Kind) Finished(workload client.Object) bool {
	if k.Of != nil {
		return k.Of(workload).Finished()
	}
	deployment, is := workload.(*apps.Deployment)
	return is && deployments.Complete(deployment, deployment.Status)
}

// Source returns one workload with everything that belongs to it; nil if it is gone.
type Source func(ctx context.Context, key types.NamespacedName) (engine.Rollout, error)

// Source returns a Source that reads workloads of the kind through the reader.
func (k Kind) Source(r Reader) Source {
	if k.Of == nil {
		return SourceOf(r.Rollout)
	}
	return SourceOf(func(ctx context.Context, key types.NamespacedName) (*controllerrevisions.Rollout, error) {
		return k.Rollout(ctx, r, key)
	})
}

// SourceOf returns a Source that reads with that function.
func SourceOf[P interface {
	comparable
	engine.Rollout
}](read func(context.Context, types.NamespacedName) (P, error)) Source {
	return func(ctx context.Context, key types.NamespacedName) (engine.Rollout, error) {
		var none P
		found, err := read(ctx, key)
		if found == none || err != nil { // an interface that holds a nil pointer would not be nil
			return nil, err
		}
		return found, nil
	}
}

// Edited returns the rollout of a workload as an edit would leave it, with what a preview needs: pods of a Deployment are not among it.
func (k Kind) Edited(ctx context.Context, r Reader, workload client.Object) (engine.Rollout, error) {
	if deployment, is := workload.(*apps.Deployment); is {
		return r.WithoutPods().RolloutOf(ctx, deployment)
	}
	return k.RolloutOf(ctx, r, workload)
}

// AboutDuration returns a line about how long the previewed update of a workload takes: see engine.Snapshot.AboutDuration.
func (k Kind) AboutDuration(ctx context.Context, r Reader, key types.NamespacedName, preview steps.Preview) (string, error) {
	if !preview.InPlace() || !preview.Change.Restarts() {
		return "", nil
	}
	stored, err := k.Source(r.WithoutNodes())(ctx, key)
	if stored == nil || err != nil {
		return "", err
	}
	return stored.Snapshot().AboutDuration(preview, preview.Moving(), preview.Change.Restarting()), nil
}

// Holder returns the object that links a pod, or a pre-pull pod, to its workload: the revision that controls it, or the pod itself if no
// revision of the kind does.
func (k Kind) Holder(ctx context.Context, r Reader, pod *corev1.Pod) (client.Object, error) {
	if revision, err := k.Revision.controllerOf(ctx, r, pod); revision != nil || err != nil {
		return revision, err
	}
	return pod, nil
}

// ModeOf returns the mode of a workload of this kind with these labels, in that namespace.
func (k Kind) ModeOf(namespace metav1.Object, workloadLabels map[string]string) inplace.Mode {
	return inplace.ModeOf(k.Workload.Name, namespace, workloadLabels)
}

// NameOf returns the name of the object's controller if the controller is of this kind; "" if not.
func (k Kind) NameOf(object metav1.Object) string {
	owner := k.Workload.owner(object)
	if owner == nil {
		return ""
	}
	return owner.Name
}

// Type is a type of objects. The cache may have only outlines of such objects.
type Type struct {
	// Name is the kind in owner references.
	Name string

	kind  schema.GroupVersionKind
	empty client.Object
	// keep sets in an outline what it has of the object besides its metadata; nil if that is nothing.
	keep func(outline, of client.Object)
}

// typeOf returns the type of the empty object.
func typeOf(empty client.Object, keep func(outline, of client.Object)) Type {
	kind := apps.KindOf(empty)
	return Type{Name: kind.Kind, kind: kind, empty: empty, keep: keep}
}

// Object returns an empty object of the type.
func (t Type) Object() client.Object { return copyOf(t.empty) }

// List returns an empty list of objects of the type.
func (t Type) List() client.ObjectList { return apps.ListOf(t.kind).(client.ObjectList) }

// Resource returns the API resource of the type.
func (t Type) Resource() schema.GroupVersionResource {
	resource, _ := apimeta.UnsafeGuessKindToResource(t.kind)
	return resource
}

func (t Type) is(object client.Object) bool { return reflect.TypeOf(object) == reflect.TypeOf(t.empty) }

// outlineOf returns the outline of an object of that size.
func (t Type) outlineOf(object client.Object, size int) client.Object {
	outline := t.Object()
	*outline.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = outlineMeta(object, size)
	if t.keep != nil {
		t.keep(outline, object)
	}
	return outline
}

// owner returns the owner reference to the object's controller if the controller is of the type; nil if not.
func (t Type) owner(object metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != t.kind.GroupKind() {
		return nil
	}
	return owner
}

// controllerOf returns the controller of an object if it is of the type. It returns nil if it is not, or if the controller is gone.
func (t Type) controllerOf(ctx context.Context, r Reader, of client.Object) (client.Object, error) {
	return t.controllerInto(ctx, r, of, t.Object())
}

// MetadataOfController returns the metadata of an object's controller if that is of the type; nil if it is not, or if the controller is
// gone. An API server sends no more, in protobuf.
func (t Type) MetadataOfController(ctx context.Context, r Reader, of client.Object) (client.Object, error) {
	if r.Stores.present() {
		return t.controllerOf(ctx, r, of)
	}
	empty := &metav1.PartialObjectMetadata{}
	empty.SetGroupVersionKind(t.kind)
	return t.controllerInto(ctx, r, of, empty)
}

// controllerInto reads the controller into the empty object, and returns it.
func (t Type) controllerInto(ctx context.Context, r Reader, of, empty client.Object) (client.Object, error) {
	owner := t.owner(of)
	if owner == nil {
		return nil, nil
	}
	found, err := r.find(ctx, types.NamespacedName{Namespace: of.GetNamespace(), Name: owner.Name}, empty)
	if err != nil || found == nil || found.GetUID() != owner.UID {
		return nil, err
	}
	return found, nil
}

// The types of objects that hold revisions. Their outlines have the numbers of replicas, in spec and status, and the revision's number.
var (
	replicaSets = typeOf(&apps.ReplicaSet{}, func(outline, of client.Object) {
		form, rs := outline.(*apps.ReplicaSet), of.(*apps.ReplicaSet)
		form.Spec.Replicas, form.Status = rs.Spec.Replicas, rs.Status
		form.Status.Conditions = nil
	})
	controllerRevisions = typeOf(&apps.ControllerRevision{}, func(outline, of client.Object) {
		outline.(*apps.ControllerRevision).Revision = of.(*apps.ControllerRevision).Revision
	})
)

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
		if !slices.ContainsFunc(all, func(known Type) bool { return known.kind == kind.Revision.kind }) {
			all = append(all, kind.Revision)
		}
	}
	return all
}

// kindOf returns the kind of an object, or of the items of a list, as users know it. What users read names no types of Go.
func kindOf(object any) string {
	if only, is := object.(*metav1.PartialObjectMetadata); is {
		return only.Kind
	}
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
