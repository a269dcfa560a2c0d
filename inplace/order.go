package inplace

import (
	"cmp"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// AnnotationCanaryNodes selects the nodes whose pods are restarted or resized first, as `kubectl get nodes -l` does, in up to 250
	// characters. Pods on other nodes wait until the pods there are updated and available.
	AnnotationCanaryNodes = "stayput.dev/canary-nodes"
	// AnnotationUpdateByTopology is the key of a label of nodes, such as `topology.kubernetes.io/zone`. Pods restart or are resized on the
	// nodes with one value of the label after the other, in alphabetical order, and on nodes without the label last. The next value begins
	// when the pods before are updated and available.
	AnnotationUpdateByTopology = "stayput.dev/update-by-topology"
	// AnnotationUpdateLast selects pods, such as a leader, that restart only after the restarts of all other pods have begun. It is a
	// selector as for `kubectl get pods -l`, up to 250 characters, and the labels that pods have at that moment count.
	AnnotationUpdateLast = "stayput.dev/update-last"

	// SelectorForm is the regular expression that valid selectors in annotations match; manifests/base/policy.yaml has the same.
	SelectorForm = `^ *(` + required + `)( *, *(` + required + `))* *$`
	// LabelKeyForm is the regular expression that valid values of AnnotationUpdateByTopology match; manifests/base/policy.yaml has the same.
	LabelKeyForm = `^` + labelKey + `$`
	// longestSelector is the greatest length of such a value. With it, no prefix of a key is too long.
	longestSelector = 250

	required    = `! *` + labelKey + `|` + labelKey + `( *(=|==|!=) *` + labelValue + `| +(in|notin) *[(] *` + labelValues + ` *[)])?`
	labelKey    = `([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` + labelValue
	labelValues = labelValue + `( *, *` + labelValue + `)*`
	labelValue  = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
)

var (
	selectorForm = regexp.MustCompile(SelectorForm)
	labelKeyForm = regexp.MustCompile(LabelKeyForm)
)

// UpdateLast selects the pods that go last; the zero UpdateLast selects none.
type UpdateLast struct{ selector labels.Selector }

// UpdateLastOf returns the selector in the settings in force.
func UpdateLastOf(inForce map[string]string) UpdateLast {
	return UpdateLast{selectorIn(inForce[AnnotationUpdateLast])}
}

func isSelector(text string) bool { return selectorIn(text) != nil }

func isLabelKey(text string) bool {
	return len(text) <= longestSelector && labelKeyForm.MatchString(text)
}

// selectorIn returns the selector that the text is; nil if it is none.
func selectorIn(text string) labels.Selector {
	if len(text) > longestSelector || !selectorForm.MatchString(text) {
		return nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil
	}
	return selector
}

// None reports whether no pod can go last.
func (l UpdateLast) None() bool { return l.selector == nil }

// Has reports whether the pod goes last.
func (l UpdateLast) Has(pod *corev1.Pod) bool {
	return l.selector != nil && l.selector.Matches(labels.Set(pod.Labels))
}

// NodeOrder is the order in which nodes have their pods updated; with the zero NodeOrder all nodes are in one stage.
type NodeOrder struct {
	canaries    labels.Selector
	topologyKey string
}

// NodeOrderOf returns the order in the settings in force.
func NodeOrderOf(inForce map[string]string) NodeOrder {
	order := NodeOrder{canaries: selectorIn(inForce[AnnotationCanaryNodes])}
	if key := inForce[AnnotationUpdateByTopology]; isLabelKey(key) {
		order.topologyKey = key
	}
	return order
}

// None reports whether all nodes are in one stage.
func (o NodeOrder) None() bool { return o.canaries == nil && o.topologyKey == "" }

// NodeStage is one stage of a NodeOrder. All nodes of a stage have their pods updated before those of the next one.
type NodeStage struct {
	// topologyKey is that of the NodeOrder.
	topologyKey string
	// canary: the nodes are canary nodes. labelled: they have the label with the topology key, and value is its value.
	canary, labelled bool
	value            string
}

// StageOf returns the stage of a node with these labels.
func (o NodeOrder) StageOf(node map[string]string) NodeStage {
	stage := NodeStage{topologyKey: o.topologyKey, canary: o.canaries != nil && o.canaries.Matches(labels.Set(node))}
	if o.topologyKey != "" {
		stage.value, stage.labelled = node[o.topologyKey]
	}
	return stage
}

// Compare returns a negative number if the stage comes before the other one, and 0 if both are the same.
func (s NodeStage) Compare(other NodeStage) int {
	return cmp.Or(TrueFirst(s.canary, other.canary), TrueFirst(s.labelled, other.labelled), cmp.Compare(s.value, other.value))
}

// TrueFirst compares two things so that those that are something come before those that are not.
func TrueFirst(is, other bool) int {
	switch {
	case is == other:
		return 0
	case is:
		return -1
	}
	return 1
}

// String returns what the nodes of the stage have in common; empty for the zero NodeStage.
func (s NodeStage) String() string {
	var texts []string
	if s.canary {
		texts = append(texts, "a canary node")
	}
	switch {
	case s.labelled:
		texts = append(texts, s.topologyKey+"="+s.value)
	case s.topologyKey != "":
		texts = append(texts, "no "+s.topologyKey)
	}
	return strings.Join(texts, ", ")
}
