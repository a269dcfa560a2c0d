package inplace

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// AnnotationPreRestartHooks names other controllers that must finish, for example deregister the pod, before its containers restart. A
	// pod waits as long as it has the annotation `pre-restart.hook.stayput.dev/NAME` of one of them, up to
	// `stayput.dev/pre-restart-timeout`. All names together have up to 250 characters.
	AnnotationPreRestartHooks = "stayput.dev/pre-restart-hooks"
	// PreRestartHookPrefix is, with a name after it, the annotation that another controller sets on a pod, and removes when the containers of
	// the pod may restart. Its value does not matter. Stayput never writes it. See podstate/hooks.go.
	PreRestartHookPrefix = "pre-restart.hook.stayput.dev/"
	// HookNamesForm is the regular expression that valid values of AnnotationPreRestartHooks match; manifests/base/policy.yaml has the same.
	HookNamesForm = `^ *` + labelValues + ` *$`
)

var hookNamesForm = regexp.MustCompile(HookNamesForm)

// Hooks are the annotations by which the pre-restart hooks of a workload hold its pods.
type Hooks []string

func areHooks(list string) bool {
	return len(list) <= longestSelector && hookNamesForm.MatchString(list)
}

// HooksOf returns the hooks in the settings in force.
func HooksOf(inForce map[string]string) Hooks {
	list := inForce[AnnotationPreRestartHooks]
	if !areHooks(list) {
		return nil
	}
	var hooks Hooks
	for name := range strings.SplitSeq(list, ",") {
		hooks = append(hooks, PreRestartHookPrefix+strings.TrimSpace(name))
	}
	slices.Sort(hooks)
	return slices.Compact(hooks)
}

// On returns those that the pod has.
func (h Hooks) On(pod *corev1.Pod) Hooks {
	var on Hooks
	for _, hook := range h {
		if _, has := pod.Annotations[hook]; has {
			on = append(on, hook)
		}
	}
	return on
}

// String returns the annotations for a message: "annotation a", "annotations a, b".
func (h Hooks) String() string {
	if len(h) == 1 {
		return "annotation " + h[0]
	}
	return "annotations " + strings.Join(h, ", ")
}
