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

// judgeReady asks whether the MutatingAdmissionPolicies are installed that open readiness gates, or the webhook in their place, which does
// most of what they do.
func judgeReady(f Facts, v *verdict) string {
	for _, binding := range f.MutatingBinding {
		if !slices.Contains(f.MutatingNames, binding.Spec.PolicyName) {
			v.wrong(fmt.Sprintf("MutatingAdmissionPolicyBinding %s binds %s, which does not exist", binding.Name, binding.Spec.PolicyName), again)
		}
	}
	bound := len(f.MutatingBinding) > 0
	switch {
	case bound:
		return "the API server opens them"
	case f.ReadyWebhook != nil && !f.MutatesServed:
		return "managers open them, by the webhook ready.stayput.dev"
	case f.ReadyWebhook != nil:
		v.less("no MutatingAdmissionPolicy opens readiness gates, though this cluster serves such policies. "+
			"The webhook in its place opens no gate while no manager runs", "run helm upgrade, or make install, once more: it installs the policy")
	default:
		v.less("there is neither a MutatingAdmissionPolicy that opens readiness gates nor the webhook ready.stayput.dev in its place: "+
			"pods are Ready a second or two late", again)
	}
	return ""
}
