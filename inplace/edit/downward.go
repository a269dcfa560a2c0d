package edit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
)

// downward is one place at which the pod reads a field of itself through the downward API.
type downward struct {
	path string
	// reader is the container or volume that reads the field, for a message.
	reader string
	field  *corev1.ObjectFieldSelector
	// ended says that the reader is an init container that does not run again.
	ended bool
}

// downwardReasons returns the changed labels and annotations that the pod itself reads and cannot read anew, as reasons. Variables of
// containers are read anew when these restart (variables.go). But no container restarts for the hash of a revision: every move changes it,
// and a partially patched pod does not have it yet. What an init container did with an old value is not undone. Volumes are refreshed by
// the kubelet, hashes included.
func downwardReasons(spec corev1.PodSpec, labels, annotations []string) inplace.Reasons {
	hashes := []string{inplace.LabelRevisionHash, inplace.LabelTemplateHash}
	labelsAndHashes := slices.Sorted(slices.Values(slices.Concat(labels, hashes)))
	var reasons inplace.Reasons
	for _, env := range downwardEnv(spec) {
		switch {
		case reasons.Full():
			return reasons
		case env.ended:
			reasons = reasons.And(env.reasons(labelsAndHashes, annotations)...)
		default:
			reasons = reasons.And(env.reasons(hashes, nil)...)
		}
	}
	for _, volume := range downwardVolumes(spec) {
		if reasons.Full() {
			return reasons
		}
		reasons = reasons.And(volume.reasons(labels, annotations)...)
	}
	return reasons
}

func (d downward) reasons(labels, annotations []string) inplace.Reasons {
	var reasons inplace.Reasons
	for _, key := range reads(d.field, "metadata.labels", labels) {
		reasons = reasons.And(d.reason("label", key))
	}
	for _, key := range reads(d.field, "metadata.annotations", annotations) {
		reasons = reasons.And(d.reason("annotation", key))
	}
	return reasons
}

func (d downward) reason(kind, key string) inplace.Reason {
	message := fmt.Sprintf("%s %s is read by %s through the downward API", kind, key, d.reader)
	return inplace.Reason{Code: inplace.CodeDownwardAPI, Path: d.path, Message: message}
}

// reads returns the keys that the selector reads in the labels or annotations: one of them, or all. The keys are sorted. It returns
// no more keys than reasons are kept. The syntax is that of k8s.io/kubernetes/pkg/fieldpath.
func reads(selector *corev1.ObjectFieldSelector, field string, keys []string) []string {
	if selector == nil {
		return nil
	}
	subscript, found := strings.CutPrefix(selector.FieldPath, field)
	if !found {
		return nil
	}
	key := strings.TrimSuffix(strings.TrimPrefix(subscript, "['"), "']")
	switch {
	case subscript == "":
		return keys[:min(len(keys), inplace.MostReasons)]
	case subscript == "['"+key+"']" && has(keys, key):
		return []string{key}
	}
	return nil
}

// downwardEnv returns the fields that environment variables read.
func downwardEnv(spec corev1.PodSpec) []downward {
	return slices.Concat(
		containersEnv("container", "/spec/containers/", spec.Containers),
		containersEnv("init container", "/spec/initContainers/", spec.InitContainers))
}

func containersEnv(kind, path string, containers []corev1.Container) []downward {
	var all []downward
	for i := range containers {
		for j, env := range containers[i].Env {
			if env.ValueFrom != nil {
				all = append(all, downward{
					path:   path + strconv.Itoa(i) + "/env/" + strconv.Itoa(j),
					reader: kind + " " + containers[i].Name,
					field:  env.ValueFrom.FieldRef,
					ended:  kind == "init container" && !IsSidecar(&containers[i]),
				})
			}
		}
	}
	return all
}

// downwardVolumes returns the fields that downward API volumes show, projected ones included.
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
