package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/internal/observe"
)

func newStatus(cluster *connection, std streams) *cobra.Command {
	var watch bool
	status := &cobra.Command{
		Use:   "status [deployment/NAME | daemonset/NAME | statefulset/NAME]",
		Short: "Show how workloads are updated; or pod by pod, how far an update is",
		Long: "Show the leader, which workloads are updated in place, and how the last edit of each is carried out.\n" +
			"Of one workload, show each pod, how far its update is and what it waits for.",
		Example:           "  kubectl stayput status\n  kubectl stayput status deployment/web --watch",
		ValidArgsFunction: cluster.completeWorkload(),
		RunE: func(status *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return runOverview(status.Context(), cluster, std)
			}
			return runStatus(status.Context(), cluster, arguments, watch, std)
		},
	}
	status.Flags().BoolVarP(&watch, "watch", "w", false, "go on until the update is over")
	return status
}

// runStatus prints how far the update of one workload is.
func runStatus(ctx context.Context, cluster *connection, workload []string, watch bool, std streams) error {
	s, err := statusOf(cluster, workload)
	if err != nil {
		return err
	}
	if watch {
		return s.follow(ctx, watching(std.Out))
	}
	now, err := s.look(ctx)
	if err != nil {
		return err
	}
	return now.print(std.Out)
}

func runOverview(ctx context.Context, cluster *connection, std streams) error {
	from, err := cluster.client(rest.NoWarnings{})
	if err != nil {
		return err
	}
	return overview{Reader: from, own: cluster.own, only: *cluster.Namespace, now: time.Now()}.print(ctx, std.Out)
}

// workloadIn returns the kind and the name in arguments such as "deploy/web" or "deploy web".
func workloadIn(arguments []string) (observe.Kind, string, error) {
	called, name, _ := strings.Cut(strings.Join(arguments, "/"), "/")
	if kind, known := kindCalled(called); known && name != "" && !strings.Contains(name, "/") {
		return kind, name, nil
	}
	return observe.Kind{}, "", fmt.Errorf("%q is no workload that Stayput updates: say deployment/NAME, daemonset/NAME or statefulset/NAME",
		strings.Join(arguments, " "))
}

// kindCalled returns the kind with that name, as kubectl accepts names of kinds.
func kindCalled(name string) (observe.Kind, bool) {
	name, _, _ = strings.Cut(strings.ToLower(name), ".") // deployment.apps
	for _, kind := range observe.Kinds {
		long := strings.ToLower(kind.Workload.Name)
		if slices.Contains([]string{long, long + "s", kind.ShortName}, name) {
			return kind, true
		}
	}
	return observe.Kind{}, false
}

// status reads and prints how far the update of one workload is.
type status struct {
	client.Client
	kind   observe.Kind
	key    types.NamespacedName
	reader observe.Reader
	// nodes are the nodes, as they were first read; nil as long as they have not been.
	nodes []*corev1.Node
}

func statusOf(cluster *connection, arguments []string) (*status, error) {
	kind, name, err := workloadIn(arguments)
	if err != nil {
		return nil, err
	}
	namespace, _, err := cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	found, err := cluster.client(rest.NoWarnings{})
	key := types.NamespacedName{Namespace: namespace, Name: name}
	return &status{Client: found, kind: kind, key: key, reader: cluster.reader(found)}, err
}

// follow reads the status every second and has it shown, until the update is over.
func (s *status) follow(ctx context.Context, show func(sight) error) error {
	err := polling.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		now, err := s.look(ctx)
		if err != nil {
			return false, err
		}
		return now.done, show(now)
	})
	if ctx.Err() != nil {
		return exitFailed
	}
	return err
}

// read reads the workload with its revisions and pods.
func (s *status) read(ctx context.Context) (engine.Rollout, error) {
	rollout, err := s.kind.Source(s.reader)(ctx, s.key)
	if err == nil && rollout == nil {
		err = fmt.Errorf("there is no %s %s", s.kind.Workload.Name, s.key)
	}
	return rollout, err
}

func (s *status) look(ctx context.Context) (sight, error) {
	rollout, err := s.read(ctx)
	if err != nil {
		return sight{}, err
	}
	if err := s.addDisruption(ctx, rollout.Snapshot()); err != nil {
		return sight{}, err
	}
	if err := s.addNodes(ctx, rollout); err != nil {
		return sight{}, err
	}
	events, err := s.events(ctx, rollout.Workload())
	return sight{s.kind, rollout, events, over(rollout)}, err
}

// over reports whether the update is over.
func over(rollout engine.Rollout) bool { return rollout.Done() && !engine.Marked(rollout) }

// addDisruption adds what pods wait for if they wait for a PodDisruptionBudget, if the user may list those: custom roles may not allow it.
func (s *status) addDisruption(ctx context.Context, seen *engine.Snapshot) (err error) {
	if !seen.Settings.DisruptionBudgets {
		return nil
	}
	seen.Disruption, err = s.reader.Disruption(ctx, s.key.Namespace)
	return utilerrors.FilterOut(err, apierrors.IsForbidden)
}

// addNodes adds the nodes if the user asks for an order of nodes, or for images only, and may list them: the role edit does not allow it.
// There may be thousands of nodes, and what they say of labels and images rarely changes, so they are read once.
func (s *status) addNodes(ctx context.Context, rollout engine.Rollout) error {
	if inplace.NodeOrderOf(rollout.Snapshot().Settings.InForce(rollout.Workload())).None() && rollout.Images().Nodes == 0 {
		return nil
	}
	if s.nodes == nil {
		var list corev1.NodeList
		if err := s.List(ctx, &list); err != nil {
			return utilerrors.FilterOut(err, apierrors.IsForbidden)
		}
		for i := range list.Items {
			s.nodes = append(s.nodes, &list.Items[i])
		}
	}
	rollout.Snapshot().Nodes = s.nodes
	return nil
}

// events returns Stayput's events about the workload, oldest first.
func (s *status) events(ctx context.Context, workload client.Object) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := s.List(ctx, &list, client.InNamespace(s.key.Namespace),
		client.MatchingFields{"involvedObject.uid": string(workload.GetUID())}); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	ours := slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.ReportingController != report.RecorderName })
	slices.SortStableFunc(ours, func(a, b corev1.Event) int { return timeOf(a).Compare(timeOf(b)) })
	return ours, nil
}
