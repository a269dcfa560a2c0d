package templates

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Pair returns a template, and another one that is one or a few edits away. The API server accepts both. The same seed returns the same
// pair.
func Pair(seed uint64) (from, to corev1.PodTemplateSpec) {
	r := rand.New(rand.NewPCG(seed, 0))
	from = random(r)
	from.DeepCopyInto(&to)
	for range 1 + r.IntN(3) {
		among := parts
		if r.IntN(6) > 0 {
			among = light
		}
		pick(r, among...)(r, &to)
	}
	return from, to
}

// random returns a template in which each part has been set or not.
func random(r *rand.Rand) corev1.PodTemplateSpec {
	grace, token := int64(5), false
	var t corev1.PodTemplateSpec
	t.Labels = map[string]string{AppLabel: App}
	t.Spec.Containers = []corev1.Container{{Name: App, Image: image("1")}}
	t.Spec.TerminationGracePeriodSeconds, t.Spec.AutomountServiceAccountToken = &grace, &token
	for _, part := range slices.Concat(parts, light) {
		if r.IntN(2) == 0 {
			part(r, &t)
		}
	}
	return t
}

// part sets one thing of a template to one of a few values, so that two templates often agree on it.
type part func(*rand.Rand, *corev1.PodTemplateSpec)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// sometimes sets the field to one of the values, or to the zero value.
func sometimes[T any](r *rand.Rand, field *T, values ...T) {
	var nothing T
	*field = pick(r, append(values, nothing)...)
}

// subset returns some of the values, in their order.
func subset[T any](r *rand.Rand, values ...T) []T {
	return slices.DeleteFunc(slices.Clone(values), func(T) bool { return r.IntN(2) == 0 })
}
