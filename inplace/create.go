package inplace

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"
)

// recreates: the native controller creates the target only after it has scaled everything down, which is held.
func (v *view) recreates() bool { return !v.Deployment.rolls() && !v.paused() }

func (v *view) create() {
	step, reason := newReplicaSet(v.Deployment, v.ReplicaSets)
	if reason != nil { // Verdict asked before
		panic(reason.Message)
	}
	v.step(step)
	v.phase(PhaseWaiting, "create the new ReplicaSet")
}

// newReplicaSet is the target as the native controller would create it, without replicas: getNewReplicaSet in
// pkg/controller/deployment/sync.go.
func newReplicaSet(d *Deployment, existing []*ReplicaSet) (CreateReplicaSet, *Reason) {
	template := d.Spec.Template
	typed := template.Typed()
	if reason := cmp.Or(template.flawed(), lossless(template, typed)); reason != nil {
		return CreateReplicaSet{}, reason
	}
	if d.Spec.Selector == nil {
		return CreateReplicaSet{}, &Reason{Code: CodeCannotCreate, Path: "/spec/selector", Message: "the Deployment has no selector"}
	}
	hash := templateHash(typed, d.Status.CollisionCount)
	name := replicaSetName(d.Name, hash)
	for _, rs := range existing {
		if rs.Name == name {
			return CreateReplicaSet{}, &Reason{Code: CodeCannotCreate, Message: "ReplicaSet " + name + " exists with another template"}
		}
	}
	typed.Labels = withHash(typed.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withHash(selector.MatchLabels, hash)
	none := int32(0)
	object, err := json.Marshal(appsv1.ReplicaSet{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: d.Namespace, Labels: typed.Labels, Annotations: newAnnotations(d, existing),
			OwnerReferences: []metav1.OwnerReference{*controllerRef(d, "Deployment")},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &none, MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: typed},
	})
	if err != nil {
		return CreateReplicaSet{}, &Reason{Code: CodeCannotCreate, Message: err.Error()}
	}
	return CreateReplicaSet{Name: name, Object: object}, nil
}

// lossless finds out whether our types know every field of the template. One they do not know would be lost in the target,
// and the native controller would not take it for its own.
func lossless(template Template, typed corev1.PodTemplateSpec) *Reason {
	raw, err := json.Marshal(typed)
	if err != nil {
		return &Reason{Code: CodeCannotCreate, Message: err.Error()}
	}
	if known, err := ParseTemplate(raw); err != nil || !SameTemplate(known, template) {
		return &Reason{Code: CodeCannotCreate, Path: "/spec/template", Message: "the template has fields newer than Stayput"}
	}
	return nil
}

// templateHash is ComputeHash in pkg/controller/controller_utils.go.
func templateHash(template corev1.PodTemplateSpec, collisions *int32) string {
	hasher := fnv.New32a()
	fmt.Fprintf(hasher, "%v", dump.ForHash(template))
	if collisions != nil {
		count := make([]byte, 8)
		binary.LittleEndian.PutUint32(count, uint32(*collisions))
		hasher.Write(count)
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

// hash tells the template from others, whatever revision it may get.
func (t Template) hash() string { return templateHash(t.Typed(), nil) }

// onRecord tells whether the hash on record, empty for none, is that of the template.
func (t Template) onRecord(hash string) bool { return hash != "" && hash == t.hash() }

// replicaSetName is generateReplicaSetName in pkg/controller/deployment/sync.go.
func replicaSetName(deployment, hash string) string {
	longest := validation.DNS1123SubdomainMaxLength - len("-") - len(hash)
	return deployment[:min(len(deployment), longest)] + "-" + hash
}

// notCopied are the annotations of a Deployment that its ReplicaSets do not get; annotationsToSkip in
// pkg/controller/deployment/util/deployment_util.go.
var notCopied = map[string]bool{
	corev1.LastAppliedConfigAnnotation: true, annotationRevision: true, annotationRevision + "-history": true,
	annotationDesired: true, annotationMax: true, appsv1.DeprecatedRollbackTo: true,
}

// newAnnotations is SetNewReplicaSetAnnotations for a ReplicaSet that does not exist yet.
func newAnnotations(d *Deployment, existing []*ReplicaSet) map[string]string {
	latest := int64(0)
	for _, rs := range existing {
		if revision, err := strconv.ParseInt(rs.Annotations[annotationRevision], 10, 64); err == nil {
			latest = max(latest, revision)
		}
	}
	annotations := map[string]string{
		annotationRevision: strconv.FormatInt(latest+1, 10),
		annotationDesired:  strconv.Itoa(int(desired(d))),
		annotationMax:      strconv.Itoa(int(desired(d) + d.maxSurge())),
	}
	for key, value := range d.Annotations {
		if !notCopied[key] {
			annotations[key] = value
		}
	}
	return annotations
}

// withHash returns a copy of the labels with the hash of the template.
func withHash(labels map[string]string, hash string) map[string]string {
	copied := map[string]string{labelTemplateHash: hash}
	for key, value := range labels {
		if key != labelTemplateHash {
			copied[key] = value
		}
	}
	return copied
}
