package inplace

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// AnnotationUpdateLast selects, on a workload, pods whose containers restart only after those of all other pods have begun to, such as
	// a leader: a label selector as for `kubectl get pods -l`, up to 250 characters. The labels that pods have at that moment count.
	AnnotationUpdateLast = "stayput.dev/update-last"

	// UpdateLastForm is the regular expression that valid values of AnnotationUpdateLast match; manifests/base/policy.yaml has the same.
	UpdateLastForm = `^ *(` + required + `)( *, *(` + required + `))* *$`
	// longestSelector is the greatest length of such a value. With it, no prefix of a key is too long.
	longestSelector = 250

	required    = `! *` + labelKey + `|` + labelKey + `( *(=|==|!=) *` + labelValue + `| +(in|notin) *[(] *` + labelValues + ` *[)])?`
	labelKey    = `([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` + labelValue
	labelValues = labelValue + `( *, *` + labelValue + `)*`
	labelValue  = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
)

var updateLastForm = regexp.MustCompile(UpdateLastForm)

// UpdateLast selects the pods that go last; the zero UpdateLast selects none.
type UpdateLast struct{ selector labels.Selector }

// UpdateLastOf returns the selector in the annotations of a workload. The API server rejects one that does not parse
// (manifests/base/policy.yaml). Where one is stored nevertheless, it counts as absent.
func UpdateLastOf(annotations map[string]string) UpdateLast {
	text, has := annotations[AnnotationUpdateLast]
	if !has || len(text) > longestSelector || !updateLastForm.MatchString(text) {
		return UpdateLast{}
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return UpdateLast{}
	}
	return UpdateLast{selector}
}

// None reports whether no pod can go last.
func (l UpdateLast) None() bool { return l.selector == nil }

// Has reports whether the pod goes last.
func (l UpdateLast) Has(pod *corev1.Pod) bool {
	return l.selector != nil && l.selector.Matches(labels.Set(pod.Labels))
}
