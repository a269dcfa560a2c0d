package main

import (
	"fmt"
	"os"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// value is a value of the Helm chart.
type value struct{ Name, Default, Doc string }

// uncommented describes the values that have no comment of their own in values.yaml, most of which are fields of a pod.
var uncommented = map[string]string{
	"image.repository":                   "The image of managers, of pre-pull pods and of the chart's Jobs, without its tag",
	"imagePullSecrets":                   "`imagePullSecrets` of the managers and of the chart's Jobs",
	"certificates.issuer.name":           "See `certificates.issuer`",
	"certificates.issuer.group":          "The API group of the issuer",
	"metrics.port":                       "The port of `/metrics`, plain HTTP",
	"health.port":                        "The port of `/healthz` and `/readyz`, plain HTTP",
	"networkPolicy.enabled":              "Whether the chart installs a NetworkPolicy for the managers",
	"resources.limits.memory":            "The memory limit of a manager",
	"resources.requests.cpu":             "The CPU request of a manager",
	"resources.requests.memory":          "The memory request of a manager",
	"nodeSelector":                       "`nodeSelector` of the managers and of the chart's Jobs",
	"tolerations":                        "`tolerations` of the managers and of the chart's Jobs",
	"affinity":                           "`affinity` of the managers",
	"podLabels":                          "Further labels of the managers' pods",
	"podAnnotations":                     "Further annotations of the managers' pods",
	"podMonitor.enabled":                 "Whether the chart installs a PodMonitor. It needs the Prometheus operator",
	"podMonitor.labels":                  "Labels of the PodMonitor, by which your Prometheus chooses it",
	"podMonitor.interval":                "How often Prometheus scrapes the managers",
	"serviceMonitor.enabled":             "Whether the chart installs a ServiceMonitor instead. It needs the Prometheus operator",
	"serviceMonitor.labels":              "Labels of the ServiceMonitor",
	"serviceMonitor.interval":            "How often Prometheus scrapes the managers",
	"prometheusRule.enabled":             "Whether the chart installs the [alerts](alerts.md) as a PrometheusRule. It needs the Prometheus operator",
	"prometheusRule.labels":              "Labels of the PrometheusRule",
	"dashboard.enabled":                  "Whether the chart installs Grafana's dashboard as a ConfigMap",
	"dashboard.labels.grafana_dashboard": "See `dashboard.labels`",
}

// readValues returns the values of a values.yaml in their order, with their comments.
func readValues(path string) ([]value, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return valuesIn(source, uncommented)
}

// valuesIn returns the values of a YAML document. Each needs a comment, or a description among others, and not both.
func valuesIn(source []byte, others map[string]string) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("the values are no mapping")
	}
	var all []value
	addValues(&all, "", document.Content[0])
	described := 0
	for i, v := range all {
		other, has := others[v.Name]
		switch {
		case has && v.Doc != "":
			return nil, fmt.Errorf("value %s has a comment: remove its description from uncommented", v.Name)
		case has:
			all[i].Doc = other
			described++
		case v.Doc == "":
			return nil, fmt.Errorf("value %s has no comment in values.yaml: add one", v.Name)
		}
	}
	if described != len(others) {
		return nil, fmt.Errorf("uncommented describes %d values, and only %d of them exist", len(others), described)
	}
	return all, nil
}

// addValues adds the values in a mapping, whose names begin with prefix. A mapping within it is a value if it is empty or has a comment.
func addValues(into *[]value, prefix string, mapping *yaml.Node) {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		v := value{Name: prefix + key.Value, Doc: commented(key.HeadComment)}
		nested := content.Kind == yaml.MappingNode && len(content.Content) > 0
		if !nested {
			v.Default = "`" + written(content) + "`"
		}
		if !nested || v.Doc != "" {
			*into = append(*into, v)
		}
		if nested {
			addValues(into, v.Name+".", content)
		}
	}
}

// written returns a value without entries as it is written in YAML.
func written(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "{}"
	case node.Kind == yaml.SequenceNode:
		return "[]"
	case node.Style == yaml.DoubleQuotedStyle:
		return `"` + node.Value + `"`
	}
	return node.Value
}

// commented returns a comment as one line of a table, without the full stop at its end.
func commented(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.Fields(strings.TrimLeft(line, "# "))...)
	}
	return strings.ReplaceAll(strings.TrimSuffix(strings.Join(words, " "), "."), "|", `\|`)
}
