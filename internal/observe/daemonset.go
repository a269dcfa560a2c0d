package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/daemonsets"
)

// fieldNode is the only field besides name and namespace that Stayput uses to select pods at the API server.
const fieldNode = "spec.nodeName"

// DaemonSets is the kind whose revisions are ControllerRevisions, and whose pods depend on all nodes.
var DaemonSets = revised(
	Kind{
		Workload: typeOf("DaemonSet", func() client.ObjectList { return &apps.DaemonSetList{} },
			func(_ *apps.DaemonSet, form metav1.ObjectMeta) *apps.DaemonSet {
				return &apps.DaemonSet{ObjectMeta: form}
			}),
		OnEveryNode: true,
	},
	daemonsets.Of, func(d *apps.DaemonSet) *metav1.LabelSelector { return d.Spec.Selector })

// nodes returns all nodes. The result is never nil: a cluster without nodes has an empty list.
func (r Reader) nodes(ctx context.Context) ([]*corev1.Node, error) {
	if r.Stores.present() {
		return r.Stores.nodes.all()
	}
	var list corev1.NodeList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return nodes, nil
}
