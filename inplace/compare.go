package inplace

import (
	"cmp"
	"slices"
)

// Compare tells what the edit from one template to the other does to live pods. It puts the old values into every field of
// the new template that may change in place and demands that nothing else differs. The pod-template-hash label is ignored.
func Compare(from, to Template, rules Rules) Change {
	if flaw := cmp.Or(from.flawed(), to.flawed()); flaw != nil {
		return compareFlawed(from, to, *flaw)
	}
	asked := comparison{from.digest(), to.digest(), rules.text()}
	return ofComparisons.of(asked, sizeOfComparison, func() Change { return compare(from, to, rules).clipped() })
}

func compare(from, to Template, rules Rules) Change {
	old, patched, pod := from.canonical(), to.canonical(), to.typed()
	labels := revert(old, patched, "labels", func(string) bool { return true })
	annotations := revert(old, patched, "annotations", rules.allows)
	containers, reasons := revertContainers(old, patched)
	for difference := range differences(old, patched) {
		if reasons = reasons.and(fieldReason(difference, pod.Spec)); reasons.full() {
			break
		}
	}
	change := Change{Containers: containers, Labels: labels, Annotations: annotations}
	if change.Left() {
		reasons = reasons.and(podReasons(pod.Spec, change)...)
	}
	change.Reasons = reasons
	return change
}

// compareFlawed tells the templates apart by their JSON alone.
func compareFlawed(from, to Template, flaw Reason) Change {
	if SameTemplate(from, to) {
		return Change{}
	}
	return Change{Reasons: Reasons{flaw}}
}

// SameTemplate tells whether the Deployment controller takes the templates for the same revision: EqualIgnoreHash in
// pkg/controller/deployment/util/deployment_util.go, on what the API server sent, so that a field we do not know counts too.
func SameTemplate(a, b Template) bool { return a.digest() == b.digest() }

// revert puts the old values of the allowed keys of the labels or annotations into the new tree, and returns what had changed, by
// key. Both trees have that map afterwards, so that what still differs is found key by key.
func revert(old, patched map[string]any, field string, allowed func(string) bool) []EntryChange {
	from, to := metadataMap(old, field), metadataMap(patched, field)
	var reverted []EntryChange
	for _, difference := range slices.Collect(differences(from, to)) {
		key := difference.path[0]
		if !allowed(key) {
			continue
		}
		value, _ := difference.to.(string)
		reverted = append(reverted, EntryChange{Key: key, Value: value, Goes: difference.to == nil})
		delete(to, key)
		if difference.from != nil {
			to[key] = difference.from
		}
	}
	return reverted
}

// metadataMap returns the labels or annotations of a template, which it creates if there are none.
func metadataMap(template map[string]any, field string) map[string]any {
	return made(template, "metadata", field)
}

// made returns the object at a path of object keys, which it creates if there is none.
func made(tree map[string]any, path ...string) map[string]any {
	for _, key := range path {
		child, ok := tree[key].(map[string]any)
		if !ok {
			child = map[string]any{}
			tree[key] = child
		}
		tree = child
	}
	return tree
}

// revertContainers puts what may change in place back into the containers of the new tree and returns what had changed. Containers are
// matched by name; where they do not match one by one, the reasons say so and both trees lose them.
func revertContainers(old, patched map[string]any) ([]ContainerChange, Reasons) {
	from, to := containers(old), containers(patched)
	if reasons := listReasons(names(from), names(to)); len(reasons) > 0 {
		delete(object(old, "spec"), "containers")
		delete(object(patched, "spec"), "containers")
		return nil, reasons
	}
	var changes []ContainerChange
	for i := range from {
		if change := (ContainerChange{Container: name(to[i]), Image: revertImage(from[i], to[i])}); change.Left() {
			changes = append(changes, change)
		}
	}
	return changes, nil
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
	list, _ := object(template, "spec")["containers"].([]any)
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
