package inplace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// downward is one place at which the pod reads a field of itself through the downward API.
type downward struct {
	path string
	// reader is who reads it, for a message.
	reader string
	field  *corev1.ObjectFieldSelector
}

// downwardReasons says which changed labels and annotations the pod itself reads. In environment variables the old values would
// stay, and pod-template-hash changes with every move; volumes are refreshed by the kubelet, hash included.
func downwardReasons(spec corev1.PodSpec, labels, annotations []string) Reasons {
	hash := appsv1.DefaultDeploymentUniqueLabelKey
	var reasons Reasons
	for _, env := range downwardEnv(spec) {
		reasons = append(reasons, env.reasons(append(slices.Clone(labels), hash), annotations)...)
	}
	for _, volume := range downwardVolumes(spec) {
		reasons = append(reasons, volume.reasons(labels, annotations)...)
	}
	return reasons
}

func (d downward) reasons(labels, annotations []string) Reasons {
	var reasons Reasons
	for _, key := range labels {
		if reads(d.field, "metadata.labels", key) {
			reasons = append(reasons, d.reason("label", key))
		}
	}
	for _, key := range annotations {
		if reads(d.field, "metadata.annotations", key) {
			reasons = append(reasons, d.reason("annotation", key))
		}
	}
	return reasons
}

func (d downward) reason(kind, key string) Reason {
	message := fmt.Sprintf("%s %s is read by %s through the downward API", kind, key, d.reader)
	return Reason{Code: CodeDownwardAPI, Path: d.path, Message: message}
}

// reads tells whether the selector reads the key of the labels or annotations, alone or among all of them: the syntax of
// k8s.io/kubernetes/pkg/fieldpath.
func reads(selector *corev1.ObjectFieldSelector, field, key string) bool {
	if selector == nil {
		return false
	}
	subscript, found := strings.CutPrefix(selector.FieldPath, field)
	return found && (subscript == "" || subscript == "['"+key+"']")
}

// downwardEnv finds the fields read by environment variables, of init containers too: what they did with it stays done.
func downwardEnv(spec corev1.PodSpec) []downward {
	return slices.Concat(
		containersEnv("container", "/spec/containers/", spec.Containers),
		containersEnv("init container", "/spec/initContainers/", spec.InitContainers))
}

func containersEnv(kind, path string, containers []corev1.Container) []downward {
	var all []downward
	for i, container := range containers {
		for j, env := range container.Env {
			if env.ValueFrom != nil {
				all = append(all, downward{
					path:   path + strconv.Itoa(i) + "/env/" + strconv.Itoa(j),
					reader: kind + " " + container.Name,
					field:  env.ValueFrom.FieldRef,
				})
			}
		}
	}
	return all
}

// downwardVolumes finds the fields shown by downward API volumes, projected ones too.
func downwardVolumes(spec corev1.PodSpec) []downward {
	var all []downward
	for i, volume := range spec.Volumes {
		for _, item := range downwardItems(volume) {
			all = append(all, downward{path: "/spec/volumes/" + strconv.Itoa(i), reader: "volume " + volume.Name, field: item.FieldRef})
		}
	}
	return all
}

func downwardItems(volume corev1.Volume) []corev1.DownwardAPIVolumeFile {
	var items []corev1.DownwardAPIVolumeFile
	if volume.DownwardAPI != nil {
		items = append(items, volume.DownwardAPI.Items...)
	}
	if volume.Projected == nil {
		return items
	}
	for _, source := range volume.Projected.Sources {
		if source.DownwardAPI != nil {
			items = append(items, source.DownwardAPI.Items...)
		}
	}
	return items
}
