package prepull

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
)

// quotaLeft returns how many more pre-pull pods the quotas admit if the reserve is kept free. It also returns the message for that
// limit. Quotas that count anything but pods are found only when they refuse a pod.
func (p *PrePull) quotaLeft() (int, string) {
	room, why := math.MaxInt, ""
	for _, quota := range p.Quotas {
		for _, counted := range []corev1.ResourceName{corev1.ResourcePods, "count/pods"} {
			hard, limited := quota.Status.Hard[counted]
			if !limited || !countsPods(quota) {
				continue
			}
			used := quota.Status.Used[counted]
			if left := max(0, int(hard.Value()-used.Value())-p.Reserve); left < room {
				room, why = left, fmt.Sprintf("ResourceQuota %s admits no more pods: %s of %s are used", quota.Name, used.String(), hard.String())
			}
		}
	}
	return room, why
}

// countsPods reports whether the quota's scopes match a pod that has requests, no deadline and no priority of its own.
func countsPods(quota corev1.ResourceQuota) bool {
	scopes := quota.Spec.Scopes
	if quota.Spec.ScopeSelector != nil {
		for _, expression := range quota.Spec.ScopeSelector.MatchExpressions {
			scopes = append(scopes[:len(scopes):len(scopes)], expression.ScopeName)
		}
	}
	for _, scope := range scopes {
		if scope != corev1.ResourceQuotaScopeNotBestEffort && scope != corev1.ResourceQuotaScopeNotTerminating {
			return false
		}
	}
	return true
}
