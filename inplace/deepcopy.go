package inplace

import "k8s.io/apimachinery/pkg/runtime"

// Templates are never changed after they were decoded, so copies share them.

// DeepCopyInto copies the Deployment into out.
func (in *Deployment) DeepCopyInto(out *Deployment) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.DeepCopyInto(&out.Spec)
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopyInto copies the spec into out.
func (in *DeploymentSpec) DeepCopyInto(out *DeploymentSpec) {
	in.DeploymentSpec.DeepCopyInto(&out.DeploymentSpec)
	out.Template = in.Template
}

// DeepCopy returns a copy.
func (in *Deployment) DeepCopy() *Deployment { return copyOf(in, in.DeepCopyInto) }

// DeepCopyObject implements runtime.Object.
func (in *Deployment) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (in *DeploymentList) DeepCopyObject() runtime.Object {
	out := &DeploymentList{TypeMeta: in.TypeMeta, Items: make([]Deployment, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// DeepCopyInto copies the ReplicaSet into out.
func (in *ReplicaSet) DeepCopyInto(out *ReplicaSet) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.DeepCopyInto(&out.Spec)
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopyInto copies the spec into out.
func (in *ReplicaSetSpec) DeepCopyInto(out *ReplicaSetSpec) {
	in.ReplicaSetSpec.DeepCopyInto(&out.ReplicaSetSpec)
	out.Template = in.Template
}

// DeepCopy returns a copy.
func (in *ReplicaSet) DeepCopy() *ReplicaSet { return copyOf(in, in.DeepCopyInto) }

// DeepCopyObject implements runtime.Object.
func (in *ReplicaSet) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (in *ReplicaSetList) DeepCopyObject() runtime.Object {
	out := &ReplicaSetList{TypeMeta: in.TypeMeta, Items: make([]ReplicaSet, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// DeepCopyInto copies the DaemonSet into out.
func (in *DaemonSet) DeepCopyInto(out *DaemonSet) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.DeepCopyInto(&out.Spec)
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopyInto copies the spec into out.
func (in *DaemonSetSpec) DeepCopyInto(out *DaemonSetSpec) {
	in.DaemonSetSpec.DeepCopyInto(&out.DaemonSetSpec)
	out.Template = in.Template
}

// DeepCopy returns a copy.
func (in *DaemonSet) DeepCopy() *DaemonSet { return copyOf(in, in.DeepCopyInto) }

// DeepCopyObject implements runtime.Object.
func (in *DaemonSet) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (in *DaemonSetList) DeepCopyObject() runtime.Object {
	out := &DaemonSetList{TypeMeta: in.TypeMeta, Items: make([]DaemonSet, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// DeepCopyInto copies the ControllerRevision into out. Data never changes once decoded.
func (in *ControllerRevision) DeepCopyInto(out *ControllerRevision) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopy returns a copy.
func (in *ControllerRevision) DeepCopy() *ControllerRevision { return copyOf(in, in.DeepCopyInto) }

// DeepCopyObject implements runtime.Object.
func (in *ControllerRevision) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (in *ControllerRevisionList) DeepCopyObject() runtime.Object {
	out := &ControllerRevisionList{TypeMeta: in.TypeMeta, Items: make([]ControllerRevision, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// copyOf makes the copy of an object that may be nil.
func copyOf[T any](in *T, copyInto func(*T)) *T {
	if in == nil {
		return nil
	}
	out := new(T)
	copyInto(out)
	return out
}
