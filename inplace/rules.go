package inplace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// AnnotationInPlaceAnnotations lists annotations of the template that may change in place, in addition to those of the managers'
	// `--in-place-annotations`. `prefix/*` stands for all keys with that prefix. The list has up to 4096 characters.
	AnnotationInPlaceAnnotations = "stayput.dev/in-place-annotations"
	// AnnotationRestartAnnotations lists, in the same form, annotations of the template whose change restarts the containers inside their
	// pods, in addition to those of the managers' `--restart-annotations`. `kubectl rollout restart` changes
	// `kubectl.kubernetes.io/restartedAt`. An annotation in both lists restarts containers.
	AnnotationRestartAnnotations = "stayput.dev/restart-annotations"
	// longestList is the greatest length of each list: Stayput compares templates by it again and again.
	longestList = 4 << 10
)

// Rules say which edits can be made in place: those of the administrator, for all workloads, and those of one workload.
type Rules struct {
	// Annotations are the template annotations that may change in place, as keys or as prefix/*. A change of any other annotation recreates
	// the pods.
	Annotations []string
	// Restart are the annotations whose change restarts containers inside their pods.
	Restart []string
	// InitContainers: pods are replaced where containers restart and init containers would not run again. See AnnotationInitContainers.
	InitContainers bool
	// Resize says which containers are resized in running pods: see AnnotationResize.
	Resize Resize
	// Flaw is why a list of the workload is ignored; nil if none is.
	Flaw *Reason
}

// For adds the rules of a workload, from the settings in force. The API server rejects lists that do not parse
// (manifests/base/policy.yaml). Where one is stored nevertheless, it counts as empty, and a user who changes an annotation is told so.
func (r Rules) For(inForce map[string]string) Rules {
	annotations, flaw := listed(inForce, AnnotationInPlaceAnnotations, CheckAnnotation)
	restart, flawed := listed(inForce, AnnotationRestartAnnotations, CheckRestartAnnotation)
	r.Annotations, r.Restart = slices.Concat(r.Annotations, annotations), slices.Concat(r.Restart, restart)
	r.Flaw = cmp.Or(r.Flaw, flaw, flawed)
	r.InitContainers = value(inForce, AnnotationInitContainers, onWith(Native, InPlace), r.InitContainers)
	r.Resize = value(inForce, AnnotationResize, oneOf(ResizeAll, ResizeNone), r.Resize)
	return r
}

// Allows reports whether the annotation may change in place.
func (r Rules) Allows(annotation string) bool {
	if annotation == AnnotationRestartedAt {
		return covered(r.Restart, annotation)
	}
	return covered(r.Restart, annotation) || covered(r.Annotations, annotation)
}

// Restarts reports whether a change of the annotation asks for a restart.
func (r Rules) Restarts(annotation string) bool {
	return annotation == AnnotationRestartedAt || covered(r.Restart, annotation)
}

// Text returns a text that is different for different rules, for use as a key.
func (r Rules) Text() string {
	text := fmt.Sprint(r.InitContainers, " ", r.Resize, "\n",
		strings.Join(r.Restart, "\n"), "\n\n", strings.Join(r.Annotations, "\n"))
	if r.Flaw != nil {
		text += "\n\n" + r.Flaw.Message
	}
	return text
}

// listed returns the entries of the list in that annotation. The reason is why the list is ignored; nil if it is not, or if
// there is none.
func listed(inForce map[string]string, annotation string, check func(entry string) error) ([]string, *Reason) {
	list, has := inForce[annotation]
	if !has {
		return nil, nil
	}
	entries, err := parseList(list, check)
	if err != nil {
		return nil, &Reason{Code: CodeAnnotationList, Path: "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1"),
			Message: fmt.Sprintf("annotation %s is ignored: %v", annotation, err)}
	}
	return entries, nil
}

func parseList(list string, check func(entry string) error) ([]string, error) {
	if len(list) > longestList {
		return nil, fmt.Errorf("it has more than %d characters", longestList)
	}
	var entries []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if err := check(entry); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// CheckAnnotation returns why the entry cannot be in a list of annotations that may change in place; nil if it can.
func CheckAnnotation(entry string) error {
	return checkEntry(entry, append(slices.Clip(reserved), reservation{AnnotationRestartedAt, "asks for a restart"}))
}

// CheckRestartAnnotation returns why the entry cannot be in a list of annotations whose change asks for a restart; nil if it can.
func CheckRestartAnnotation(entry string) error { return checkEntry(entry, reserved) }

func checkEntry(entry string, reserved []reservation) error {
	if entry == "" {
		return errors.New("it has an empty entry")
	}
	key := entry
	if prefix, all := strings.CutSuffix(entry, "/*"); all {
		key = prefix + "/any"
	}
	// As in ValidateAnnotations of apimachinery/pkg/api/validation.
	if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
		return fmt.Errorf("%.100q is neither an annotation's key nor prefix/*", entry)
	}
	for _, one := range reserved {
		if covers(one.entry, entry) || covers(entry, one.entry) {
			return fmt.Errorf("%q cannot be listed: %s %s", entry, one.entry, one.why)
		}
	}
	return nil
}

type reservation struct{ entry, why string }

// reserved are annotations that no list may name. The API server forbids changes of some (ValidatePodSpecificAnnotationUpdates in
// pkg/apis/core/validation); by others, kubelets recognise their pods.
var reserved = []reservation{
	{"stayput.dev/*", "is Stayput's own"},
	{AnnotationRestartPrefix + "*", "asks for a restart of one container"},
	{corev1.PodDeletionCost, "is how Stayput removes surge pods"},
	{"kubernetes.io/*", "is what kubelets read when a pod starts"},
	{corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "*", "cannot change on a running pod"},
}

func covered(entries []string, annotation string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool { return covers(entry, annotation) })
}

// covers reports whether the entry names every annotation that the other names.
func covers(entry, other string) bool {
	prefix, all := strings.CutSuffix(entry, "*")
	return entry == other || all && strings.HasPrefix(other, prefix)
}
