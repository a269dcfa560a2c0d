package steps_test

import (
	"testing"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

func TestUrgent(t *testing.T) {
	const began, now = "20261130T000000Z", "20261130T000100Z"
	// labels returns a patch of replicas and of one label, from and to that value.
	labels := func(key, from, to string) []jsonpatch.Operation {
		return patches.GuardedButStatus(&apps.ReplicaSet{}, append(patches.SetEntries("labels", map[string]string{key: from}, [2]string{key, to}),
			jsonpatch.NewOperation("add", "/spec/replicas", 3))...)
	}
	replicaSet := func(operations []jsonpatch.Operation) steps.Step {
		return steps.PatchReplicaSet{Operations: operations}
	}
	revision := func(operations []jsonpatch.Operation) steps.Step { return steps.PatchRevision{Operations: operations} }
	for name, test := range map[string]struct {
		step   steps.Step
		urgent bool
	}{
		"puts a pod back":             {steps.SetReady{}, true},
		"takes a pod out":             {steps.SetReady{Out: true}, false},
		"moves a pod":                 {steps.PatchPod{Moves: true}, false},
		"persists a fallback":         {steps.PersistFallback{}, true},
		"forgets a fallback":          {steps.ForgetFallback{}, false},
		"reports":                     {steps.PatchStatus{}, false},
		"only replicas":               {replicaSet(labels(inplace.LabelReplicas, "2", "3")), false},
		"begins a hold":               {replicaSet(labels(inplace.LabelUpdating, "", began)), false},
		"renews a hold":               {replicaSet(labels(inplace.LabelRenewed, began, now)), true},
		"ends a hold":                 {replicaSet(labels(inplace.LabelUpdating, began, "")), true},
		"lets the controller delete":  {replicaSet(labels(inplace.LabelUpdating, began, began+revisions.Scaling)), true},
		"holds deletions again":       {replicaSet(labels(inplace.LabelUpdating, began+revisions.Scaling, began)), false},
		"renews that of a revision":   {revision(labels(inplace.LabelRenewed, began, now)), true},
		"begins that of a revision":   {revision(labels(inplace.LabelUpdating, "", began)), false},
		"ends that of a revision":     {revision(labels(inplace.LabelUpdating, began, "")), true},
		"creates a ReplicaSet":        {steps.CreateReplicaSet{}, false},
		"deletes a pre-pull pod":      {steps.DeletePrePullPod{}, false},
		"creates one before the pull": {steps.CreatePrePullPod{}, false},
	} {
		if urgent := steps.Urgent(test.step); urgent != test.urgent {
			t.Errorf("%s: urgent %t", name, urgent)
		}
	}
}
