package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

// daemonSetKind is what DaemonSets have of their own besides their rollouts.
var daemonSetKind = kind{
	workload: "DaemonSet", revision: "ControllerRevision",
	workloads: func() client.ObjectList { return &inplace.DaemonSetList{} },
	revisions: func() client.ObjectList { return &inplace.ControllerRevisionList{} },
	finished: func(object runtime.Object) bool {
		daemonSet, ok := object.(*inplace.DaemonSet)
		return ok && isRolledOut(daemonSet)
	},
}

// daemonSetReader reads a DaemonSet with its ControllerRevisions, pods and nodes, nil if it is gone; see observe.Reader.
type daemonSetReader interface {
	DaemonRollout(ctx context.Context, key types.NamespacedName) (*inplace.DaemonRollout, error)
}

// daemonSets is the source of DaemonSets.
func daemonSets(reader daemonSetReader) source {
	return func(ctx context.Context, key types.NamespacedName) (rollout, error) {
		read, err := reader.DaemonRollout(ctx, key)
		if read == nil || err != nil {
			return nil, err
		}
		return daemonSet{read}, nil
	}
}

// daemonSet is the rollout of a DaemonSet.
type daemonSet struct{ *inplace.DaemonRollout }

func (d daemonSet) scene() scene {
	s := scene{workload: d.DaemonSet, pods: d.Pods, pullers: d.Pull.Pullers, mode: d.Mode, settings: d.Settings, now: d.Now}
	for _, revision := range d.Revisions {
		s.revisions = append(s.revisions, revision)
	}
	return s
}

func (d daemonSet) setEndpoints(endpoints inplace.Endpoints) { d.Endpoints = endpoints }

func (d daemonSet) setAhead(ahead inplace.Ahead) { d.Ahead = ahead }

// setBeats: nothing is put off, as neither replicas nor a status are ours to write.
func (d daemonSet) setBeats(inplace.Beats) {}

func (d daemonSet) pulling() *inplace.Pulling { return &d.Pull }

func (d daemonSet) rehearsal() *inplace.Rehearsal { return &d.Rehearsal }

func (d daemonSet) done() bool { return !d.Unfinished() && isRolledOut(d.DaemonSet) }

func (d daemonSet) fresh(inplace.Plan) bool { return !d.Begun() }

// overdue is false: DaemonSets have no deadline.
func (d daemonSet) overdue() bool { return false }

// isRolledOut is what `kubectl rollout status` waits for (kubectl/pkg/polymorphichelpers/rollout_status.go).
func isRolledOut(daemonSet *inplace.DaemonSet) bool {
	status := daemonSet.Status
	return status.ObservedGeneration >= daemonSet.Generation &&
		status.UpdatedNumberScheduled >= status.DesiredNumberScheduled && status.NumberAvailable >= status.DesiredNumberScheduled
}
