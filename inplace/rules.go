package inplace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// AnnotationInPlaceAnnotations lists, on a Deployment or DaemonSet only, annotations of its template that may change in place, besides those
	// of the managers' `--in-place-annotations`: keys, or `prefix/*` for all that begin so, comma-separated, up to 4096 characters.
	AnnotationInPlaceAnnotations = "stayput.dev/in-place-annotations"
	// longestList bounds it: templates are compared by it again and again.
	longestList = 4 << 10
)

// Rules are what was decided about which edits can be made in place: by the administrator of all workloads, and by a workload of itself.
type Rules struct {
	// Annotations are the template annotations that may change in place, by key or as prefix/*; a change of any other recreates the pods.
	Annotations []string
	// Flaw is why the workload's own list counts as not there; nil if nothing is wrong with it.
	Flaw *Reason
}

// For adds what a workload with these annotations says. A list that does not parse is rejected at admission (manifests/base/policy.yaml); where
// it gets past that, it counts as absent, and whoever changes an annotation is told.
func (r Rules) For(workload map[string]string) Rules {
	list, has := workload[AnnotationInPlaceAnnotations]
	if !has {
		return r
	}
	own, err := parseList(list)
	if err != nil {
		return Rules{Annotations: r.Annotations, Flaw: &Reason{Code: CodeAnnotationList, Path: "/metadata/annotations/stayput.dev~1in-place-annotations",
			Message: fmt.Sprintf("annotation %s counts as not there: %v", AnnotationInPlaceAnnotations, err)}}
	}
	return Rules{Annotations: slices.Concat(r.Annotations, own)}
}

// Allows tells whether that annotation may change in place.
func (r Rules) Allows(annotation string) bool {
	return slices.ContainsFunc(r.Annotations, func(entry string) bool { return covers(entry, annotation) })
}

// Text stands for the rules.
func (r Rules) Text() string {
	text := strings.Join(r.Annotations, "\n")
	if r.Flaw != nil {
		text += "\n\n" + r.Flaw.Message
	}
	return text
}

func parseList(list string) ([]string, error) {
	if len(list) > longestList {
		return nil, fmt.Errorf("it has more than %d characters", longestList)
	}
	var entries []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if err := CheckAnnotation(entry); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// CheckAnnotation tells why a list must not have that entry.
func CheckAnnotation(entry string) error {
	if entry == "" {
		return errors.New("it has an empty entry")
	}
	key := entry
	if prefix, all := strings.CutSuffix(entry, "/*"); all {
		key = prefix + "/any"
	}
	if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 { // as ValidateAnnotations in apimachinery/pkg/api/validation
		return fmt.Errorf("%.100q is neither an annotation's key nor prefix/*", entry)
	}
	for _, one := range reserved {
		if covers(one.entry, entry) || covers(entry, one.entry) {
			return fmt.Errorf("%q cannot be listed: %s %s", entry, one.entry, one.why)
		}
	}
	return nil
}

// reserved are annotations that no list may name. The API server itself forbids some (ValidatePodSpecificAnnotationUpdates in
// pkg/apis/core/validation), by others kubelets know which pods are theirs.
var reserved = []struct{ entry, why string }{
	{"stayput.dev/*", "is Stayput's own"},
	{"kubectl.kubernetes.io/restartedAt", "is there to get new pods"},
	{corev1.PodDeletionCost, "is how Stayput gives borrowed pods back"},
	{"kubernetes.io/*", "is what kubelets read when a pod starts"},
	{corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "*", "cannot change on a running pod"},
}

// covers tells whether the entry names all that the other does.
func covers(entry, other string) bool {
	prefix, all := strings.CutSuffix(entry, "*")
	return entry == other || all && strings.HasPrefix(other, prefix)
}
