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
	// AnnotationInPlaceAnnotations lists, on a Deployment or DaemonSet only, annotations of its template that may change in place, besides those
	// of the managers' `--in-place-annotations`: keys, or `prefix/*` for all that begin so, comma-separated, up to 4096 characters.
	AnnotationInPlaceAnnotations = "stayput.dev/in-place-annotations"
	// AnnotationRestartAnnotations lists likewise annotations whose change asks for a restart, besides `kubectl.kubernetes.io/restartedAt` and those of
	// the managers' `--restart-annotations`; they need not be in the other list, and go before it.
	AnnotationRestartAnnotations = "stayput.dev/restart-annotations"
	// longestList bounds each: templates are compared by it again and again.
	longestList = 4 << 10
)

// Rules are what was decided about which edits can be made in place: by the administrator of all workloads, and by a workload of itself.
type Rules struct {
	// Annotations are the template annotations that may change in place, by key or as prefix/*; a change of any other recreates the pods.
	Annotations []string
	// Restart are those whose change asks for a restart, besides AnnotationRestartedAt.
	Restart []string
	// RestartInPlace: containers restart for them inside their pods, else the pods are replaced.
	RestartInPlace bool
	// InitContainers: where containers restart beside init containers, the pods are replaced. See LabelInitContainers.
	InitContainers bool
	// Resize is which containers are resized in running pods: see LabelResize.
	Resize Resize
	// Flaw is why a list of the workload's own counts as not there; nil if nothing is wrong with them.
	Flaw *Reason
}

// For adds what a workload with these annotations says. A list that does not parse is rejected at admission (manifests/base/policy.yaml); where
// it gets past that, it counts as absent, and whoever changes an annotation is told.
func (r Rules) For(workload map[string]string) Rules {
	own, flaw := listed(workload, AnnotationInPlaceAnnotations, CheckAnnotation)
	r.Annotations, r.Flaw = slices.Concat(r.Annotations, own), cmp.Or(r.Flaw, flaw)
	return r
}

// Restarting adds what it says of restarts, by these settings and annotations.
func (r Rules) Restarting(settings Settings, workload map[string]string) Rules {
	own, flaw := listed(workload, AnnotationRestartAnnotations, CheckRestartAnnotation)
	r.InitContainers = settings.InitContainers
	r.RestartInPlace, r.Restart, r.Flaw = settings.Restart, slices.Concat(r.Restart, own), cmp.Or(r.Flaw, flaw)
	return r
}

// Resizing adds what it says of CPU and memory, by these settings.
func (r Rules) Resizing(settings Settings) Rules {
	r.Resize = settings.Resize
	return r
}

// Allows reports whether that annotation may change in place.
func (r Rules) Allows(annotation string) bool {
	if r.Restarts(annotation) {
		return r.RestartInPlace
	}
	return covered(r.Annotations, annotation)
}

// Restarts reports whether a change of that annotation asks for a restart.
func (r Rules) Restarts(annotation string) bool {
	return annotation == AnnotationRestartedAt || covered(r.Restart, annotation)
}

// Text stands for the rules.
func (r Rules) Text() string {
	text := fmt.Sprint(r.RestartInPlace, " ", r.InitContainers, " ", r.Resize, "\n", strings.Join(r.Restart, "\n"), "\n\n", strings.Join(r.Annotations, "\n"))
	if r.Flaw != nil {
		text += "\n\n" + r.Flaw.Message
	}
	return text
}

// listed reads the list that is in an annotation of a workload. The reason is why it counts as not there; nil if it counts, or is not there.
func listed(workload map[string]string, annotation string, check func(entry string) error) ([]string, *Reason) {
	list, has := workload[annotation]
	if !has {
		return nil, nil
	}
	entries, err := parseList(list, check)
	if err != nil {
		return nil, &Reason{Code: CodeAnnotationList, Path: "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1"),
			Message: fmt.Sprintf("annotation %s counts as not there: %v", annotation, err)}
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

// CheckAnnotation tells why a list of annotations that may change in place must not have that entry.
func CheckAnnotation(entry string) error {
	return checkEntry(entry, append(slices.Clip(reserved), reservation{AnnotationRestartedAt, "asks for a restart"}))
}

// CheckRestartAnnotation tells why a list of annotations whose change asks for a restart must not have that entry.
func CheckRestartAnnotation(entry string) error { return checkEntry(entry, reserved) }

func checkEntry(entry string, reserved []reservation) error {
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

type reservation struct{ entry, why string }

// reserved are annotations that no list may name. The API server itself forbids some (ValidatePodSpecificAnnotationUpdates in
// pkg/apis/core/validation), by others kubelets know which pods are theirs.
var reserved = []reservation{
	{"stayput.dev/*", "is Stayput's own"},
	{corev1.PodDeletionCost, "is how Stayput removes surge pods"},
	{"kubernetes.io/*", "is what kubelets read when a pod starts"},
	{corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "*", "cannot change on a running pod"},
}

func covered(entries []string, annotation string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool { return covers(entry, annotation) })
}

// covers reports whether the entry names all that the other does.
func covers(entry, other string) bool {
	prefix, all := strings.CutSuffix(entry, "*")
	return entry == other || all && strings.HasPrefix(other, prefix)
}
