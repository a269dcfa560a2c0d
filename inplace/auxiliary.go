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

// AuxiliaryOf returns the auxiliary containers in the settings in force.
func AuxiliaryOf(inForce map[string]string) Auxiliary {
	names, _ := listed(inForce, AnnotationAuxiliary, checkContainer)
	return names
}

func areContainers(list string) bool {
	_, err := parseList(list, checkContainer)
	return err == nil
}

func checkContainer(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return errors.New("it is no name of a container")
	}
	return nil
}

// Has reports whether the container is auxiliary.
func (a Auxiliary) Has(container string) bool { return slices.Contains(a, container) }
