package inplace

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// AnnotationAuxiliary names, on a Deployment or DaemonSet, the containers that nobody waits for, such as log shippers: comma-separated, in up to
	// 4096 characters. A pod in which no others restart is not drained.
	AnnotationAuxiliary = "stayput.dev/auxiliary"
	// longestAuxiliary bounds it.
	longestAuxiliary = 4 << 10
)

// Auxiliary names the containers of a workload that nobody waits for.
type Auxiliary []string

// AuxiliaryOf reads the annotations of a workload. A list that does not parse is rejected at admission (manifests/base/policy.yaml); where it gets
// past that, it counts as absent: all containers are waited for.
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

// Has reports whether nobody waits for that container.
func (a Auxiliary) Has(container string) bool { return slices.Contains(a, container) }

func parseAuxiliary(list string) (Auxiliary, error) {
	if len(list) > longestAuxiliary {
		return nil, fmt.Errorf("it has more than %d characters", longestAuxiliary)
	}
	var names Auxiliary
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is no name of a container", name)
		}
		names = append(names, name)
	}
	return names, nil
}
