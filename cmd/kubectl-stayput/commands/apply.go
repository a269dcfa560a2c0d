package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/openapi3"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applier does what kubectl apply does, in dry runs: the API server stores nothing. The objects that it answers with have its defaults and
// have been through admission.
type applier struct {
	client.Client
	// schemas say how lists are merged. They come from the API server, so that they have its newest fields.
	schemas openapi3.Root
	// serverSide, force and manager are flags of kubectl apply. Without a manager, it is kubectl's own.
	serverSide, force bool
	manager           string
}

// apply returns the object as it is stored, nil if it does not exist yet, and as it would be stored.
func (a applier) apply(ctx context.Context, wanted *unstructured.Unstructured) (stored, applied *unstructured.Unstructured, err error) {
	stored = &unstructured.Unstructured{}
	stored.SetGroupVersionKind(wanted.GroupVersionKind())
	switch err = a.Get(ctx, client.ObjectKeyFromObject(wanted), stored); {
	case apierrors.IsNotFound(err):
		return nil, wanted, a.create(ctx, wanted)
	case err != nil:
		return nil, nil, err
	}
	applied = stored.DeepCopy()
	if a.serverSide {
		return stored, applied, a.applyServerSide(ctx, wanted, applied)
	}
	patch, err := a.threeWay(stored, wanted)
	if err != nil {
		return stored, nil, err
	}
	err = a.Patch(ctx, applied, client.RawPatch(types.StrategicMergePatchType, patch),
		client.DryRunAll, client.FieldOwner(cmp.Or(a.manager, "kubectl-client-side-apply")), strictly)
	return stored, applied, err
}

// strictly has the API server refuse fields that it does not know, as kubectl does.
const strictly = client.FieldValidation(metav1.FieldValidationStrict)

// create asks the API server about a new object. What it does not find is a namespace that is new as well.
func (a applier) create(ctx context.Context, wanted *unstructured.Unstructured) error {
	err := a.Create(ctx, wanted.DeepCopy(), client.DryRunAll, client.FieldOwner(cmp.Or(a.manager, "kubectl")), strictly)
	return client.IgnoreNotFound(err)
}

func (a applier) applyServerSide(ctx context.Context, wanted, applied *unstructured.Unstructured) error {
	patch, err := wanted.MarshalJSON()
	if err != nil {
		return err
	}
	options := []client.PatchOption{client.DryRunAll, client.FieldOwner(cmp.Or(a.manager, "kubectl")), strictly}
	if a.force {
		options = append(options, client.ForceOwnership)
	}
	return a.Patch(ctx, applied, client.RawPatch(types.ApplyPatchType, patch), options...)
}

// threeWay returns the patch that kubectl's Patcher.patchSimple makes (k8s.io/kubectl/pkg/cmd/apply/patcher.go).
func (a applier) threeWay(stored, wanted *unstructured.Unstructured) ([]byte, error) {
	modified, err := annotated(wanted)
	if err != nil {
		return nil, err
	}
	current, err := stored.MarshalJSON()
	if err != nil {
		return nil, err
	}
	lists, err := a.mergesOf(wanted.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	original := []byte(stored.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	return strategicpatch.CreateThreeWayMergePatch(original, modified, current, lists, true)
}

// annotated returns the object with itself as its last-applied annotation, as GetModifiedConfiguration of k8s.io/kubectl/pkg/util/apply.go
// does.
func annotated(wanted *unstructured.Unstructured) ([]byte, error) {
	next := wanted.DeepCopy()
	annotations := next.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	next.SetAnnotations(annotations)
	last, err := next.MarshalJSON()
	if err != nil {
		return nil, err
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(last)
	next.SetAnnotations(annotations)
	return next.MarshalJSON()
}

// mergesOf returns how the lists of a kind are merged, as buildStrategicMergePatchFromOpenAPIV3 in kubectl's patcher does.
func (a applier) mergesOf(kind schema.GroupVersionKind) (strategicpatch.LookupPatchMeta, error) {
	described, err := a.schemas.GVSpec(kind.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("read how the API server describes %s: %w", kind.GroupVersion(), err)
	}
	for _, of := range described.Components.Schemas {
		var kinds []metav1.GroupVersionKind
		if of.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds) == nil &&
			len(kinds) > 0 && kinds[0] == metav1.GroupVersionKind(kind) {
			return strategicpatch.PatchMetaFromOpenAPIV3{Schema: of, SchemaList: described.Components.Schemas}, nil
		}
	}
	return nil, fmt.Errorf("the API server does not describe %s", kind)
}

// readInto decodes an object, as the API server sent it, into a type of Stayput or of Kubernetes.
func readInto(decoded any, object *unstructured.Unstructured) error {
	raw, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, decoded)
}
