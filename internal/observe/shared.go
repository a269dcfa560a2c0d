package observe

import (
	"hash/maphash"
	"maps"
	"reflect"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace/apps"
)

// The pods of a template are the same in most of what the cache keeps of them. So they share it: a list or a map that
// another pod has already is in memory only once. Stayput never writes to an object of the cache.

// seed makes digests of one process comparable.
var seed = maphash.MakeSeed()

var (
	ofContainers  apps.Findings[uint64, []corev1.Container]
	ofTolerations apps.Findings[uint64, []corev1.Toleration]
	ofOwners      apps.Findings[uint64, []metav1.OwnerReference]
	ofLabels      apps.Findings[uint64, map[string]string]
)

// Shared returns the same text. Texts that many objects have, such as all pods of a template or all nodes, are then in
// memory only once.
func Shared(text string) string { return unique.Make(text).Value() }

// encoded is a type that the API server sends as protobuf.
type encoded[T any] interface {
	*T
	Marshal() ([]byte, error)
}

// sharedList returns an equal list that was asked for before, or this one. What the encoding does not show, such as
// whether a list is missing or empty, may differ too. So lists of the same digest are compared.
func sharedList[T any, P encoded[T]](known *apps.Findings[uint64, []T], list []T) []T {
	if len(list) == 0 {
		return list
	}
	var sum maphash.Hash
	sum.SetSeed(seed)
	size := 0
	for i := range list {
		raw, err := P(&list[i]).Marshal()
		if err != nil {
			return list // never, as the API server has sent it in this form
		}
		sum.Write(raw)
		size += len(raw)
	}
	if same := known.Of(sum.Sum64(), size, func() []T { return list }); reflect.DeepEqual(same, list) {
		return same
	}
	return list
}

// sharedLabels returns an equal map that was asked for before, or this one.
func sharedLabels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	sum, size := uint64(0), 0
	for key, value := range labels {
		sum += maphash.Comparable(seed, [2]string{key, value}) // in any order
		size += len(key) + len(value)
	}
	if same := ofLabels.Of(sum, size, func() map[string]string { return labels }); maps.Equal(same, labels) {
		return same
	}
	return labels
}
