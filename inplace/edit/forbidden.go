package edit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/patches"
)

// listReasons returns what happened to the containers of a list if they are not the same containers in the same order. The native
// controller takes a new order for a new revision, and a live pod keeps the order of its containers.
func listReasons(from, to []string, list string) inplace.Reasons {
	if slices.Equal(from, to) {
		return nil
	}
	reasons := onlyIn(to, from, list, "added").And(onlyIn(from, to, list, "removed")...)
	if len(reasons) == 0 {
		reasons = inplace.Reasons{containersReason(list, kindOf[list]+"s reordered")}
	}
	return reasons
}

// kindOf is the word for the containers of a list.
var kindOf = map[string]string{containersList: "container", initContainersList: "init container"}

// onlyIn returns a reason for each container that only one side has. The word what is what happened to it.
func onlyIn(these, others []string, list, what string) inplace.Reasons {
	known := sets.New(others...)
	var reasons inplace.Reasons
	for _, name := range these {
		if !known.Has(name) && !reasons.Full() {
			reasons = reasons.And(containersReason(list, kindOf[list]+" "+name+" "+what))
		}
	}
	return reasons
}

func containersReason(list, message string) inplace.Reason {
	return inplace.Reason{Code: inplace.CodeContainers, Path: patches.Pointer("spec", list), Message: message}
}

// fieldReason describes a difference that cannot be made in place. The spec is that of the new template.
func fieldReason(d difference, spec corev1.PodSpec, rules inplace.Rules) inplace.Reason {
	path := short(d.pointer())
	reason := inplace.Reason{Code: inplace.CodeTemplateField, Path: path, Message: path + " " + d.verb()}
	switch {
	case len(d.path) == 3 && d.path[1] == "annotations":
		reason.Code = inplace.CodeAnnotation
		reason.Message = fmt.Sprintf("annotation %s %s%s", d.path[2], d.verb(), hint(d.path[2], rules))
	case len(d.path) != 4 || d.path[3] != "image":
	case d.path[1] == containersList, d.path[1] == initContainersList && IsSidecar(initContainer(spec, d.path[2])):
		reason.Code = inplace.CodeImage
		reason.Message = path + " is or was empty"
	case d.path[1] == initContainersList:
		reason.Code = inplace.CodeInitContainer
		reason.Message = fmt.Sprintf("image of init container %s changed, and init containers do not run again in a live pod",
			initContainer(spec, d.path[2]).Name)
	}
	return reason
}

// listFlaw returns the flaw of the workload's list of annotations if an annotation changes that no list names. A list with a flaw
// counts as absent.
func listFlaw(reasons inplace.Reasons, rules inplace.Rules) inplace.Reasons {
	unlisted := func(reason inplace.Reason) bool { return reason.Code == inplace.CodeAnnotation }
	if rules.Flaw == nil || !slices.ContainsFunc(reasons, unlisted) {
		return nil
	}
	return inplace.Reasons{*rules.Flaw}
}

// initContainer returns the init container at that index of the spec.
func initContainer(spec corev1.PodSpec, index string) *corev1.Container {
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(spec.InitContainers) {
		return &corev1.Container{}
	}
	return &spec.InitContainers[i]
}

// longestPath is several times the length of the longest path of a known field. Keys of maps may be as long as the template.
const longestPath = 512

func short(path string) string {
	if len(path) <= longestPath {
		return path
	}
	return strings.ToValidUTF8(path[:longestPath], "") + "..."
}

// podReasons returns why pods of this template cannot take a change that other pods could take.
func podReasons(spec corev1.PodSpec, change Change) inplace.Reasons {
	restarts, labels, annotations := change.Restarting(), keysOf(change.Labels), keysOf(change.Annotations)
	slices.Sort(restarts)
	var reasons inplace.Reasons
	for at, container := range living(&spec) {
		if has(restarts, container.Name) {
			reasons = reasons.And(restartReasons(container, at)...)
		}
	}
	reasons = reasons.And(downwardReasons(spec, labels, annotations)...)
	reasons = reasons.And(tooManyRead(change.Read)...)
	return reasons.And(schedulingReasons(spec, labels)...)
}

// WhyNotRestarted returns why the living container of that name must not be restarted inside its pod, with that spec. There are no reasons
// if it may be.
func WhyNotRestarted(spec *corev1.PodSpec, name string) inplace.Reasons {
	for at, container := range living(spec) {
		if container.Name == name {
			return restartReasons(container, at)
		}
	}
	return nil
}

