package configuration

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// mostSources is how many sources a workload may follow: they are all in its Record.
const mostSources = 100

// annotationElection is on ConfigMaps in which clients elect a leader (client-go until 0.24). They change every few seconds, and are no
// configuration.
const annotationElection = "control-plane.alpha.kubernetes.io/leader"

// anyVersion is the version of a ConfigMap whose changes do not count.
const anyVersion = "any"

// Certificate is what counts of a Certificate of cert-manager.
type Certificate struct {
	// Secret is the name of its Secret.
	Secret string
	// Revision is status.revision, as text; empty until it is issued.
	Revision string
}

// Namespace has the sources of one namespace, by name.
type Namespace struct {
	// ConfigMaps are the versions of the ConfigMaps.
	ConfigMaps   map[string]string
	Certificates map[string]Certificate
}

// VersionOf returns the version of a ConfigMap.
func VersionOf(configMap metav1.Object) string {
	if _, elects := configMap.GetAnnotations()[annotationElection]; elects {
		return anyVersion
	}
	return configMap.GetResourceVersion()
}

// Trimmed returns those of a ConfigMap's annotations on which its version depends, without their values.
func Trimmed(annotations map[string]string) map[string]string {
	if _, elects := annotations[annotationElection]; elects {
		return map[string]string{annotationElection: ""}
	}
	return nil
}

// Followed returns what there is now of the sources that a workload with that template follows, by the entries of
// inplace.AnnotationRestartOnChange. The error says why they cannot be followed.
func (n Namespace) Followed(entries []string, template apps.Template) (Record, error) {
	sources := entries
	if slices.Equal(entries, []string{inplace.AllConfiguration}) {
		sources = n.sourcesOf(template)
	}
	if len(sources) > mostSources {
		return nil, fmt.Errorf("annotation %s: these are %d ConfigMaps and Certificates, more than %d; name those that matter",
			inplace.AnnotationRestartOnChange, len(sources), mostSources)
	}
	record := Record{}
	for _, source := range sources {
		record[source] = n.versionOf(source)
	}
	return record, nil
}

// versionOf returns the version of a source; "" if there is no such object.
func (n Namespace) versionOf(source string) string {
	if name, is := strings.CutPrefix(source, inplace.CertificatePrefix); is {
		return n.Certificates[name].Revision
	}
	return n.ConfigMaps[strings.TrimPrefix(source, inplace.ConfigMapPrefix)]
}

// sourcesOf returns the sources to which a template refers: ConfigMaps, and the Certificates of its Secrets.
func (n Namespace) sourcesOf(template apps.Template) []string {
	used := usedBy(&template.Decoded().Spec)
	var sources []string
	for name := range used.configMaps {
		sources = append(sources, inplace.ConfigMapPrefix+name)
	}
	for name, certificate := range n.Certificates {
		if used.secrets[certificate.Secret] {
			sources = append(sources, inplace.CertificatePrefix+name)
		}
	}
	slices.Sort(sources)
	return sources
}

// used are the names of the ConfigMaps and Secrets to which a pod refers, in variables and volumes.
type used struct{ configMaps, secrets map[string]bool }

func usedBy(spec *corev1.PodSpec) used {
	u := used{configMaps: map[string]bool{}, secrets: map[string]bool{}}
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		u.addVariables(container)
	}
	for _, volume := range spec.Volumes {
		u.addVolume(volume)
	}
	delete(u.configMaps, "")
	delete(u.secrets, "")
	return u
}

func (u used) addVariables(container corev1.Container) {
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			u.configMaps[from.ConfigMapRef.Name] = true
		}
		if from.SecretRef != nil {
			u.secrets[from.SecretRef.Name] = true
		}
	}
	for _, variable := range container.Env {
		from := variable.ValueFrom
		if from != nil && from.ConfigMapKeyRef != nil {
			u.configMaps[from.ConfigMapKeyRef.Name] = true
		}
		if from != nil && from.SecretKeyRef != nil {
			u.secrets[from.SecretKeyRef.Name] = true
		}
	}
}

func (u used) addVolume(volume corev1.Volume) {
	if volume.ConfigMap != nil {
		u.configMaps[volume.ConfigMap.Name] = true
	}
	if volume.Secret != nil {
		u.secrets[volume.Secret.SecretName] = true
	}
	if volume.Projected == nil {
		return
	}
	for _, source := range volume.Projected.Sources {
		if source.ConfigMap != nil {
			u.configMaps[source.ConfigMap.Name] = true
		}
		if source.Secret != nil {
			u.secrets[source.Secret.Name] = true
		}
	}
}
