package edit

import (
	"encoding/json"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// A running pod may be given more tolerations, and loses none (validateOnlyAddedTolerations in pkg/apis/core/validation). So templates differ in
// place one way only: where the new one has all tolerations of the old. What is added comes last in a pod, in which others have put theirs;
// their order means nothing.

// mostAdded bounds the tolerations that are added: what changes is remembered by the thousands (findings.go).
const mostAdded = 32

// revertTolerations takes from the new tree the tolerations that are only added to those of the old one, and returns them. Where any is gone,
// our types do not know all of one, or they are too many, both trees stay as they are; typed are those of the new one.
func revertTolerations(old, patched map[string]any, typed []corev1.Toleration) []corev1.Toleration {
	from, to := tolerations(old), tolerations(patched)
	has := textsOf(from)
	if !containsAll(textsOf(to), has) {
		return nil
	}
	var added []corev1.Toleration
	for i, toleration := range to {
		switch {
		case has[textOf(toleration)]:
		case !isKnown(toleration) || len(added) == mostAdded:
			return nil
		default:
			added = append(added, typed[i])
		}
	}
	if len(added) > 0 { // another order is another revision, and nothing to do
		put(patched, from)
	}
	return added
}

// tolerations are those of a canonical template.
func tolerations(template map[string]any) []any {
	list, _ := apps.Object(template, "spec")["tolerations"].([]any)
	return list
}

func put(template map[string]any, tolerations []any) {
	spec := apps.Made(template, "spec")
	if delete(spec, "tolerations"); tolerations != nil {
		spec["tolerations"] = tolerations
	}
}

// textOf is the same of equal tolerations. There may be thousands.
func textOf(toleration any) string {
	text, err := json.Marshal(toleration)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(text)
}

func textsOf(tolerations []any) map[string]bool {
	texts := map[string]bool{}
	for _, toleration := range tolerations {
		texts[textOf(toleration)] = true
	}
	return texts
}

func containsAll(texts, of map[string]bool) bool {
	for text := range of {
		if !texts[text] {
			return false
		}
	}
	return true
}

// isKnown reports whether our type has every field of the toleration.
func isKnown(toleration any) bool {
	fields, ok := toleration.(map[string]any)
	for field := range fields {
		ok = ok && slices.Contains([]string{"key", "operator", "value", "effect", "tolerationSeconds"}, field)
	}
	return ok
}

// tolerationKey is the same of equal tolerations.
type tolerationKey struct {
	corev1.Toleration
	seconds int64
	limited bool
}

func keyOf(toleration corev1.Toleration) tolerationKey {
	key := tolerationKey{Toleration: toleration}
	if seconds := toleration.TolerationSeconds; seconds != nil {
		key.seconds, key.limited, key.TolerationSeconds = *seconds, true, nil
	}
	return key
}

// Lacking are the tolerations wanted that are not there.
func Lacking(have, want []corev1.Toleration) []corev1.Toleration {
	there := map[tolerationKey]bool{}
	for _, toleration := range have {
		there[keyOf(toleration)] = true
	}
	var lacking []corev1.Toleration
	for _, toleration := range want {
		if !there[keyOf(toleration)] {
			lacking = append(lacking, toleration)
		}
	}
	return lacking
}

// tolerationOperations add to the pod's what it has not.
func (c Change) tolerationOperations(pod *corev1.Pod) []jsonpatch.Operation {
	added := Lacking(pod.Spec.Tolerations, c.Tolerations)
	if len(pod.Spec.Tolerations) == 0 && len(added) > 0 {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/tolerations", added)}
	}
	var operations []jsonpatch.Operation
	for _, toleration := range added {
		operations = append(operations, jsonpatch.NewOperation("add", "/spec/tolerations/-", toleration))
	}
	return operations
}

// defaultSeconds is how long admission has pods tolerate that their node is not ready or unreachable, if they say nothing of it
// (plugin/pkg/admission/defaulttolerationseconds), unless API servers are told otherwise: then the rehearsal shows it.
const defaultSeconds = int64(300)

// displaced says that pods have got a default toleration that new ones would not, since what is added takes its place.
func displaced(from, to []corev1.Toleration) inplace.Reasons {
	var reasons inplace.Reasons
	for _, toleration := range Lacking(withDefaults(to), withDefaults(from)) {
		reasons = reasons.And(inplace.Reason{Code: inplace.CodeTemplateField, Path: "/spec/tolerations",
			Message: fmt.Sprintf("/spec/tolerations changed: running pods keep the default toleration of %s", toleration.Key)})
	}
	return reasons
}

func withDefaults(tolerations []corev1.Toleration) []corev1.Toleration {
	all := slices.Clone(tolerations)
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		says := func(t corev1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if !slices.ContainsFunc(tolerations, says) {
			all = append(all, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(defaultSeconds)})
		}
	}
	return all
}
