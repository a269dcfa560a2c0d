package main

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
)

func TestCachedNodesHaveNoImages(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}}}
	if _, err := withoutImages(node); err != nil || node.Status.Images != nil {
		t.Errorf("images %v are kept: %v", node.Status.Images, err)
	}
}

func TestCachedRevisionsKeepTemplates(t *testing.T) {
	yes := true
	for kind, kept := range map[string]bool{"DaemonSet": true, "StatefulSet": false} {
		revision := &inplace.ControllerRevision{Data: json.RawMessage(`{}`)}
		revision.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: &yes}}
		if _, err := withoutForeignData(revision); err != nil || (revision.Data != nil) != kept {
			t.Errorf("data of a %s is kept: %t, %v", kind, revision.Data != nil, err)
		}
	}
}
