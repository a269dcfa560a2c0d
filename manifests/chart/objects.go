package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// object is one document of dist. Its keys keep their order.
type object struct {
	kind, name string
	root       *yaml.Node
}

func (o *object) String() string { return o.kind + " " + o.name }

// readObjects reads the objects of a file in dist.
func readObjects(path string) ([]*object, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(content, []byte("{{")) {
		return nil, fmt.Errorf("%s contains {{, which Helm would take for an expression of its own", path)
	}
	var objects []*object
	documents := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		o := &object{root: document.Content[0]}
		o.kind, o.name = o.text("kind"), o.text("metadata.name")
		objects = append(objects, o)
	}
}

// at returns the node at a path such as spec.containers.0.image, nil if there is none.
func (o *object) at(path string) *yaml.Node {
	node := o.root
	for step := range strings.SplitSeq(path, ".") {
		if node = child(node, step); node == nil {
			return nil
		}
	}
	return node
}

func child(node *yaml.Node, step string) *yaml.Node {
	if node.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			return node.Content[i]
		}
		return nil
	}
	if i := keyIndex(node, step); i >= 0 {
		return node.Content[i+1]
	}
	return nil
}

// keyIndex returns the index of the key in the mapping, -1 if the mapping does not have it.
func keyIndex(mapping *yaml.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

func (o *object) text(path string) string {
	if node := o.at(path); node != nil {
		return node.Value
	}
	return ""
}

func encode(node any) (string, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return "", err
	}
	return text.String(), encoder.Close()
}

// groupsOf returns the groups of a file of rules, or of a PrometheusRule.
func groupsOf(rules []byte) ([]byte, error) {
	var file struct {
		Groups yaml.Node
		Spec   struct{ Groups yaml.Node }
	}
	if err := yaml.Unmarshal(rules, &file); err != nil {
		return nil, err
	}
	groups := file.Groups
	if groups.IsZero() {
		groups = file.Spec.Groups
	}
	if groups.IsZero() {
		return nil, errors.New("it has neither groups nor spec.groups")
	}
	text, err := encode(map[string]*yaml.Node{"groups": &groups})
	return []byte(text), err
}
