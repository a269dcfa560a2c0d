package engine

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/prepull"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
)

const (
	// FailingPatience is for how long the writes or the planning of an update may fail before it falls back. In a native rollout, nothing that
	// keeps Stayput from writing to pods would stop the rollout.
	FailingPatience = 2 * time.Minute
	// AskedFor is for how long the answer of a dry run counts. An update may wait for days, and policies change meanwhile.
	AskedFor = 24 * time.Hour
)

// Memory is what the leader remembers of one workload. The zero Memory is that of a new leader.
type Memory struct {
	// Versions are what the workload's objects are known to have reached.
	Versions Versions
	// Drains has since when pods are out of service that wait for their restart.
	Drains Drains
	// TakenOut has when pods were taken out of service, takenOutFor for which update revision.
	TakenOut    TakenOut
	takenOutFor types.UID
	// Batches has since when steps are deferred so that others go along.
	Batches steps.Batches
	// DryRun is what is known of new pods of the update revision, RefusedOld a revision to which pods would go back and which admission
	// refuses.
	DryRun, RefusedOld Asked
	// Fallback is the persisted fallback as the leader last wrote it; nil if it has not. The cache may be older.
	Fallback *revisions.Fallback
	// Tried is the update revision whose first patch of images admission has let pass as it is, in a dry run.
	Tried types.UID
	// PrePullRefused is the update revision for which the API server takes no pre-pull pods.
	PrePullRefused prepull.Refused
	// failingSince is since when every reconcile fails; zero if the last one did not.
	failingSince time.Time
	// notBefore is until when a large workload is left alone.
	notBefore time.Time
}

// Asked is the result of a dry run of a revision, and the time of the first one.
type Asked struct {
	dryrun.Result
	Revision types.UID
	At       time.Time
	// at is the stage at which it was asked.
	at stage
}

// stage is how far the user lets an update go: the partition, and whether a window is closed. At the next one it is asked again.
type stage struct {
	partition string
	closed    bool
}

func stageOf(partition inplace.Partition) stage { return stage{partition.Value, partition.ByWindow()} }

// Since returns what is known of the revision; if that is nothing, that it is asked from now on.
func (a Asked) Since(revision types.UID, now time.Time) Asked {
	if a.Revision != revision {
		return Asked{Revision: revision, At: now, at: a.at}
	}
	return a
}

// Old reports whether the first dry run was so long ago that its result counts no more, or that no answer is waited for. A native rollout
// could not create pods meanwhile, either. But a webhook that fails only in dry runs must not hold the update.
func (a Asked) Old(now time.Time) bool { return now.Sub(a.At) > inplace.LeaderPatience }

// outdated reports whether the answer counts no more. A refusal after which the update waits counts for inplace.Remembered. Then it is
// tried again whether pods can be updated in place, and a pod may be taken out of service for that. Any other answer counts for AskedFor.
func (a Asked) outdated(now time.Time) bool {
	age, impossible := now.Sub(a.At), a.Result.Impossible != nil || a.Refused != ""
	return impossible && age > inplace.Remembered || a.UpdateRevision != "" && age > AskedFor
}

// NewPods returns what is known of new pods of the update revision, at that partition. Nothing is before the first pod of each stage,
// window and day: policies may have changed since.
func (m *Memory) NewPods(partition inplace.Partition, now time.Time) dryrun.Result {
	if at := stageOf(partition); m.DryRun.at != at || m.DryRun.outdated(now) {
		m.DryRun, m.Tried = Asked{at: at}, ""
	}
	return m.DryRun.Result
}

// Waits notes why the update waits instead of falling back, where the next plan would not see that.
func (m *Memory) Waits(plan steps.Plan, now time.Time) {
	revision := plan.Decision.UpdateRevision
	if revision == nil {
		return
	}
	m.DryRun = m.DryRun.Since(revision.GetUID(), now)
	m.DryRun.UpdateRevision, m.DryRun.At, m.DryRun.Impossible = revision.GetUID(), now, &plan.Obstacle.Reason
}

// Observe advances the memory before a plan.
func (m *Memory) Observe(pods []*corev1.Pod, now time.Time) {
	m.TakenOut = m.TakenOut.next(pods)
	if m.Batches == nil {
		m.Batches = steps.Batches{}
	}
	if m.RefusedOld.Old(now) {
		m.RefusedOld = Asked{}
	}
}

// Made advances the memory after a step.
func (m *Memory) Made(step steps.Step, now time.Time) {
	m.TakenOut = m.TakenOut.after(step, now)
	switch s := step.(type) {
	case steps.PersistFallback:
		m.Fallback = &s.Fallback
	case steps.ForgetFallback:
		m.Fallback = &revisions.Fallback{}
	}
}

// KnownFallback returns the workload's persisted fallback, given what the cache has.
func (m *Memory) KnownFallback(cached revisions.Fallback) revisions.Fallback {
	if m.Fallback != nil {
		return *m.Fallback
	}
	return cached
}

// Planned advances the memory after a plan. The result of a dry run is used for one update only: before the next update to the same
// revision, policies may have changed.
func (m *Memory) Planned(plan steps.Plan, now time.Time) {
	m.Batches = m.Batches.Next(plan, now)
	if revision := plan.Decision.UpdateRevision; revision != nil && revision.GetUID() != m.takenOutFor {
		m.TakenOut, m.takenOutFor = nil, revision.GetUID()
	}
	if !plan.Decision.Held {
		m.DryRun, m.Tried = Asked{}, ""
	}
}

// Failed notes that a reconcile failed, and reports whether all have for FailingPatience.
func (m *Memory) Failed(now time.Time) bool {
	m.failingSince = cmp.Or(m.failingSince, now)
	return now.Sub(m.failingSince) >= FailingPatience
}

// Succeeded notes that a reconcile did not fail.
func (m *Memory) Succeeded() { m.failingSince = time.Time{} }

// Looked notes that a workload with that many pods was looked at.
func (m *Memory) Looked(pods int, now time.Time) {
	m.notBefore = now.Add(steps.MinInterval(pods))
}

// LeftAlone returns for how long the workload is still left alone; 0 or less if it is not.
func (m *Memory) LeftAlone(now time.Time) time.Duration { return m.notBefore.Sub(now) }
