package edit

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
)

// Compare returns what the edit from one template to the other changes in live pods. It puts the old value into every field of the
// new template that may change in place, and requires that nothing else differs. It ignores the label pod-template-hash.
func Compare(from, to apps.Template, rules inplace.Rules) Change {
	if flaw := cmp.Or(from.Unsupported(), to.Unsupported()); flaw != nil {
		if apps.SameTemplate(from, to) { // by their JSON alone
			return Change{}
		}
		return Change{Reasons: inplace.Reasons{*flaw}}
	}
	asked := comparison{from.Digest(), to.Digest(), rules.Text()}
	return ofComparisons.Of(asked, sizeOfComparison+len(asked.rules), func() Change { return compare(from, to, rules).clipped() })
}

func compare(from, to apps.Template, rules inplace.Rules) Change {
	old, patched, was, pod := from.Canonical(), to.Canonical(), from.Decoded(), to.Decoded()
	labels := revert(old, patched, "labels", func(string) bool { return true })
	annotations := revert(old, patched, "annotations", func(key string) bool {
		container := inplace.ContainerToRestart(key)
		return rules.Allows(key) || container != "" && Named(&pod.Spec, container) != nil
	})
	added := revertTolerations(old, patched, pod.Spec.Tolerations)
	containers, reasons := revertList(old, patched, containersList, &was.Spec, &pod.Spec)
	sidecars, more := revertList(old, patched, initContainersList, &was.Spec, &pod.Spec)
	reasons = reasons.And(more...)
	for difference := range differences(old, patched) {
		if reasons = reasons.And(fieldReason(difference, pod.Spec, rules)); reasons.Full() {
			break
		}
	}
	change := Change{Containers: append(containers, sidecars...), Labels: labels, Annotations: annotations, Tolerations: added}
	reasons = reasons.And(change.addRestarts(&pod.Spec, rules)...)
	reasons = reasons.And(listFlaw(reasons, rules)...)
	if len(added) > 0 {
		change.LostTolerations = displaced(was.Spec.Tolerations, pod.Spec.Tolerations)
	}
	if change.Left() {
		reasons = reasons.And(podReasons(pod.Spec, change)...)
	}
	if change.Containers.Resizes() {
		reasons = reasons.And(resizeReasons(was.Spec, pod.Spec, change, rules)...)
	}
	if change.Restarts() && len(reasons) == 0 {
		change.InitContainersNotRerun = notAgain(pod.Spec.InitContainers)
		change.VariablesRead = aboutVariables(&pod.Spec, change.Read)
	}
	change.Reasons = reasons
	return change
}

// clipped returns the change with lists that have no spare capacity. So a caller that appends to a list gets a copy of its own.
func (c Change) clipped() Change {
	c.Containers, c.Labels, c.Annotations = slices.Clip(c.Containers), slices.Clip(c.Labels), slices.Clip(c.Annotations)
	c.Read = ReadKeys{slices.Clip(c.Read.Labels), slices.Clip(c.Read.Annotations)}
	c.Tolerations, c.LostTolerations, c.Reasons = slices.Clip(c.Tolerations), slices.Clip(c.LostTolerations), slices.Clip(c.Reasons)
	return c
}

// comparison is the key of a remembered comparison: two templates without flaws, and the rules.
type comparison struct {
	from, to apps.Digest
	rules    string
}

// sizeOfComparison is the approximate size of a remembered comparison without its rules. It is bounded because reasons are bounded.
const sizeOfComparison = 2 << 10

var ofComparisons apps.Findings[comparison, Change]

// revert puts the old values of the allowed labels or annotations into the new tree. It returns what had changed, sorted by key.
// Afterwards both trees have that map, so remaining differences are found key by key.
func revert(old, patched map[string]any, field string, allowed func(string) bool) []patches.EntryChange {
	from, to := apps.ObjectOrNew(old, "metadata", field), apps.ObjectOrNew(patched, "metadata", field)
	var reverted []patches.EntryChange
	for _, difference := range slices.Collect(differences(from, to)) {
		key := difference.path[0]
		if !allowed(key) {
			continue
		}
		value, _ := difference.to.(string)
		reverted = append(reverted, patches.EntryChange{Key: key, Value: value, Removing: difference.to == nil})
		delete(to, key)
		if difference.from != nil {
			to[key] = difference.from
		}
	}
	return reverted
}

// revertList puts the old values of fields that may change in place into the containers of a list of the new tree. It returns what had
// changed. The old spec is was, the new one is. It matches containers by name. If they do not match one by one, the reasons say so, and
// the list is deleted from both trees. An init container that is not a sidecar is left as it is. So are the
// resources of sidecars. A change between init container and sidecar remains a difference.
func revertList(old, patched map[string]any, list string, was, is *corev1.PodSpec) ([]ContainerChange, inplace.Reasons) {
	from, to := containers(old, list), containers(patched, list)
	if reasons := listReasons(names(from), names(to), list); len(reasons) > 0 {
		delete(apps.Object(old, "spec"), list)
		delete(apps.Object(patched, "spec"), list)
		return nil, reasons
	}
	var changes []ContainerChange
	for i := range from {
		if list == initContainersList && !SidecarNamed(is, name(to[i])) {
			continue
		}
		change := ContainerChange{Container: name(to[i]), Image: revertImage(from[i], to[i])}
		if list == containersList {
			change.Resources = revertResources(from[i], to[i], was.Containers[i], is.Containers[i])
		}
		if change.Left() {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// revertResources puts the old CPU and memory into the new tree. It leaves differences in all other resources.
func revertResources(from, to map[string]any, was, is corev1.Container) ResourceChange {
	change := changed(is, AmountsOf(was.Resources), AmountsOf(is.Resources), WrittenAmounts(is.Resources))
	if change == (ResourceChange{}) {
		return change
	}
	for _, list := range []string{"limits", "requests"} {
		for _, resource := range Resizable {
			if value, has := apps.Object(from, "resources", list)[string(resource)]; has {
				apps.ObjectOrNew(to, "resources", list)[string(resource)] = value
			} else {
				delete(apps.Object(to, "resources", list), string(resource))
			}
		}
		if len(apps.Object(to, "resources", list)) == 0 {
			delete(apps.Object(to, "resources"), list)
		}
	}
	if len(apps.Object(to, "resources")) == 0 {
		delete(to, "resources")
	}
	return change
}

// revertImage puts the old image into the new tree. It leaves an image that is or was empty as a difference: Stayput cannot know
// which image then runs.
func revertImage(from, to map[string]any) ImageChange {
	before, _ := from["image"].(string)
	after, _ := to["image"].(string)
	if before == after || before == "" || after == "" {
		return ImageChange{}
	}
	to["image"] = before
	return ImageChange{From: before, To: after}
}

// containers returns the containers of a list of a canonical template.
func containers(template map[string]any, list string) []map[string]any {
	items, _ := apps.Object(template, "spec")[list].([]any)
	var all []map[string]any
	for _, item := range items {
		if container, ok := item.(map[string]any); ok {
			all = append(all, container)
		}
	}
	return all
}

func name(container map[string]any) string {
	name, _ := container["name"].(string)
	return name
}

func names(containers []map[string]any) []string {
	var all []string
	for _, container := range containers {
		all = append(all, name(container))
	}
	return all
}
