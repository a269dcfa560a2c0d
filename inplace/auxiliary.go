package inplace

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// AnnotationAuxiliary names containers whose restart users do not have to wait for, such as log shippers, in up to 4096 characters. A
	// pod in which only such containers restart is not drained.
	AnnotationAuxiliary = "stayput.dev/auxiliary"
)

// Auxiliary are the names of the auxiliary containers of a workload.
type Auxiliary []string

// AuxiliaryOf returns the auxiliary containers in the annotations of a workload. The API server rejects lists that do not parse
// (manifests/base/policy.yaml). Where one is stored nevertheless, it counts as absent, and no container is auxiliary.
func AuxiliaryOf(annotations map[string]string) Auxiliary {
	names, _ := listed(annotations, AnnotationAuxiliary, func(name string) error {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return errors.New("it is no name of a container")
		}
		return nil
	})
	return names
}

// Has reports whether the container is auxiliary.
func (a Auxiliary) Has(container string) bool { return slices.Contains(a, container) }
