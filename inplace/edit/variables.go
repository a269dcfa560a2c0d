package edit

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// A kubelet sets the variables of a container when it starts the container, from the labels and annotations that the pod has in its cache
// then (makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go). So a container whose variables read what changes restarts, and the
// write that restarts it has the new values.

// ReadKeys are keys of labels and annotations that variables of containers read.
type ReadKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// mostRead is how many labels and annotations that variables read may change at once: the mark of a pod names them (readiness.Move).
const mostRead = 20

// None reports whether there are no keys.
func (r ReadKeys) None() bool { return len(r.Labels)+len(r.Annotations) == 0 }

// And returns these keys and the others, each once, sorted.
func (r ReadKeys) And(others ReadKeys) ReadKeys {
	return ReadKeys{both(r.Labels, others.Labels), both(r.Annotations, others.Annotations)}
}

func both(some, others []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(some, others))))
}

// Of returns those of the keys that variables of these containers read.
func (r ReadKeys) Of(containers []corev1.Container) ReadKeys {
	if r.None() {
		return r
	}
	labels, annotations := sets.New[string](), sets.New[string]()
	sorted, known := ReadKeys{}.And(r), sets.New[string]() // thousands of variables may read the same
	for i := range containers {
		for _, env := range containers[i].Env {
			if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil && !known.Has(env.ValueFrom.FieldRef.FieldPath) {
				known.Insert(env.ValueFrom.FieldRef.FieldPath)
				labels.Insert(reads(env.ValueFrom.FieldRef, "metadata.labels", sorted.Labels)...)
				annotations.Insert(reads(env.ValueFrom.FieldRef, "metadata.annotations", sorted.Annotations)...)
			}
		}
	}
	return ReadKeys{slices.Sorted(maps.Keys(labels)), slices.Sorted(maps.Keys(annotations))}
}

// Reading returns the changes by which the containers of the template whose variables read these keys restart as well.
func (c ContainerChanges) Reading(template []corev1.Container, keys ReadKeys) ContainerChanges {
	if keys.None() {
		return c
	}
	return c.edited(template, func(change *ContainerChange, container corev1.Container) {
		change.Restart = change.Restart || !keys.Of([]corev1.Container{container}).None()
	})
}

// WithEntries returns the change with those labels and annotations, which variables read, unless it has others for the same keys.
func (c Change) WithEntries(read ReadKeys, labels, annotations []patches.EntryChange) Change {
	if read.None() {
		return c
	}
	c.Read = c.Read.And(read)
	c.Labels, c.Annotations = joined(labels, c.Labels), joined(annotations, c.Annotations)
	return c
}

// joined returns the changes, and those of the others that have other keys.
func joined(others, changes []patches.EntryChange) []patches.EntryChange {
	others = slices.DeleteFunc(slices.Clone(others), func(other patches.EntryChange) bool {
		return slices.ContainsFunc(changes, func(change patches.EntryChange) bool { return change.Key == other.Key })
	})
	return slices.Concat(changes, others)
}

// tooManyRead returns a reason if more keys change than the mark of a pod has room for.
func tooManyRead(read ReadKeys) inplace.Reasons {
	count := len(read.Labels) + len(read.Annotations)
	if count <= mostRead {
		return nil
	}
	return inplace.Reasons{{Code: inplace.CodeDownwardAPI, Path: "/spec",
		Message: fmt.Sprintf("%d labels and annotations that variables read change, more than %d", count, mostRead)}}
}

// aboutVariables says which variables read what changes.
func aboutVariables(spec *corev1.PodSpec, read ReadKeys) string {
	var all []string
	for _, container := range living(spec) {
		of := read.Of([]corev1.Container{*container})
		for _, key := range of.Labels {
			all = append(all, fmt.Sprintf("label %s (%s)", key, container.Name))
		}
		for _, key := range of.Annotations {
			all = append(all, fmt.Sprintf("annotation %s (%s)", key, container.Name))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "variables read " + inplace.FirstOf(all, ", ")
}
