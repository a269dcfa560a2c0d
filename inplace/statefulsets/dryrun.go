package statefulsets

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/dryrun"
)

// NewPod implements controllerrevisions.Kind: newVersionedStatefulSetPod, initIdentity and updateStorage of
// pkg/controller/statefulset/stateful_set_utils.go. Only its name is another one, because the pod of that name exists.
func (k kind) NewPod(updateRevision *apps.ControllerRevision, instead *corev1.Pod) json.RawMessage {
	tree := k.StatefulSet.Spec.Template.Tree()
	labels := apps.ObjectOrNew(tree, "metadata", "labels")
	labels[inplace.LabelRevisionHash] = updateRevision.Name
	labels[inplace.LabelPodName] = instead.Name
	labels[inplace.LabelPodIndex] = fmt.Sprint(k.StatefulSet.Ordinal(instead))
	spec := apps.ObjectOrNew(tree, "spec")
	spec["hostname"] = instead.Name
	if k.StatefulSet.Spec.ServiceName != "" {
		spec["subdomain"] = k.StatefulSet.Spec.ServiceName
	}
	k.claim(spec, instead)
	return dryrun.NewPod(tree, k.StatefulSet)
}

// claim gives the pod the claims of that ordinal. A claim takes the place of a volume with the same name.
func (k kind) claim(spec map[string]any, instead *corev1.Pod) {
	claimed := map[any]bool{}
	var volumes []any
	for _, template := range k.StatefulSet.Spec.VolumeClaimTemplates {
		claimed[template.Name] = true
		volumes = append(volumes, map[string]any{"name": template.Name, "persistentVolumeClaim": map[string]any{
			"claimName": template.Name + "-" + instead.Name}})
	}
	all, _ := spec["volumes"].([]any)
	for _, volume := range all {
		if named, _ := volume.(map[string]any); !claimed[named["name"]] {
			volumes = append(volumes, volume)
		}
	}
	spec["volumes"] = volumes
}
