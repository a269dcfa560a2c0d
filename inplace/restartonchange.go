package inplace

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// AnnotationRestartOnChange says, on a workload only, for which changed configuration containers restart inside their pods. `*` stands for
	// all ConfigMaps to which the template refers, and for the Certificates of cert-manager of all its Secrets. A list, such as
	// `configmap/web-config,certificate/web-tls`, has up to 4096 characters. Stayput needs the ClusterRole `stayput-configuration-reload`.
	//
	// See package configuration.
	AnnotationRestartOnChange = "stayput.dev/restart-on-change"
)

// AllConfiguration is the value of AnnotationRestartOnChange for everything that the template refers to.
const AllConfiguration = "*"

// These prefixes say what an entry of AnnotationRestartOnChange names.
const (
	ConfigMapPrefix   = "configmap/"
	CertificatePrefix = "certificate/"
)

// RestartOnChangeOf returns the entries of AnnotationRestartOnChange; none if the workload does not have it. The API server rejects lists
// that do not parse (manifests/base/policy.yaml). Where one is stored nevertheless, the error says what is wrong.
func RestartOnChangeOf(annotations map[string]string) ([]string, error) {
	list, has := annotations[AnnotationRestartOnChange]
	if !has {
		return nil, nil
	}
	entries, err := parseRestartOnChange(list)
	if err != nil {
		return nil, fmt.Errorf("annotation %s is ignored: %w", AnnotationRestartOnChange, err)
	}
	return entries, nil
}

func parseRestartOnChange(list string) ([]string, error) {
	if len(list) <= longestList && strings.TrimSpace(list) == AllConfiguration {
		return []string{AllConfiguration}, nil
	}
	return parseList(list, checkSource)
}

func checkSource(entry string) error {
	for _, prefix := range []string{ConfigMapPrefix, CertificatePrefix} {
		if name, has := strings.CutPrefix(entry, prefix); has {
			if len(validation.IsDNS1123Subdomain(name)) == 0 {
				return nil
			}
			return fmt.Errorf("%.100q is no name of an object", name)
		}
	}
	if entry == "" {
		return errors.New("it has an empty entry")
	}
	return fmt.Errorf("%.100q is none of %s, %sNAME and %sNAME", entry, AllConfiguration, ConfigMapPrefix, CertificatePrefix)
}
