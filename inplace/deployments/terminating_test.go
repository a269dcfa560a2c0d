package deployments_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

// TestTerminatingPodsAreHandedBack checks which terminating pods become pods of the old ReplicaSet again: those that have moved from it in
// this update.
func TestTerminatingPodsAreHandedBack(t *testing.T) {
	terminates := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: fixture.Start} }
	moved := func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "b"}.String()}
	}
	unmarked := func(old *apps.ReplicaSet) { delete(old.Labels, inplace.LabelUpdating) }
	for name, test := range map[string]struct {
		pod []func(*corev1.Pod)
		old func(*apps.ReplicaSet)
		is  bool
	}{
		"moved":                   {[]func(*corev1.Pod){moved, terminates}, nil, true},
		"moved, alive":            {[]func(*corev1.Pod){moved}, nil, false},
		"created":                 {[]func(*corev1.Pod){terminates}, nil, false},
		"moved in another update": {[]func(*corev1.Pod){moved, terminates}, unmarked, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := fixture.Updating()
			pod := podNamed(r.Seen.Pods, "b1")
			for _, change := range test.pod {
				change(pod)
			}
			if test.old != nil {
				test.old(r.ReplicaSets[0])
			}
			for way, plan := range map[string]steps.Plan{
				"going on": r.Plan(), "uninstalled": r.FallBack(inplace.Reason{Code: inplace.CodeUninstalled})} {
				patch := handedBack(plan, pod)
				if (patch != nil) != test.is {
					t.Errorf("%s: the pod is handed back: %t, want %t", way, patch != nil, test.is)
				}
				if patch == nil {
					continue
				}
				after := pod.DeepCopy()
				if err := fixture.Apply(after, patch.Operations); err != nil {
					t.Fatal(err)
				}
				if !metav1.IsControlledBy(after, r.ReplicaSets[0]) || after.Labels[inplace.LabelTemplateHash] != "a" {
					t.Errorf("%s: the pod becomes %v %v", way, after.Labels, after.OwnerReferences)
				}
			}
		})
	}
	if !revisions.Updating(fixture.Updating().ReplicaSets[0]) {
		t.Error("the fixture marks no old ReplicaSet")
	}
}

func podNamed(pods []*corev1.Pod, name string) *corev1.Pod {
	return pods[slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Name == name })]
}

// handedBack returns the patch that gives the pod back to another ReplicaSet; nil if there is none.
func handedBack(plan steps.Plan, pod *corev1.Pod) *steps.PatchPod {
	for _, step := range plan.Steps {
		if patch, is := step.(steps.PatchPod); is && patch.Pod == pod {
			return &patch
		}
	}
	return nil
}
