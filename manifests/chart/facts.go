package main

import (
	"fmt"
	"slices"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// facts are the values that files/ repeats from manifests/.
type facts struct {
	Repository, Tag, Version             string
	Replicas                             string
	WebhookPort, MetricsPort, HealthPort string
	GoMemoryLimit, GoGC                  string
	Resources                            string
	PodSecurity, ContainerSecurity       string
	Spread                               string
	Policies                             []string
	UninstallRules                       string
}

// factsOf returns the facts. It fails if one is missing.
func factsOf(objects []*object) (facts, error) {
	manager, role := find(objects, "Deployment", "stayput"), find(objects, "ClusterRole", "stayput")
	if manager == nil || role == nil {
		return facts{}, fmt.Errorf("dist has no Deployment, or no ClusterRole, called stayput")
	}
	f := facts{Replicas: manager.text("spec.replicas"), Policies: policiesIn(objects)}
	image := manager.text(container + ".image")
	colon := strings.LastIndex(image, ":")
	if colon < 0 {
		return facts{}, fmt.Errorf("%s: image %q has no tag", manager, image)
	}
	f.Repository, f.Tag = image[:colon], image[colon+1:]
	f.Version = strings.TrimPrefix(f.Tag, "v")
	f.WebhookPort, f.MetricsPort, f.HealthPort = portOf(manager, "webhook"), portOf(manager, "metrics"), portOf(manager, "health")
	f.GoMemoryLimit, f.GoGC = env(manager, "GOMEMLIMIT").Value, env(manager, "GOGC").Value
	return f, f.addBlocks(manager, role)
}

func (f *facts) addBlocks(manager, role *object) (err error) {
	if f.Resources, err = manager.block(container + ".resources"); err != nil {
		return err
	}
	if f.PodSecurity, err = manager.block("spec.template.spec.securityContext"); err != nil {
		return err
	}
	if f.ContainerSecurity, err = manager.block(container + ".securityContext"); err != nil {
		return err
	}
	if f.Spread, err = manager.block("spec.template.spec.topologySpreadConstraints"); err != nil {
		return err
	}
	f.UninstallRules, err = encode(uninstallRules(role.at("rules")))
	return err
}

// uninstallRules returns those of the managers' rules that uninstall needs to let updates fall back: it watches nothing, creates nothing,
// and warns of nothing.
func uninstallRules(rules *yaml.Node) []*yaml.Node {
	var kept []*yaml.Node
	for _, rule := range rules.Content {
		verbs := without(child(rule, "verbs"), "watch", "create")
		resources := without(child(rule, "resources"), "events", "resourcequotas", "horizontalpodautoscalers", "poddisruptionbudgets",
			"validatingwebhookconfigurations")
		if len(verbs.Content) > 0 && len(resources.Content) > 0 {
			kept = append(kept, mapping("apiGroups", child(rule, "apiGroups"), "resources", resources, "verbs", verbs))
		}
	}
	return kept
}

func without(list *yaml.Node, values ...string) *yaml.Node {
	left := *list
	left.Content = slices.DeleteFunc(slices.Clone(list.Content), func(item *yaml.Node) bool { return slices.Contains(values, item.Value) })
	return &left
}

func mapping(pairs ...any) *yaml.Node {
	made := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		key, value := pairs[i].(string), pairs[i+1].(*yaml.Node)
		made.Content = append(made.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
	}
	return made
}

func find(objects []*object, kind, name string) *object {
	for _, o := range objects {
		if o.kind == kind && o.name == name {
			return o
		}
	}
	return nil
}

func policiesIn(objects []*object) []string {
	var names []string
	for _, o := range objects {
		if o.kind == "ValidatingAdmissionPolicy" {
			names = append(names, o.name)
		}
	}
	return names
}

func portOf(manager *object, name string) string {
	for i := range manager.at(container + ".ports").Content {
		if port := fmt.Sprintf("%s.ports.%d", container, i); manager.text(port+".name") == name {
			return manager.text(port + ".containerPort")
		}
	}
	return ""
}

// env returns the node of the value of an environment variable.
func env(manager *object, name string) *yaml.Node {
	for i := range manager.at(container + ".env").Content {
		if variable := fmt.Sprintf("%s.env.%d", container, i); manager.text(variable+".name") == name {
			return manager.at(variable + ".value")
		}
	}
	return &yaml.Node{}
}
