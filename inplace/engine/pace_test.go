package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/concurrency"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// toV2 returns an update of a Deployment whose pods all serve, on node n1, and get image v2. It changes the Deployment and what else was
// observed, and then each of the pods, called a, b and so on.
func toV2(change func(*deployments.Rollout), changes ...func(*podstate.State)) *engine.Update {
	r := fixture.New(int32(len(changes)), fixture.App{Image: "v2"})
	rs := fixture.ReplicaSetOf(r, "1", fixture.App{Image: "v1"}, int32(len(changes)))
	for i := range changes {
		fixture.PodOf(r, string("abc"[i]), rs).Spec.NodeName = "n1"
	}
	if change != nil {
		change(r)
	}
	u := engine.NewUpdate(engine.Workload{Object: r.Deployment, Kind: "Deployment", Template: r.Deployment.Spec.Template,
		Replicas: len(changes)}, &r.Seen)
	u.Decided.Held = true
	for _, pod := range r.Seen.Pods {
		s := u.StateOf(pod, podstate.PodRevision{Revision: rs.Name, Current: true, Change: &edit.Change{}})
		s.Containers = edit.ContainerChanges{{Container: "app", Image: edit.ImageChange{From: "v1", To: "v2"}}}
		u.States = append(u.States, &s)
	}
	u.Partition = podstate.PartitionBudgetOf(inplace.Partition{}, len(changes), u.States)
	for i, change := range changes {
		if change != nil {
			change(u.States[i])
		}
	}
	return &u
}

// resizes has the pod get CPU while it serves, and nothing else.
func resizes(s *podstate.State) {
	amounts := edit.ResourceChange{From: edit.Amounts{CPURequest: "100m"}, To: edit.Amounts{CPURequest: "200m"}}
	s.Containers, s.Resizing = edit.ContainerChanges{{Container: "app", Resources: amounts}}, true
}

// unavailable has the pod serve no client.
func unavailable(s *podstate.State) { s.Available, s.Serving = false, false }

// soon has the pod become available in a moment.
func soon(s *podstate.State) {
	unavailable(s)
	s.AvailableIn, s.Updated = steps.BatchWindow, true
}

// begun returns the names of the pods that begin in one pass: they are written, or taken out of service.
func begun(u *engine.Update, pods []*podstate.State) []string {
	var names []string
	var all []engine.Pod
	for _, s := range pods {
		all = append(all, engine.Pod{State: s, Of: s, Write: func(bool) { names = append(names, s.Pod.Name) }})
	}
	u.Pace(podstate.Budget{Available: 9, Serving: 9}).Begin(all)
	for _, step := range u.Plan.Result.Steps {
		names = append(names, steps.Disrupted(step).Name)
	}
	slices.Sort(names)
	return names
}

// TestPodsBeginTogether: if another pod restarts, or is available in a moment, those that serve wait for that, but not for ever. A pod
// that serves no client, or goes on serving, does not wait.
func TestPodsBeginTogether(t *testing.T) {
	since := func(ago time.Duration) func(*deployments.Rollout) {
		return func(r *deployments.Rollout) {
			r.Seen.Batches = steps.Batches{steps.DeferStart: fixture.Start.Add(-ago)}
		}
	}
	later := func(s *podstate.State) {
		soon(s)
		s.AvailableIn = steps.BatchWindow + 1
	}
	restarts := func(s *podstate.State) {
		unavailable(s)
		s.Applied = false
	}
	next := func(s *podstate.State) {
		restarts(s)
		s.Turn = true
	}
	for name, test := range map[string]struct {
		since  func(*deployments.Rollout)
		a, b   func(*podstate.State) // b does not begin
		begins bool
		defers bool
	}{
		"one is available in a moment":             {since(0), nil, soon, false, true},
		"it has been for a moment":                 {since(steps.BatchWindow), nil, soon, true, false},
		"the caller puts nothing off":              {nil, nil, soon, true, false},
		"one restarts":                             {since(0), nil, restarts, false, true},
		"it takes long to restart":                 {since(steps.BatchWindow), nil, restarts, true, false},
		"one is to restart next":                   {since(0), nil, next, true, false},
		"it is available later":                    {since(0), nil, later, true, false},
		"it is available":                          {since(0), nil, nil, true, false},
		"a pod that does not serve waits for none": {since(0), unavailable, soon, true, false},
		"a pod that is resized waits for none":     {since(0), resizes, soon, true, false},
	} {
		u := toV2(test.since, test.a, test.b)
		got, deferred := begun(u, u.States[:1]), len(u.Plan.Result.Deferred) > 0
		if (len(got) > 0) != test.begins || deferred != test.defers {
			t.Errorf("%s: %q begin, and it is deferred: %t", name, got, deferred)
		}
	}
}

