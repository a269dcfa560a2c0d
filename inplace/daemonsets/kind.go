package daemonsets

import (
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/nodes"
	"github.com/stayput/stayput/inplace/readiness"
)

// kind says what is special about DaemonSets: it implements controllerrevisions.Kind.
type kind struct {
	Rollout
	places places
	nodes  map[string]*corev1.Node
	placed map[string][]types.UID // the live pods, by node
}

func kindOf(r Rollout) kind {
	k := kind{Rollout: r, places: placesOf(r.DaemonSet), nodes: nodes.ByName(r.Seen.Nodes), placed: map[string][]types.UID{}}
	for _, pod := range r.Seen.Pods {
		if readiness.Live(pod) {
			k.placed[pod.Spec.NodeName] = append(k.placed[pod.Spec.NodeName], pod.UID)
		}
	}
	return k
}

// Workload implements controllerrevisions.Kind.
func (k kind) Workload() engine.Workload {
	return engine.Workload{Object: k.DaemonSet, Kind: "DaemonSet", Template: k.DaemonSet.Spec.Template, Replicas: k.desired(),
		MinReadySeconds: k.DaemonSet.Spec.MinReadySeconds}
}

// Strategy implements controllerrevisions.Kind.
func (k kind) Strategy() *inplace.Reason {
	switch {
	case k.DaemonSet.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/type",
			Message: "with strategy OnDelete the user decides when a pod is updated"}
	case k.DaemonSet.Surges():
		return &inplace.Reason{Code: inplace.CodeStrategy, Path: "/spec/updateStrategy/rollingUpdate/maxSurge",
			Message: "maxSurge asks for a new pod before the old one goes"}
	}
	return nil
}

// ReachingPods implements controllerrevisions.Kind. A toleration that the native controller replaces with its own is added to no pod.
func (k kind) ReachingPods(change edit.Change) edit.Change {
	own := daemonTolerations(k.DaemonSet.Spec.Template.Decoded().Spec.HostNetwork)
	change.Tolerations = slices.DeleteFunc(slices.Clone(change.Tolerations), replacedBy(own))
	return change
}

// NewPod implements controllerrevisions.Kind: the pod is for the same node.
func (k kind) NewPod(updateRevision *apps.ControllerRevision, instead *corev1.Pod) json.RawMessage {
	return dryrun.NewPod(podTemplate(k.DaemonSet, updateRevision, instead.Spec.NodeName), k.DaemonSet, "DaemonSet")
}
