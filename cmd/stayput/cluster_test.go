package main

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
)

func TestCachedNodesNameTheirImages(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"app:1"}, SizeBytes: 1}}}}
	_, err := withImageNames(node)
	if images := node.Status.Images; err != nil || len(images) != 1 || images[0].Names[0] != "app:1" || images[0].SizeBytes != 0 {
		t.Errorf("images %v are kept: %v", images, err)
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
