package inplace

import (
	"strings"
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
		return "in place: restarts " + strings.Join(c.Restarts(), ", ")
	}
}

// Compare tells what the edit from one template to the other does to live pods. It puts the old values into every field of
// the new template that may change in place and demands that nothing else differs. The pod-template-hash label is ignored.
func Compare(from, to Template, rules Rules) Change {
	return Change{}
}

// SameTemplate tells whether the Deployment controller takes the templates for the same revision: EqualIgnoreHash in
// pkg/controller/deployment/util/deployment_util.go, on what the API server sent, so that a field we do not know counts too.
func SameTemplate(a, b Template) bool {
	return false
}
