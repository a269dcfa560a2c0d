package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// namespace is the namespace into which manifests/ installs. The user chooses the chart's namespace.
const namespace = "stayput-system"

// user is the user name of the managers as manifests/ names it.
const user = "system:serviceaccount:" + namespace + ":stayput"

const container = "spec.template.spec.containers.0"

// fileOf says which template has the objects of a kind. The chart has no Namespace: Helm creates it (--create-namespace).
var fileOf = map[string]string{
	"Namespace":                        "",
	"ServiceAccount":                   "rbac.yaml",
	"ClusterRole":                      "rbac.yaml",
	"ClusterRoleBinding":               "rbac.yaml",
	"Role":                             "rbac.yaml",
	"RoleBinding":                      "rbac.yaml",
	"ConfigMap":                        "fallbacks.yaml",
	"PriorityClass":                    "priority.yaml",
	"FlowSchema":                       "priority.yaml",
	"Deployment":                       "manager.yaml",
	"PodDisruptionBudget":              "manager.yaml",
	"Service":                          "network.yaml",
	"NetworkPolicy":                    "network.yaml",
	"Certificate":                      "certificates.yaml",
	"Issuer":                           "certificates.yaml",
	"MutatingWebhookConfiguration":     "webhooks.yaml",
	"ValidatingWebhookConfiguration":   "webhooks.yaml",
	"ValidatingAdmissionPolicy":        "policies.yaml",
	"ValidatingAdmissionPolicyBinding": "policies.yaml",
}

// conditions say when an object is installed, by kind and name, or by kind.
var conditions = map[string]string{
	"PodDisruptionBudget":         `and .Values.podDisruptionBudget.enabled (gt (int .Values.replicas) 1)`,
	"PriorityClass":               `eq .Values.priorityClassName "stayput"`,
	"ServiceAccount":              `.Values.serviceAccount.create`,
	"NetworkPolicy":               `.Values.networkPolicy.enabled`,
	"Certificate stayput-webhook": `include "stayput.certManager" .`,
	"Certificate stayput-ca":      `include "stayput.ownCA" .`,
	"Issuer":                      `include "stayput.ownCA" .`,
}

// templated returns the object as a template.
func templated(o *object) (string, error) {
	e := &edit{object: o}
	if e.object.at("metadata.labels") == nil {
		return "", fmt.Errorf("it has no labels; kustomize should add some")
	}
	e.add("metadata.labels", `{{- include "stayput.labels" . | nindent INDENT }}`)
	e.annotations(o.kind)
	switch o.kind {
	case "Deployment":
		e.manager()
	case "ServiceAccount":
		e.value("metadata.name", account)
	case "RoleBinding", "ClusterRoleBinding":
		e.value("subjects.0.name", account)
	case "FlowSchema":
		e.value("spec.rules.0.subjects.0.serviceAccount.name", account)
	case "PodDisruptionBudget":
		e.replace("spec", "minAvailable", budget)
	case "NetworkPolicy":
		e.append("spec.ingress.1.from", readers)
	case "Certificate":
		e.certificate()
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		e.webhooks()
	}
	if e.err != nil {
		return "", e.err
	}
	text, err := e.text()
	if err != nil {
		return "", err
	}
	text = "---\n" + text
	for _, of := range []string{o.kind, o.String()} {
		if when := conditions[of]; when != "" {
			text = "{{- if " + when + " }}\n" + text + "{{- end }}\n"
		}
	}
	return text, nil
}

const (
	// account is the name of the managers' service account.
	account = `{{ include "stayput.serviceAccount" . }}`
	budget  = `{{- if has (toString .Values.podDisruptionBudget.maxUnavailable) (list "" "<nil>") }}
minAvailable: {{ .Values.podDisruptionBudget.minAvailable }}
{{- else }}
maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}
{{- end }}`
	// readers are further namespaces that may read metrics.
	readers = `{{- with .Values.networkPolicy.metricsNamespaces }}
- namespaceSelector:
    matchExpressions:
      - key: kubernetes.io/metadata.name
        operator: In
        values: {{ toJson . }}
{{- end }}`
)

