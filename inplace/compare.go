package inplace

import (
	"cmp"
	"slices"
)

// ImageChange is a container that gets another image, and so restarts.
type ImageChange struct{ Container, From, To string }

// Change is what the edit of a template does to the pods made from it.
type Change struct {
	// Images are the containers, init containers excepted, that get another image, in the template's order.
	Images []ImageChange
	// Labels and Annotations tell whether any label, or any annotation on the allow-list, changes.
	Labels, Annotations bool
	// Reasons are why running pods cannot take the change; none if they can.
	Reasons Reasons
}

// InPlace tells whether running pods can take the change.
func (c Change) InPlace() bool { return len(c.Reasons) == 0 }

// None tells whether nothing changes at all.
func (c Change) None() bool {
	return c.InPlace() && len(c.Images) == 0 && !c.Labels && !c.Annotations
}

// Restarts names the containers that restart when the change is made in place.
func (c Change) Restarts() []string {
	var names []string
	for _, image := range c.Images {
		names = append(names, image.Container)
	}
	return names
}

// String is the verdict on one line, for the decision annotation, warnings and events.
func (c Change) String() string {
	switch {
	case !c.InPlace():
		return "recreate: " + c.Reasons.String()
	case c.None():
		return "no change"
	case len(c.Images) == 0:
		return "in place: no restart"
	default:
		return "in place: restarts " + firstOf(c.Restarts(), ", ")
	}
}

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
	images, reasons := revertImages(old, patched)
	for difference := range differences(old, patched) {
		if reasons = reasons.and(fieldReason(difference, pod.Spec)); reasons.full() {
			break
		}
	}
	change := Change{Images: images, Labels: len(labels) > 0, Annotations: len(annotations) > 0}
	if !change.None() {
		reasons = reasons.and(podReasons(pod.Spec, change, labels, annotations)...)
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

// revert puts the old values of the allowed keys of the labels or annotations into the new tree, and returns the keys that had
// changed, sorted. Both trees have that map afterwards, so that what still differs is found key by key.
func revert(old, patched map[string]any, field string, allowed func(string) bool) []string {
	from, to := metadataMap(old, field), metadataMap(patched, field)
	var reverted []string
	for _, difference := range slices.Collect(differences(from, to)) {
		key := difference.path[0]
		if !allowed(key) {
			continue
		}
		reverted = append(reverted, key)
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

// revertImages puts the old images into the containers of the new tree and returns what had changed. Containers are matched by
// name; where they do not match one by one, the reasons say so and both trees lose them.
func revertImages(old, patched map[string]any) ([]ImageChange, Reasons) {
	from, to := containers(old), containers(patched)
	if reasons := listReasons(names(from), names(to)); len(reasons) > 0 {
		delete(object(old, "spec"), "containers")
		delete(object(patched, "spec"), "containers")
		return nil, reasons
	}
	var images []ImageChange
	for i := range from {
		before, _ := from[i]["image"].(string)
		after, _ := to[i]["image"].(string)
		// An image that is or was empty stays a difference: what then runs is not for us to say.
		if before != after && before != "" && after != "" {
			to[i]["image"] = before
			images = append(images, ImageChange{Container: name(to[i]), From: before, To: after})
		}
	}
	return images, nil
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
