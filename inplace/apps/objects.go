package apps

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Deployment is apps/v1 Deployment with its template kept raw.
//
// +kubebuilder:object:root=true
type Deployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              DeploymentSpec          `json:"spec"`
	Status            appsv1.DeploymentStatus `json:"status"`
}

// DeploymentSpec is appsv1.DeploymentSpec; its Template takes the place of the typed one, which stays empty.
//
// +kubebuilder:object:generate=true
type DeploymentSpec struct {
	appsv1.DeploymentSpec `json:",inline"`
	Template              Template `json:"template"`
}

// ReplicaSet is apps/v1 ReplicaSet with its template kept raw.
//
// +kubebuilder:object:root=true
type ReplicaSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ReplicaSetSpec          `json:"spec"`
	Status            appsv1.ReplicaSetStatus `json:"status"`
}

// ReplicaSetSpec is appsv1.ReplicaSetSpec; its Template takes the place of the typed one, which stays empty.
//
// +kubebuilder:object:generate=true
type ReplicaSetSpec struct {
	appsv1.ReplicaSetSpec `json:",inline"`
	Template              Template `json:"template"`
}

// DaemonSet is apps/v1 DaemonSet with its template kept raw.
//
// +kubebuilder:object:root=true
type DaemonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              DaemonSetSpec          `json:"spec"`
	Status            appsv1.DaemonSetStatus `json:"status"`
}

// DaemonSetSpec is appsv1.DaemonSetSpec; its Template takes the place of the typed one, which stays empty.
//
// +kubebuilder:object:generate=true
type DaemonSetSpec struct {
	appsv1.DaemonSetSpec `json:",inline"`
	Template             Template `json:"template"`
}

// StatefulSet is apps/v1 StatefulSet with its template kept raw.
//
// +kubebuilder:object:root=true
type StatefulSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              StatefulSetSpec          `json:"spec"`
	Status            appsv1.StatefulSetStatus `json:"status"`
}

// StatefulSetSpec is appsv1.StatefulSetSpec; its Template takes the place of the typed one, which stays empty.
//
// +kubebuilder:object:generate=true
type StatefulSetSpec struct {
	appsv1.StatefulSetSpec `json:",inline"`
	Template               Template `json:"template"`
}

// ControllerRevision is apps/v1 ControllerRevision with its data kept raw, because other controllers store other data there.
//
// +kubebuilder:object:root=true
type ControllerRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              json.RawMessage `json:"data,omitempty"`
	Revision          int64           `json:"revision"`
}

// Template returns the pod template of a revision. The revision's data is a patch that replaces the template (getPatch in
// pkg/controller/daemon/update.go and pkg/controller/statefulset/stateful_set_utils.go). The error says why the data has no usable
// template.
func (r *ControllerRevision) Template() (Template, error) {
	read := ofRevisions.Of(sha256.Sum256(r.Data), len(r.Data), func() readTemplate {
		template, err := r.decode()
		return readTemplate{template, err}
	})
	if read.err != nil {
		return Template{}, fmt.Errorf("ControllerRevision %s: %w", r.Name, read.err)
	}
	return read.Template, nil
}

// IsOf reports whether the revision's template is the same as the given one, even if Stayput cannot use that template.
func (r *ControllerRevision) IsOf(template Template) bool {
	form := ofData.Of(sha256.Sum256(r.Data), 2*sha256.Size, func() revisionForm {
		own, _ := r.decode()
		return revisionForm{own.Digest(), own.raw != nil}
	})
	return form.known && form.Digest == template.Digest()
}

func (r *ControllerRevision) decode() (Template, error) {
	var data struct {
		Spec struct {
			Template map[string]json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return Template{}, err
	}
	if data.Spec.Template == nil {
		return Template{}, errors.New("its data has no pod template")
	}
	delete(data.Spec.Template, "$patch")
	raw, err := json.Marshal(data.Spec.Template)
	if err != nil {
		return Template{}, err
	}
	return ParseTemplate(raw)
}

// DeploymentList is a list of Deployments.
//
// +kubebuilder:object:root=true
type DeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Deployment `json:"items"`
}

// ReplicaSetList is a list of ReplicaSets.
//
// +kubebuilder:object:root=true
type ReplicaSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ReplicaSet `json:"items"`
}

// DaemonSetList is a list of DaemonSets.
//
// +kubebuilder:object:root=true
type DaemonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []DaemonSet `json:"items"`
}

// StatefulSetList is a list of StatefulSets.
//
// +kubebuilder:object:root=true
type StatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []StatefulSet `json:"items"`
}

// ControllerRevisionList is a list of ControllerRevisions.
//
// +kubebuilder:object:root=true
type ControllerRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ControllerRevision `json:"items"`
}

// GroupVersion is that of the native workloads and of the objects that hold revisions, those of other workloads, too.
var GroupVersion = appsv1.SchemeGroupVersion

// APIObject is an object of the API server.
type APIObject interface {
	metav1.Object
	runtime.Object
}

// Workload is a workload of any kind.
type Workload interface {
	APIObject
	// PodTemplate returns its template, which the caller may set.
	PodTemplate() *Template
	// PodSelector returns the selector of its pods.
	PodSelector() *metav1.LabelSelector
}

// PodTemplate implements Workload.
func (d *Deployment) PodTemplate() *Template { return &d.Spec.Template }

// PodSelector implements Workload.
func (d *Deployment) PodSelector() *metav1.LabelSelector { return d.Spec.Selector }

// PodTemplate implements Workload.
func (d *DaemonSet) PodTemplate() *Template { return &d.Spec.Template }

// PodSelector implements Workload.
func (d *DaemonSet) PodSelector() *metav1.LabelSelector { return d.Spec.Selector }

// PodTemplate implements Workload.
func (s *StatefulSet) PodTemplate() *Template { return &s.Spec.Template }

// PodSelector implements Workload.
func (s *StatefulSet) PodSelector() *metav1.LabelSelector { return s.Spec.Selector }

// known is the scheme that says of which group, version and kind each of these types is.
var known = runtime.NewScheme()

func init() {
	if err := AddToScheme(known); err != nil {
		panic(err) // two types of one kind
	}
}

// KindOf returns the group, version and kind of an object, or of a list, of this package.
func KindOf(object runtime.Object) schema.GroupVersionKind {
	kinds, _, err := known.ObjectKinds(object)
	if err != nil {
		panic(err) // AddToScheme lacks the type
	}
	return kinds[0]
}

// ListOf returns an empty list of objects of that kind, which must be one of this package.
func ListOf(kind schema.GroupVersionKind) runtime.Object {
	list, err := known.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		panic(err) // AddToScheme lacks the type
	}
	return list
}

// ControllerRef returns a reference that makes the object the controller of another.
func ControllerRef(owner APIObject) *metav1.OwnerReference {
	return metav1.NewControllerRef(owner, KindOf(owner))
}

// AddToScheme registers these types as the apps/v1 kinds, instead of the types of k8s.io/api/apps/v1: a scheme can have only one of
// the two. Clients must ask for JSON (rest.Config.ContentType), because these types have no protobuf form.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Deployment{}, &DeploymentList{},
		&ReplicaSet{}, &ReplicaSetList{},
		&DaemonSet{}, &DaemonSetList{},
		&StatefulSet{}, &StatefulSetList{},
		&ControllerRevision{}, &ControllerRevisionList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