// has reports whether the sorted keys contain the key.
func has(keys []string, key string) bool {
	_, found := slices.BinarySearch(keys, key)
	return found
}

// restartReasons returns why a container must not be restarted inside its pod.
func restartReasons(container *corev1.Container, at place) inplace.Reasons {
	var reasons inplace.Reasons
	if message := startupMessage(container, at); message != "" {
		reasons = append(reasons, inplace.Reason{Code: inplace.CodeStartupProbe, Path: at.pointer("startupProbe"), Message: message})
	}
	if policy := container.RestartPolicy; policy != nil && *policy != corev1.ContainerRestartPolicyAlways {
		reasons = append(reasons, inplace.Reason{Code: inplace.CodeRestartPolicy, Path: at.pointer("restartPolicy"),
			Message: fmt.Sprintf("container %s has restart policy %s", container.Name, *policy)})
	}
	if len(container.RestartPolicyRules) > 0 {
		reasons = append(reasons, inplace.Reason{Code: inplace.CodeRestartPolicy, Path: at.pointer("restartPolicyRules"),
			Message: fmt.Sprintf("container %s has restart rules", container.Name)})
	}
	return reasons
}

// startupMessage returns why a startup probe prevents a restart. It is empty if nothing does.
func startupMessage(container *corev1.Container, at place) string {
	switch {
	case container.StartupProbe == nil:
		return ""
	case at.list == initContainersList:
		// computeInitContainerActions in pkg/kubelet/kuberuntime/kuberuntime_container.go compares the image only after the startup probe
		// has succeeded. It does not while the probe fails. The first kubelets of 1.35 never do again once they have restarted
		// (kubernetes#137146).
		return fmt.Sprintf("sidecar %s has a startup probe, so its kubelet may not restart it", container.Name)
	case container.ReadinessProbe == nil:
		// kubernetes#141155: kubelets 1.35 and 1.36 report the container ready before its startup probe has succeeded.
		return fmt.Sprintf("container %s has a startup probe but no readiness probe", container.Name)
	}
	return ""
}

// schedulingReasons returns the changed labels by which the pod was placed: the API server wrote their old values into the live
// pod's selectors. The label pod-template-hash does no harm there: pods that move together keep their places.
func schedulingReasons(spec corev1.PodSpec, labels []string) inplace.Reasons {
	var reasons inplace.Reasons
	for _, placement := range placements(spec) {
		for _, key := range placement.labelKeys {
			if has(labels, key) {
				message := fmt.Sprintf("label %s decides where the pod is placed", key)
				reasons = reasons.And(inplace.Reason{Code: inplace.CodeSchedulingLabel, Path: placement.path, Message: message})
			}
		}
	}
	return reasons
}

// placement is a rule of the template that places the pod by the values of its own labels.
type placement struct {
	path      string
	labelKeys []string
}

// placements returns these rules of the spec. Rules that are only preferred are included: the pod keeps their selectors, and the
// scheduler uses them when it places other pods.
func placements(spec corev1.PodSpec) []placement {
	var all []placement
	for i, constraint := range spec.TopologySpreadConstraints {
		all = append(all, placement{patches.Pointer("spec", "topologySpreadConstraints", strconv.Itoa(i)), constraint.MatchLabelKeys})
	}
	affinity := ptr.Deref(spec.Affinity, corev1.Affinity{})
	with, apart := ptr.Deref(affinity.PodAffinity, corev1.PodAffinity{}), ptr.Deref(affinity.PodAntiAffinity, corev1.PodAntiAffinity{})
	return slices.Concat(all,
		termPlacements("podAffinity", with.RequiredDuringSchedulingIgnoredDuringExecution,
			with.PreferredDuringSchedulingIgnoredDuringExecution),
		termPlacements("podAntiAffinity", apart.RequiredDuringSchedulingIgnoredDuringExecution,
			apart.PreferredDuringSchedulingIgnoredDuringExecution))
}

func termPlacements(field string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) []placement {
	var all []placement
	add := func(list string, i int, term corev1.PodAffinityTerm) {
		path := patches.Pointer("spec", "affinity", field, list, strconv.Itoa(i))
		all = append(all, placement{path, slices.Concat(term.MatchLabelKeys, term.MismatchLabelKeys)})
	}
	for i, term := range required {
		add("requiredDuringSchedulingIgnoredDuringExecution", i, term)
	}
	for i, term := range preferred {
		add("preferredDuringSchedulingIgnoredDuringExecution", i, term.PodAffinityTerm)
	}
	return all
}
