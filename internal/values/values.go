// Package values reads the values of a Helm chart with their comments, for the chart's README and for a page of reference.
package values

import (
	"fmt"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Value is a value of the Helm chart, with its default in YAML. A value without a default only groups the values below it.
type Value struct{ Name, Default, Doc string }

// In returns the values of a values.yaml in their order. Each has a comment, or stands in a mapping that has one.
func In(source []byte) ([]Value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("the values are no mapping")
	}
	var all []Value
	addValues(&all, "", "", document.Content[0])
	for _, v := range all {
		if v.Doc == "" {
			return nil, fmt.Errorf("value %s has no comment in values.yaml: add one", v.Name)
		}
	}
	return all, nil
}

// addValues adds the values in a mapping, whose names begin with prefix. A mapping within it is a value if it is empty or has a comment.
// About is the mapping around it that has a comment; empty if none has.
func addValues(into *[]Value, prefix, about string, mapping *yaml.Node) {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		v, around := Value{Name: prefix + key.Value, Doc: commented(key.HeadComment)}, about
		nested := content.Kind == yaml.MappingNode && len(content.Content) > 0
		switch {
		case nested && v.Doc != "":
			around = v.Name
		case !nested && v.Doc == "" && about != "":
			v.Doc = "See `" + about + "`"
		}
		if !nested {
			v.Default = "`" + written(content) + "`"
		}
		if !nested || v.Doc != "" {
			*into = append(*into, v)
		}
		if nested {
			addValues(into, v.Name+".", around, content)
		}
	}
}

// entries returns the entries of a list. An entry that is no scalar is abbreviated.
func entries(list *yaml.Node) []string {
	var all []string
	for _, entry := range list.Content {
		if entry.Kind != yaml.ScalarNode {
			return []string{"..."}
		}
		all = append(all, written(entry))
	}
	return all
}

// written returns a value as it is written in YAML. A mapping has no entries.
func written(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "{}"
	case node.Kind == yaml.SequenceNode:
		return "[" + strings.Join(entries(node), ", ") + "]"
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