// TestOnlyWhatGoesOutOfServiceNeedsPermission: a pod that gets CPU while it serves does not wait until others are back.
func TestOnlyWhatGoesOutOfServiceNeedsPermission(t *testing.T) {
	full := func(r *deployments.Rollout) {
		r.Seen.Share = concurrency.Limits{{Flag: concurrency.FlagTotal, Most: 1}}.Share(concurrency.Pod{UID: "other"})
	}
	u := toV2(full, nil, resizes)
	if got := begun(u, u.States); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q begin, want b, which is only resized", got)
	}
}

// TestWindow: a closed window keeps the pods that the partition keeps, and says so. A pod whose move has begun goes on.
func TestWindow(t *testing.T) {
	const closed = "the window to open"
	patched := func(s *podstate.State) {
		s.ByLabel, s.Pod.Labels[inplace.LabelRevisionHash] = true, podstate.HashPartial
	}
	for name, test := range map[string]struct {
		partition inplace.Partition
		change    func(*podstate.State)
		filter    string
	}{
		"the window is closed":                {inplace.Partition{Closed: closed}, nil, "Window"},
		"the window is closed, and it began":  {inplace.Partition{Closed: closed}, patched, ""},
		"the partition keeps all":             {inplace.Partition{Value: "100%"}, nil, "Partition"},
		"the partition keeps all, it began":   {inplace.Partition{Value: "100%"}, patched, ""},
		"neither a window nor a partition is": {inplace.Partition{}, nil, ""},
	} {
		u := toV2(nil, test.change)
		u.Partition = podstate.PartitionBudgetOf(test.partition, 1, u.States)
		filter := ""
		if wait := u.Pace(podstate.Budget{Available: 9, Serving: 9}).Why(u.States[0], engine.Keep); wait != nil {
			filter = wait.Filter
		}
		if filter != test.filter {
			t.Errorf("%s: it waits for %q, want %q", name, filter, test.filter)
		}
	}
}

// TestADrainIsOverSoon: pods that are drained within a batch window move together. Nothing waits for a surge pod that is removed.
func TestADrainIsOverSoon(t *testing.T) {
	const drain = 10 * time.Second
	out := func(ago time.Duration) podstate.Endpoint { return podstate.Endpoint{OutSince: fixture.Start.Add(-ago)} }
	removing := func(s *podstate.State) { s.Removing = true }
	for name, test := range map[string]struct {
		endpoint podstate.Endpoint
		change   func(*podstate.State)
		soon     bool
	}{
		"in a batch window":                {out(drain - steps.BatchWindow), nil, true},
		"later":                            {out(drain - steps.BatchWindow - 1), nil, false},
		"it is not known since when":       {podstate.Endpoint{}, nil, true},
		"in a batch window, as is removed": {out(drain - steps.BatchWindow), removing, false},
	} {
		u := toV2(func(r *deployments.Rollout) {
			r.Seen.Settings.Drain = drain
			r.Seen.Endpoints = podstate.Endpoints{r.Seen.Pods[0].UID: test.endpoint}
			fixture.Out(r.Seen.Pods[0])
		}, test.change)
		p := u.Pace(podstate.Budget{})
		if p.Passes(u.States[0], engine.Stop) || p.Soon != test.soon {
			t.Errorf("%s: over soon: %t", name, p.Soon)
		}
	}
}
