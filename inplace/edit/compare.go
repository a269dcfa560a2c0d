package edit

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
)

// Compare tells what the edit from one template to the other does to live pods. It puts the old values into every field of
// the new template that may change in place and demands that nothing else differs. The pod-template-hash label is ignored.
func Compare(from, to apps.Template, rules inplace.Rules) Change {
	if flaw := cmp.Or(from.Flawed(), to.Flawed()); flaw != nil {
		return compareFlawed(from, to, *flaw)
	}
	asked := comparison{from.Digest(), to.Digest(), rules.Text()}
	return ofComparisons.Of(asked, sizeOfComparison, func() Change { return compare(from, to, rules).clipped() })
}

func compare(from, to apps.Template, rules inplace.Rules) Change {
	old, patched, was, pod := from.Canonical(), to.Canonical(), from.Decoded(), to.Decoded()
	labels := revert(old, patched, "labels", func(string) bool { return true })
	annotations := revert(old, patched, "annotations", rules.Allows)
	containers, reasons := revertContainers(old, patched, was.Spec.Containers, pod.Spec.Containers)
	for difference := range differences(old, patched) {
		if reasons = reasons.And(fieldReason(difference, pod.Spec)); reasons.Full() {
			break
		}
	}
	change := Change{Containers: containers, Labels: labels, Annotations: annotations}
	if change.Left() {
		reasons = reasons.And(podReasons(pod.Spec, change)...)
	}
	if change.Containers.Resizes() {
		reasons = reasons.And(resizeReasons(was.Spec, pod.Spec, change, rules)...)
	}
	change.Reasons = reasons
	return change
}

// compareFlawed tells the templates apart by their JSON alone.
func compareFlawed(from, to apps.Template, flaw inplace.Reason) Change {
	if apps.SameTemplate(from, to) {
		return Change{}
	}
	return Change{Reasons: inplace.Reasons{flaw}}
}

// revert puts the old values of the allowed keys of the labels or annotations into the new tree, and returns what had changed, by
// key. Both trees have that map afterwards, so that what still differs is found key by key.
func revert(old, patched map[string]any, field string, allowed func(string) bool) []patches.EntryChange {
	from, to := metadataMap(old, field), metadataMap(patched, field)
	var reverted []patches.EntryChange
	for _, difference := range slices.Collect(differences(from, to)) {
		key := difference.path[0]
		if !allowed(key) {
			continue
		}
		value, _ := difference.to.(string)
		reverted = append(reverted, patches.EntryChange{Key: key, Value: value, Goes: difference.to == nil})
		delete(to, key)
		if difference.from != nil {
			to[key] = difference.from
		}
	}
	return reverted
}

// metadataMap returns the labels or annotations of a template, which it creates if there are none.
func metadataMap(template map[string]any, field string) map[string]any {
	return apps.Made(template, "metadata", field)
}

// revertContainers puts what may change in place back into the containers of the new tree and returns what had changed. Containers are
// matched by name; where they do not match one by one, the reasons say so and both trees lose them.
func revertContainers(old, patched map[string]any, was, is []corev1.Container) ([]ContainerChange, inplace.Reasons) {
	from, to := containers(old), containers(patched)
	if reasons := listReasons(names(from), names(to)); len(reasons) > 0 {
		delete(apps.Object(old, "spec"), "containers")
		delete(apps.Object(patched, "spec"), "containers")
		return nil, reasons
	}
	var changes []ContainerChange
	for i := range from {
		change := ContainerChange{Container: name(to[i]), Image: revertImage(from[i], to[i]), Resources: resourceChange(was[i].Resources, is[i].Resources)}
		if change.Resizes() {
			revertResources(from[i], to[i])
		}
		if change.Left() {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// revertResources leaves differences of all resources but CPU and memory.
func revertResources(from, to map[string]any) {
	for _, list := range []string{"limits", "requests"} {
		for _, resource := range resizable {
			if value, has := apps.Object(from, "resources", list)[string(resource)]; has {
				apps.Made(to, "resources", list)[string(resource)] = value
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
}

// revertImage leaves an image that is or was empty as a difference: what then runs is not for us to say.
func revertImage(from, to map[string]any) ImageChange {
	before, _ := from["image"].(string)
	after, _ := to["image"].(string)
	if before == after || before == "" || after == "" {
		return ImageChange{}
	}
	to["image"] = before
	return ImageChange{From: before, To: after}
}

// containers returns the containers of a canonical template.
func containers(template map[string]any) []map[string]any {
	list, _ := apps.Object(template, "spec")["containers"].([]any)
	var all []map[string]any
	for _, item := range list {
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
