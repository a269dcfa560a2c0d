package check

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// judgeOwnPolicies asks whether each ValidatingAdmissionPolicy exists and has a binding with the right action.
func judgeOwnPolicies(f Facts, v *verdict) string {
	var missing []string
	for _, name := range Policies {
		bound := slices.ContainsFunc(f.PolicyBindings, func(each admissionv1.ValidatingAdmissionPolicyBinding) bool {
			return each.Spec.PolicyName == name && slices.Contains(each.Spec.ValidationActions, actionOf(name))
		})
		if !bound || !slices.Contains(f.PolicyNames, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		v.wrong(fmt.Sprintf("not in force, or without the ValidatingAdmissionPolicyBinding they come with: %s. "+
			"They bound what Stayput's service account may write, and refuse wrong settings", listed(missing)), again)
	}
	return fmt.Sprintf("all %d are in force", len(Policies))
}

// actionOf returns the action that the binding of a policy of Stayput must have. The policy that only warns is about edits that may be
// intended.
func actionOf(policy string) admissionv1.ValidationAction {
	if policy == advice {
		return admissionv1.Warn
	}
	return admissionv1.Deny
}
