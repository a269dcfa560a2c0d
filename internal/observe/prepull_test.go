package observe

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// prePullPods returns a pre-pull pod of Deployment web, one of an earlier Deployment of the same name, a pod that only
// has the label, and one that has no label. It also returns two nodes.
func prePullPods() []client.Object {
	named := func(name string, labels map[string]string, owner metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}}}
	}
	return []client.Object{
		named("pre-pull", map[string]string{inplace.LabelPrePull: "d"}, controlledBy("Deployment", "web", "d")),
		named("earlier", map[string]string{inplace.LabelPrePull: "earlier"}, controlledBy("Deployment", "web", "earlier")),
		named("claims", map[string]string{inplace.LabelPrePull: "d"}, controlledBy("Job", "job", "j")),
		named("unlabelled", nil, controlledBy("Deployment", "web", "d")),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
	}
}

func TestPrePullPodsAreNoPodsOfTheWorkload(t *testing.T) {
	objects := append(shop(), prePullPods()...)
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && pod.Name == "web-1-a" {
			pod.Spec.NodeName = "n1"
		}
	}
	for name, reader := range map[string]Reader{
		"live":    {Reader: builder(t, objects...).Build()},
		"indexed": cacheHas(t, objects...),
	} {
		t.Run(name, func(t *testing.T) {
			rollout, err := reader.Rollout(context.Background(), key)
			if err != nil {
				t.Fatal(err)
			}
			expectNames(t, rollout.Seen.Pull.PrePullPods, "pre-pull")
			expectNames(t, rollout.Seen.Pods, "web-1-a", "web-2-a")
			expectNames(t, rollout.Seen.Nodes, "n1")
		})
	}
}

func TestQuotasAreNeverNil(t *testing.T) {
	quotas, err := Reader{Reader: builder(t).Build()}.Quotas(context.Background(), "shop")
	if err != nil || quotas == nil {
		t.Errorf("quotas %v, %v", quotas, err)
	}
}
