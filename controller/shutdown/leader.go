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

// OfProcess runs in a manager whose webhooks no longer answer. A manager that is told to stop still holds writes, and
// adds gates to new pods, until its webhooks no longer answer. Perhaps no other manager is left to end these holds and
// to open these gates. So OfProcess opens gates that were never opened, and nudges the native controllers of all
// updates in progress.
//
// The live reader and the client talk to the API server itself. The context bounds everything. In a large cluster there
// is little time. So OfProcess reads whole lists, begins with the namespaces that have marks of Stayput, and no step
// waits for another.
func OfProcess(ctx context.Context, c client.Client, live observe.Reader) error {
	r := runner{writer: write.Writer{Client: c, Live: live}, reader: live}
	namespaces, err := r.concerned(ctx)
	return errors.Join(err, write.SideBySide(ctx, namespaces, r.nudgeNamespace))
}

// concerned returns the namespaces that have marks of Stayput, and then the others with Stayput's label.
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
			return nil // another manager was faster, or the change that came first nudged the native controller
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
	// leaderPatience is how long a leader that stops waits until kubelets have applied its last patches. It is twice what
	// they take.
	leaderPatience = 8 * time.Second
	// leaderEvery is the time between two attempts. It also delays the first one, so that writes in progress are done
	// before.
	leaderEvery = 250 * time.Millisecond
)

// OfLeader opens the gates that the leader has closed, before the leader stops. If another manager follows, it drains
// those pods again that were not patched yet. If none follows, no pod stays out of service for ever, and the native
// controller can finish.
type OfLeader struct {
	Cached observe.Reader
	Writer write.Writer
}

// NeedLeaderElection returns true: the manager runs OfLeader on the leader, and stops it before it releases the Lease.
func (*OfLeader) NeedLeaderElection() bool { return true }

// Start waits until the leader is told to stop. It retries what fails until leaderPatience is over.
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

// open opens the gates that may be opened now. It returns true when no gate is closed any more.
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
