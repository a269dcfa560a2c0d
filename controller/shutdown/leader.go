package shutdown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stayput/stayput/controller/write"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/observe"
)

// OfProcess is for a manager whose webhooks no longer answer. Managers that are told to go hold writes, and give gates, until then,
// and it may be that none is left to let go and to open: gates that nobody has opened are opened, and the native controllers are woken
// wherever an update is under way. The live reader and the client talk to the API server itself; the context bounds it all. There is
// little time in it for a large cluster, so it reads whole lists, namespaces with marks of ours first, and nothing waits for anything else.
func OfProcess(ctx context.Context, c client.Client, live observe.Reader) error {
	r := runner{writer: write.Writer{Client: c, Live: live, Memory: &write.Memory{}}, reader: live}
	namespaces, err := r.concerned(ctx)
	return errors.Join(err, write.SideBySide(ctx, namespaces, r.nudgeNamespace))
}

// concerned are the namespaces with marks of ours, and then the others with our label.
func (r runner) concerned(ctx context.Context) ([]string, error) {
	first := sets.New[string]()
	var failed []error
	for _, kind := range kinds.All {
		workloads, err := r.marked(ctx, kind)
		failed = append(failed, err)
		for workload := range workloads {
			first.Insert(workload.Namespace)
		}
	}
	labelled, err := r.labelled(ctx)
	rest := sets.New(labelled...).Difference(first)
	return append(sets.List(first), sets.List(rest)...), errors.Join(append(failed, err)...)
}

func (r runner) nudgeNamespace(ctx context.Context, namespace string) error {
	read, err := r.reader.Namespace(ctx, namespace)
	if err != nil {
		return err
	}
	unreachable := func(pod *corev1.Pod) bool { return r.reader.IsUnreachable(ctx, pod) }
	return write.SideBySide(ctx, lastSteps(read, unreachable), func(ctx context.Context, step steps.Step) error {
		_, err := r.writer.Carry(ctx, step)
		if err == nil || write.IsOutdated(err) {
			return nil // another manager was faster, or what has changed has woken the native controller
		}
		return fmt.Errorf("namespace %s: %s: %w", namespace, step.Describe(), err)
	})
}

func lastSteps(read observe.Namespace, unreachable func(*corev1.Pod) bool) []steps.Step {
	var steps []steps.Step
	for i := range read.Pods {
		if pod := &read.Pods[i]; pod.DeletionTimestamp == nil && readiness.Unopened(pod) {
			steps = append(steps, podstate.OpenGate(pod, unreachable(pod), time.Now()))
		}
	}
	for _, rollout := range read.Rollouts {
		steps = append(steps, rollout.Nudge()...)
	}
	return steps
}

const (
	// leaderPatience is how long a leader that is going waits for kubelets to act on its last patches. Twice what they take.
	leaderPatience = 8 * time.Second
	// leaderEvery lets writes that were under way when the leader was told to go arrive first.
	leaderEvery = 250 * time.Millisecond
)

// OfLeader opens the gates that the leader has closed before it goes. If another manager follows, it drains the pods again
// that were not patched yet; if none does, no pod is left out of service for ever and the native controller can finish.
type OfLeader struct {
	Cached observe.Reader
	Writer write.Writer
}

// NeedLeaderElection tells the manager to run it on the leader, and to stop it before the Lease is handed over.
func (*OfLeader) NeedLeaderElection() bool { return true }

// Start waits until the leader is told to go. What fails is tried again until time is up.
func (f *OfLeader) Start(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaderPatience)
	defer cancel()
	var failed error
	ended := wait.PollUntilContextCancel(ctx, leaderEvery, false, func(ctx context.Context) (done bool, _ error) {
		done, failed = f.open(ctx)
		return done, nil
	})
	return errors.Join(ended, failed)
}

// open opens what may be opened now; done when no gate is closed any more.
func (f *OfLeader) open(ctx context.Context) (done bool, err error) {
	closed, err := f.Cached.ClosedPods(ctx)
	if err != nil {
		return false, err
	}
	closed = slices.DeleteFunc(closed, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	return len(closed) == 0, write.SideBySide(ctx, closed, f.reopen)
}

func (f *OfLeader) reopen(ctx context.Context, pod *corev1.Pod) error {
	step, may := podstate.Reopen(pod, f.Cached.IsUnreachable(ctx, pod), time.Now())
	if !may {
		return nil
	}
	if _, err := f.Writer.Carry(ctx, step); err != nil && !write.IsOutdated(err) {
		return fmt.Errorf("namespace %s: %s: %w", pod.Namespace, step.Describe(), err)
	}
	return nil
}
