package inplace

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// AnnotationAuxiliary names, on a workload, containers whose restart users do not have to wait for, such as log shippers:
	// comma-separated, up to 4096 characters. Stayput does not drain a pod in which only such containers restart.
	AnnotationAuxiliary = "stayput.dev/auxiliary"
	// longestAuxiliary is the greatest length of the list.
	longestAuxiliary = 4 << 10
)

// Auxiliary are the names of the auxiliary containers of a workload.
type Auxiliary []string

// AuxiliaryOf returns the auxiliary containers in the annotations of a workload. The API server rejects lists that do not parse
// (manifests/base/policy.yaml). Where one is stored nevertheless, it counts as absent, and no container is auxiliary.
func AuxiliaryOf(annotations map[string]string) Auxiliary {
	list, has := annotations[AnnotationAuxiliary]
	if !has {
		return nil
	}
	names, err := parseAuxiliary(list)
	if err != nil {
		return nil
	}
	return names
}

// Has reports whether the container is auxiliary.
func (a Auxiliary) Has(container string) bool { return slices.Contains(a, container) }

func parseAuxiliary(list string) (Auxiliary, error) {
	if len(list) > longestAuxiliary {
		return nil, fmt.Errorf("it has more than %d characters", longestAuxiliary)
	}
	var names Auxiliary
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not a container name", name)
		}
		names = append(names, name)
	}
	return names, nil
}
