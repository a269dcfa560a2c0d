package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stayput/stayput/inplace"
)

// excludedFlag is the managers' flag that names namespaces that are never managed.
const excludedFlag = "excluded-namespaces"

// excluded returns the namespaces that Stayput never manages.
func (f Facts) excluded() []string {
	never := []string{"kube-system", f.Namespace}
	if f.Manager == nil {
		return never
	}
	value, _ := f.flag(excludedFlag)
	for name := range strings.SplitSeq(value, ",") {
		never = append(never, strings.TrimSpace(name))
	}
	return never
}

// flag returns the last value of a flag of the managers, and whether it is set.
func (f Facts) flag(name string) (value string, set bool) {
	for _, container := range f.Manager.Spec.Template.Spec.Containers {
		for _, argument := range container.Args {
			flag, is, _ := strings.Cut(argument, "=")
			if strings.TrimLeft(flag, "-") == name {
				value, set = is, true
			}
		}
	}
	return value, set
}

// judgeNamespaces asks for labels stayput.dev/update that do not do what they seem to. Policies warn of them or refuse them when they are
// written, but not of those that were there before.
func judgeNamespaces(f Facts, v *verdict) string {
	labelled := 0
	for _, namespace := range f.Namespaces {
		value, has := namespace.Labels[inplace.LabelUpdate]
		remove := fmt.Sprintf("kubectl label namespace %s %s-", namespace.Name, inplace.LabelUpdate)
		switch {
		case !has:
		case slices.Contains(f.excluded(), namespace.Name):
			v.less(fmt.Sprintf("namespace %s has the label %s=%s, and Stayput never manages that namespace",
				namespace.Name, inplace.LabelUpdate, value), "remove the label: "+remove)
		case !inplace.NamespaceModes.Has(value):
			v.less(fmt.Sprintf("namespace %s has the label %s=%s, which is no mode, so its updates are native",
				namespace.Name, inplace.LabelUpdate, value),
				fmt.Sprintf("set it to %s, or remove it: %s", inplace.NamespaceModes, remove))
		default:
			labelled++
		}
	}
	for _, each := range f.Misplaced {
		v.judgeWorkload(each)
	}
	if labelled == 0 {
		return fmt.Sprintf("no namespace is labelled yet: kubectl label namespace NAME %s=%s", inplace.LabelUpdate, inplace.ModeInPlace)
	}
	return fmt.Sprintf("Stayput manages %s", counted(labelled, "namespace"))
}

func (v *verdict) judgeWorkload(w Workload) {
	object := fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name)
	if !inplace.WorkloadModes.Has(w.Label) {
		v.less(fmt.Sprintf("%s has the label %s=%s, which is no mode, so its updates are native", object, inplace.LabelUpdate, w.Label),
			fmt.Sprintf("set it to %s, or remove it", inplace.WorkloadModes))
		return
	}
	v.less(fmt.Sprintf("%s has the label %s=%s, and its namespace has no such label, so its updates are native",
		object, inplace.LabelUpdate, w.Label),
		fmt.Sprintf("label the namespace: kubectl label namespace %s %s=%s", w.Namespace, inplace.LabelUpdate, inplace.ModeInPlace))
}
