package edit

import (
	"encoding/json"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// A running pod may get more tolerations, and loses none (validateOnlyAddedTolerations in pkg/apis/core/validation). So the change
// is possible in place only if the new template has all tolerations of the old one. Added tolerations come last in a pod, where
// admission may have added others. Their order has no meaning. This is the only edit that can be made in place and not undone in place
// (OneWay in internal/templates).

// mostAdded limits the added tolerations: thousands of changes are remembered (ofComparisons).
const mostAdded = 32

// revertTolerations removes the added tolerations from the new tree and returns them. It leaves both trees as they are if a
// toleration was removed, if Stayput's types do not know all fields of an added one, or if too many were added. The tolerations
// typed are those of the new template.
func revertTolerations(old, patched map[string]any, typed []corev1.Toleration) []corev1.Toleration {
	from, to := tolerations(old), tolerations(patched)
	had, has := sets.New(texts(from)...), texts(to)
	if !sets.New(has...).IsSuperset(had) {
		return nil
	}
	var added []corev1.Toleration
	for i, toleration := range to {
		switch {
		case had.Has(has[i]):
		case !isKnown(toleration) || len(added) == mostAdded:
			return nil
		default:
			added = append(added, typed[i])
		}
	}
	if len(added) > 0 { // a mere reordering stays a difference: it is another revision with nothing to write to pods
		spec := apps.ObjectOrNew(patched, "spec")
		if delete(spec, "tolerations"); from != nil {
			spec["tolerations"] = from
		}
	}
	return added
}

// tolerations returns the tolerations of a canonical template.
func tolerations(template map[string]any) []any {
	list, _ := apps.Object(template, "spec")["tolerations"].([]any)
	return list
}

// texts returns one text for each element. Equal elements have equal texts. There may be thousands.
func texts[T any](list []T) []string {
	var all []string
	for i := range list {
		raw, err := json.Marshal(list[i])
		if err != nil {
			panic(err) // it was decoded from JSON
		}
		all = append(all, string(raw))
	}
	return all
}

// isKnown reports whether Stayput's type has every field of the toleration.
func isKnown(toleration any) bool {
	fields, ok := toleration.(map[string]any)
	for field := range fields {
		ok = ok && slices.Contains([]string{"key", "operator", "value", "effect", "tolerationSeconds"}, field)
	}
	return ok
}

// Missing returns the tolerations in want that are not in have.
func Missing(have, want []corev1.Toleration) []corev1.Toleration {
	there := sets.New(texts(have)...)
	var lacking []corev1.Toleration
	for i, text := range texts(want) {
		if !there.Has(text) {
			lacking = append(lacking, want[i])
		}
	}
	return lacking
}

// tolerationOperations adds the tolerations that the pod does not have.
func (c Change) tolerationOperations(pod *corev1.Pod) []jsonpatch.Operation {
	added := Missing(pod.Spec.Tolerations, c.Tolerations)
	if len(pod.Spec.Tolerations) == 0 && len(added) > 0 {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/tolerations", added)}
	}
	var operations []jsonpatch.Operation
	for _, toleration := range added {
		operations = append(operations, jsonpatch.NewOperation("add", "/spec/tolerations/-", toleration))
	}
	return operations
}

// defaultSeconds is how long admission makes pods tolerate a node that is not ready or unreachable if they have no toleration for
// that (plugin/pkg/admission/defaulttolerationseconds). An API server may be configured with another value: then the dry run shows
// it.
const defaultSeconds = int64(300)

// displaced returns the default tolerations that pods have and new pods would not get, because an added toleration replaces them.
func displaced(from, to []corev1.Toleration) inplace.Reasons {
	var reasons inplace.Reasons
	for _, toleration := range Missing(withDefaults(to), withDefaults(from)) {
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
			all = append(all, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(defaultSeconds)})
		}
	}
	return all
}
