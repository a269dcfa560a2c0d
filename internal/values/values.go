// Package values reads the values of a Helm chart with their comments, for the chart's README and for a page of reference.
package values

import (
	"fmt"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Value is a value of the Helm chart, with its default in YAML and the type of that. A value without a default only groups the values below
// it.
type Value struct{ Name, Type, Default, Doc string }

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

// addValues adds the values in a mapping, whose names begin with prefix. A mapping within it is a value of its own if it has a comment and
// nothing in it has one. About is the mapping around it that has a comment; empty if none has.
func addValues(into *[]Value, prefix, about string, mapping *yaml.Node) {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		v, around := Value{Name: prefix + key.Value, Type: types[content.ShortTag()], Doc: commented(key.HeadComment)}, about
		groups := content.Kind == yaml.MappingNode && len(content.Content) > 0 && (v.Doc == "" || explained(content))
		switch {
		case groups && v.Doc != "":
			around = v.Name
		case !groups && v.Doc == "" && about != "":
			v.Doc = "See `" + about + "`"
		}
		if !groups {
			v.Default = "`" + written(content) + "`"
		}
		if !groups || v.Doc != "" {
			*into = append(*into, v)
		}
		if groups {
			addValues(into, v.Name+".", around, content)
		}
	}
}

// explained says whether something in a mapping has a comment.
func explained(mapping *yaml.Node) bool {
	for i := 0; i < len(mapping.Content); i += 2 {
		if content := mapping.Content[i+1]; mapping.Content[i].HeadComment != "" || content.Kind == yaml.MappingNode && explained(content) {
			return true
		}
	}
	return false
}

// types are the names of types, by their tags in YAML.
var types = map[string]string{"!!str": "string", "!!int": "integer", "!!bool": "boolean", "!!seq": "list", "!!map": "map"}

// written returns a value as it is written in YAML, in one line. In a list, an entry that is no scalar is abbreviated.
func written(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		var all []string
		for i := 0; i < len(node.Content); i += 2 {
			all = append(all, node.Content[i].Value+": "+written(node.Content[i+1]))
		}
		return "{" + strings.Join(all, ", ") + "}"
	case node.Kind == yaml.SequenceNode:
		var all []string
		for _, entry := range node.Content {
			if entry.Kind != yaml.ScalarNode {
				return "[...]"
			}
			all = append(all, written(entry))
		}
		return "[" + strings.Join(all, ", ") + "]"
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
