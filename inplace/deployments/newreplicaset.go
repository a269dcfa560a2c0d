package deployments

import (
	"cmp"
	"encoding/json"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/steps"
)

// NewReplicaSet returns the step that creates the new ReplicaSet as the native controller would, but without replicas: getNewReplicaSet
// in pkg/controller/deployment/sync.go.
func NewReplicaSet(d *apps.Deployment, existing []*apps.ReplicaSet) (steps.CreateReplicaSet, *inplace.Reason) {
	template := d.Spec.Template
	typed := template.Typed()
	if reason := cmp.Or(template.Unsupported(), lossless(template, typed)); reason != nil {
		return steps.CreateReplicaSet{}, reason
	}
	if d.Spec.Selector == nil {
		return steps.CreateReplicaSet{}, &inplace.Reason{Code: inplace.CodeCannotCreate, Path: "/spec/selector",
			Message: "the Deployment has no selector"}
	}
	hash := apps.TemplateHash(typed, d.Status.CollisionCount)
	longest := validation.DNS1123SubdomainMaxLength - len("-") - len(hash)
	name := d.Name[:min(len(d.Name), longest)] + "-" + hash // generateReplicaSetName in sync.go
	for _, rs := range existing {
		if rs.Name == name {
			return steps.CreateReplicaSet{}, &inplace.Reason{Code: inplace.CodeCannotCreate,
				Message: "ReplicaSet " + name + " exists with another template"}
		}
	}
	typed.Labels = WithHash(typed.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = WithHash(selector.MatchLabels, hash)
	none := int32(0)
	object, err := json.Marshal(appsv1.ReplicaSet{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: d.Namespace, Labels: typed.Labels, Annotations: newAnnotations(d, existing),
			OwnerReferences: []metav1.OwnerReference{*apps.ControllerRef(d)},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &none, MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: typed},
	})
	if err != nil {
		return steps.CreateReplicaSet{}, &inplace.Reason{Code: inplace.CodeCannotCreate, Message: err.Error()}
	}
	return steps.CreateReplicaSet{Namespace: d.Namespace, Name: name, Object: object}, nil
}

// lossless returns a reason if Stayput's types do not know every field of the template. An unknown field would be missing in the new
// ReplicaSet, and the native controller would not recognise it as its own.
func lossless(template apps.Template, typed corev1.PodTemplateSpec) *inplace.Reason {
	raw, err := json.Marshal(typed)
	if err != nil {
		return &inplace.Reason{Code: inplace.CodeCannotCreate, Message: err.Error()}
	}
	if known, err := apps.ParseTemplate(raw); err != nil || !apps.SameTemplate(known, template) {
		return &inplace.Reason{Code: inplace.CodeCannotCreate, Path: "/spec/template", Message: "the template has fields newer than Stayput"}
	}
	return nil
}

// Copied reports whether the native controller copies an annotation of a Deployment to the ReplicaSet of its template. A copy stays there
// when the annotation is removed from the Deployment, and an undo copies it back: annotationsToSkip in
// pkg/controller/deployment/util/deployment_util.go and kubectl/pkg/polymorphichelpers/rollback.go.
func Copied(annotation string) bool { return !notCopied[annotation] }

// Undone returns the annotations that a Deployment has after an undo to a ReplicaSet with those annotations: SetDeploymentAnnotationsTo
// in deployment_util.go, Rollback in kubectl.
func Undone(deployment, replicaSet map[string]string) map[string]string {
	undone := map[string]string{}
	for key, value := range deployment {
		if !Copied(key) {
			undone[key] = value
		}
	}
	for key, value := range replicaSet {
		if Copied(key) {
			undone[key] = value
		}
	}
	return undone
}

var notCopied = map[string]bool{
	corev1.LastAppliedConfigAnnotation: true, inplace.AnnotationRevision: true, inplace.AnnotationRevision + "-history": true,
	inplace.AnnotationDesired: true, inplace.AnnotationMax: true, appsv1.DeprecatedRollbackTo: true,
}

// newAnnotations is SetNewReplicaSetAnnotations for a ReplicaSet that does not exist yet.
func newAnnotations(d *apps.Deployment, existing []*apps.ReplicaSet) map[string]string {
	latest := int64(0)
	for _, rs := range existing {
		if number, err := strconv.ParseInt(rs.Annotations[inplace.AnnotationRevision], 10, 64); err == nil {
			latest = max(latest, number)
		}
	}
	annotations := map[string]string{
		inplace.AnnotationRevision: strconv.FormatInt(latest+1, 10),
		inplace.AnnotationDesired:  strconv.Itoa(int(apps.Desired(d))),
		inplace.AnnotationMax:      strconv.Itoa(int(apps.Desired(d) + d.MaxSurge())),
	}
	for key, value := range d.Annotations {
		if Copied(key) {
			annotations[key] = value
		}
	}
	return annotations
}

// WithHash returns a copy of the labels with the hash of the template.
func WithHash(own map[string]string, hash string) map[string]string {
	return labels.Merge(own, labels.Set{inplace.LabelTemplateHash: hash})
}