func (e *edit) manager() {
	e.value("spec.replicas", `{{ .Values.replicas }}`)
	// On the nodes' own network two managers cannot share a node, so there may be no node for one more.
	e.value("spec.strategy.rollingUpdate.maxSurge", `{{ ternary 0 1 .Values.hostNetwork }}`)
	e.value("spec.strategy.rollingUpdate.maxUnavailable", `{{ ternary 1 0 .Values.hostNetwork }}`)
	e.add("spec.template.metadata", optional("annotations", "podAnnotations"))
	e.add("spec.template.metadata.labels", "{{- with merge (dict) .Values.podLabels .Values.commonLabels }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}")
	e.add("spec.template.spec", "{{- if .Values.hostNetwork }}\nhostNetwork: true\n{{- end }}")
	for _, key := range []string{"nodeSelector", "tolerations", "affinity"} {
		e.add("spec.template.spec", optional(key, key))
	}
	e.add("spec.template.spec", "{{- with include \"stayput.pullSecrets\" . }}\nimagePullSecrets:\n{{- . | nindent INNER }}\n{{- end }}")
	e.replace(container, "args", "args:\n  - manager\n{{- with include \"stayput.flags\" . }}\n{{- . | nindent INNER }}\n{{- end }}")
	e.value(container+".image", `{{ include "stayput.image" . }}`)
	e.add(container, "{{- with .Values.image.pullPolicy }}\nimagePullPolicy: {{ . }}\n{{- end }}")
	e.pod()
	e.replace(container, "resources", "resources:\n{{- toYaml .Values.resources | nindent INNER }}")
	e.node(env(e.object, "GOMEMLIMIT"), `{{ .Values.goMemoryLimit | quote }}`)
	e.node(env(e.object, "GOGC"), `{{ .Values.goGC | quote }}`)
	for i := range e.list(container + ".ports") {
		port := fmt.Sprintf("%s.ports.%d", container, i)
		e.value(port+".containerPort", `{{ .Values.`+e.object.text(port+".name")+`.port }}`)
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		e.add(container+"."+probe+".httpGet", "{{- if .Values.hostNetwork }}\nhost: 127.0.0.1\n{{- end }}")
	}
	e.value("spec.template.spec.volumes.1.configMap.name", `{{ default "stayput-client-ca" .Values.webhook.clientCAConfigMap }}`)
	e.value("spec.template.spec.volumes.0.secret.secretName", `{{ default "stayput-webhook" .Values.certificates.secretName }}`)
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

// pod adds the options that pods of many charts have.
func (e *edit) pod() {
	const spec = "spec.template.spec"
	e.value(spec+".serviceAccountName", account)
	e.replace(spec, "securityContext", optional("securityContext", "podSecurityContext"))
	e.replace(container, "securityContext", optional("securityContext", "securityContext"))
	e.replace(spec, "topologySpreadConstraints", optional("topologySpreadConstraints", "topologySpreadConstraints"))
	e.replace(spec, "priorityClassName", "{{- with .Values.priorityClassName }}\npriorityClassName: {{ . }}\n{{- end }}")
	for list, value := range map[string]string{container + ".env": "extraEnv", spec + ".volumes": "extraVolumes",
		container + ".volumeMounts": "extraVolumeMounts"} {
		e.append(list, "{{- with .Values."+value+" }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}")
	}
}

// optional returns lines with a key that exists only if the value is not empty.
func optional(key, value string) string {
	return "{{- with .Values." + value + " }}\n" + key + ":\n{{- toYaml . | nindent INNER }}\n{{- end }}"
}

// annotations adds the annotations that every object may get by a value, and those that only its kind may get.
func (e *edit) annotations(kind string) {
	switch kind {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		e.replace("metadata", "annotations", included("stayput.webhookAnnotations", "."))
	case "ServiceAccount":
		e.add("metadata", included("stayput.annotations", "(list . (default (dict) .Values.serviceAccount.annotations))"))
	default:
		e.add("metadata", included("stayput.annotations", "(list . (dict))"))
	}
}

// included returns lines that a named template makes, if it makes any.
func included(name, argument string) string {
	return `{{- with include "` + name + `" ` + argument + " }}\n{{- . | nindent INDENT }}\n{{- end }}"
}

func (e *edit) certificate() {
	if e.object.name == "stayput-webhook" {
		e.replace("spec", "issuerRef", "issuerRef:\n{{- include \"stayput.issuer\" . | nindent INNER }}")
	}
}

func (e *edit) webhooks() {
	for i := range e.list("webhooks") {
		e.add(fmt.Sprintf("webhooks.%d.clientConfig", i), "{{- with .Values.certificates.caBundle }}\ncaBundle: {{ . }}\n{{- end }}")
	}
}

// edit replaces parts of an object by placeholders, which are valid YAML, and then replaces the placeholders in the object's text by Helm's
// expressions.
type edit struct {
	object *object
	texts  []string
	err    error
}

const mark = "HELM_"

// mark returns a new placeholder for the text.
func (e *edit) mark(text string) *yaml.Node {
	e.texts = append(e.texts, text)
	return &yaml.Node{Kind: yaml.ScalarNode, Value: mark + strconv.Itoa(len(e.texts)-1) + "_"}
}

func (e *edit) list(path string) []*yaml.Node {
	if node := e.object.at(path); node != nil && node.Kind == yaml.SequenceNode {
		return node.Content
	}
	e.missing(path)
	return nil
}

func (e *edit) missing(path string) {
	if e.err == nil {
		e.err = fmt.Errorf("there is no %s any more; adapt the chart's options", path)
	}
}

// value replaces a scalar by an expression.
func (e *edit) value(path, expression string) {
	node := e.object.at(path)
	if node == nil {
		e.missing(path)
		return
	}
	e.node(node, expression)
}

func (e *edit) node(node *yaml.Node, expression string) { *node = *e.mark(expression) }

// replace replaces a key and its value by lines. In the lines, INDENT stands for the column of the key, and INNER for the column of its
// value.
func (e *edit) replace(path, key, lines string) {
	parent := e.object.at(path)
	if parent == nil || keyIndex(parent, key) < 0 {
		e.missing(path + "." + key)
		return
	}
	i := keyIndex(parent, key)
	parent.Content[i], parent.Content[i+1] = e.mark(lines), e.mark("")
}

// add adds lines after the last key of a mapping.
func (e *edit) add(path, lines string) {
	parent := e.object.at(path)
	if parent == nil || parent.Kind != yaml.MappingNode {
		e.missing(path)
		return
	}
	parent.Content = append(parent.Content, e.mark(lines), e.mark(""))
}

// append adds lines after the last item of a list.
func (e *edit) append(path, lines string) {
	list := e.object.at(path)
	if list == nil || list.Kind != yaml.SequenceNode {
		e.missing(path)
		return
	}
	item := e.mark(lines)
	item.Value += markedItem
	list.Content = append(list.Content, item)
}

// markedItem follows the placeholder of lines that are items of a list.
const markedItem = "ITEM"

var (
	markedItems = regexp.MustCompile(`(?m)^( *)- ` + mark + `(\d+)_` + markedItem + `$`)
	markedLine  = regexp.MustCompile(`(?m)^( *(?:- )?)` + mark + `(\d+)_: ` + mark + `\d+_$`)
	markedValue = regexp.MustCompile(mark + `(\d+)_`)
)

// text returns the YAML of the object, with the expressions.
func (e *edit) text() (string, error) {
	text, err := encode(e.object.root)
	if err != nil {
		return "", err
	}
	for _, marked := range []*regexp.Regexp{markedItems, markedLine} {
		text = marked.ReplaceAllStringFunc(text, func(line string) string {
			found := marked.FindStringSubmatch(line)
			return indented(found[1], e.textOf(found[2]))
		})
	}
	text = markedValue.ReplaceAllStringFunc(text, func(value string) string { return e.textOf(markedValue.FindStringSubmatch(value)[1]) })
	text = strings.ReplaceAll(text, user+`"`, "system:serviceaccount:"+namespace+":"+account+`"`)
	return strings.ReplaceAll(text, namespace, "{{ .Release.Namespace }}"), nil
}

func (e *edit) textOf(number string) string {
	i, err := strconv.Atoi(number)
	if err != nil || i >= len(e.texts) {
		panic("no such mark: " + number)
	}
	return e.texts[i]
}

// indented returns the lines with the column of start as their indentation; the first line begins with start. The indentation of
// expressions does not matter, because they trim the space before them.
func indented(start, lines string) string {
	column := len(start)
	lines = strings.ReplaceAll(lines, "INDENT", strconv.Itoa(column))
	lines = strings.ReplaceAll(lines, "INNER", strconv.Itoa(column+2))
	return start + strings.ReplaceAll(lines, "\n", "\n"+strings.Repeat(" ", column))
}
