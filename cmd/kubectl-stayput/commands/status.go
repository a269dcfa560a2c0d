package commands

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/kinds"
	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/podstate"
)

func newStatus(cluster *connection, std streams) *cobra.Command {
	var watch bool
	status := &cobra.Command{
		Use:   "status [deployment/NAME | daemonset/NAME]",
		Short: "Show how workloads are updated; or pod by pod, how far an update is",
		Long: "Show the leader, which workloads are updated in place, and how the last edit of each is carried out.\n" +
			"Of one workload, show each pod, how far its update is and what it waits for.",
		Example: "  kubectl stayput status\n  kubectl stayput status deployment/web --watch",
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
		return s.watch(ctx, std.Out)
	}
	_, err = s.print(ctx, std.Out)
	return err
}

func runOverview(ctx context.Context, cluster *connection, std streams) error {
	config, err := cluster.config(rest.NoWarnings{})
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	return overview{Interface: clients, metadata: objects, own: cluster.own, only: *cluster.Namespace, now: time.Now()}.print(ctx, std.Out)
}

// shortNames are kubectl's short names of the kinds.
var shortNames = map[string]string{"Deployment": "deploy", "DaemonSet": "ds"}

// workloadIn returns the kind and the name in arguments such as "deploy/web" or "deploy web".
func workloadIn(arguments []string) (kinds.Kind, string, error) {
	kind, name, _ := strings.Cut(strings.Join(arguments, "/"), "/")
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".") // deployment.apps
	for _, known := range kinds.All {
		long := strings.ToLower(known.Workload.Name)
		if slices.Contains([]string{long, long + "s", shortNames[known.Workload.Name]}, kind) && name != "" && !strings.Contains(name, "/") {
			return known, name, nil
		}
	}
	return kinds.Kind{}, "", fmt.Errorf("%q is no workload that Stayput updates: say deployment/NAME or daemonset/NAME",
		strings.Join(arguments, " "))
}

// status reads and prints how far the update of one workload is.
type status struct {
	client.Reader
	kind   kinds.Kind
	key    types.NamespacedName
	source kinds.Source
}

func statusOf(cluster *connection, arguments []string) (status, error) {
	kind, name, err := workloadIn(arguments)
	if err != nil {
		return status{}, err
	}
	namespace, _, err := cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return status{}, err
	}
	found, err := cluster.client(rest.NoWarnings{})
	key, source := types.NamespacedName{Namespace: namespace, Name: name}, kind.Source(cluster.reader(found, false))
	return status{Reader: found, kind: kind, key: key, source: source}, err
}

// watch prints the status whenever it has changed, until the update is over.
func (s status) watch(ctx context.Context, out io.Writer) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := ""; ; {
		var now bytes.Buffer
		done, err := s.print(ctx, &now)
		switch {
		case ctx.Err() != nil:
			return exitFailed
		case err != nil:
			return err
		}
		if now.String() != last {
			fmt.Fprintln(out, now.String())
		}
		if last = now.String(); done {
			return nil
		}
		select {
		case <-ctx.Done():
			return exitFailed
		case <-tick.C:
		}
	}
}

// print prints the status, and reports whether the update is over.
func (s status) print(ctx context.Context, out io.Writer) (done bool, err error) {
	rollout, err := s.source(ctx, s.key)
	if err != nil {
		return false, err
	}
	if rollout == nil {
		return false, fmt.Errorf("there is no %s %s", s.kind.Workload.Name, s.key)
	}
	events, err := s.events(ctx, rollout.Workload())
	if err != nil {
		return false, err
	}
	done = rollout.Done() && !kinds.Marked(rollout)
	printHead(out, s.kind, rollout, done)
	if err := printPods(out, rollout.PodProgress()); err != nil {
		return false, err
	}
	printEvents(out, events)
	return done, nil
}

// events returns Stayput's events about the workload, oldest first.
func (s status) events(ctx context.Context, workload client.Object) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := s.List(ctx, &list, client.InNamespace(s.key.Namespace),
		client.MatchingFields{"involvedObject.uid": string(workload.GetUID())}); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	ours := slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.ReportingController != report.RecorderName })
	slices.SortStableFunc(ours, func(a, b corev1.Event) int { return timeOf(a).Compare(timeOf(b)) })
	return ours, nil
}

// timeOf returns when the event happened. Events of events.k8s.io/v1 have an EventTime, and none of the older API's times.
func timeOf(e corev1.Event) time.Time {
	if e.EventTime.IsZero() {
		return e.CreationTimestamp.Time
	}
	return e.EventTime.Time
}

func printHead(out io.Writer, kind kinds.Kind, rollout kinds.Rollout, done bool) {
	workload := rollout.Workload()
	fmt.Fprintf(out, "%s %s/%s\n", kind.Workload.Name, workload.GetNamespace(), workload.GetName())
	fmt.Fprintf(out, "Mode:       %s\n", cmp.Or(string(rollout.Snapshot().Mode), string(inplace.ModeRecreate)))
	fmt.Fprintf(out, "Last edit:  %s\n", cmp.Or(workload.GetAnnotations()[inplace.AnnotationDecision], "-"))
	fmt.Fprintf(out, "Update:     %s\n\n", updateOf(rollout, done))
}

// updateOf returns one line about the whole update. Marks count more than the plugin's own decision: the leader, which sets them, knows
// Stayput's flags, and the plugin does not.
func updateOf(rollout kinds.Rollout, done bool) string {
	snapshot, decision := rollout.Snapshot(), rollout.Decision()
	podProgress, are := rollout.PodProgress(), map[podstate.PodPhase]int{}
	for _, each := range podProgress {
		are[each.Phase]++
	}
	counts := fmt.Sprintf("%d of %d pods updated", are[podstate.Updated], len(podProgress))
	if kept := are[podstate.AtPartition]; kept > 0 {
		counts += fmt.Sprintf(", %d at the partition", kept)
	}
	switch {
	case !snapshot.Mode.Manages():
		return snapshot.Mode.Reason().Message + "; " + counts
	case kinds.Marked(rollout):
		return "in place, " + counts
	case done:
		return "none, " + counts
	case len(decision.Reasons) > 0:
		return "native: " + decision.Reasons.String() + "; " + counts
	}
	return "not begun by Stayput, " + counts
}

func printPods(out io.Writer, podProgress []podstate.PodProgress) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "POD\tNODE\tREVISION\tSTATE\tWAITS FOR")
	for _, each := range podProgress {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n",
			each.Pod.Name, cmp.Or(each.Pod.Spec.NodeName, "-"), cmp.Or(each.Revision, "-"), each.Phase, cmp.Or(each.Awaits, "-"))
	}
	return table.Flush()
}

// mostEvents is how many events are shown: the last ones.
const mostEvents = 5

func printEvents(out io.Writer, events []corev1.Event) {
	if len(events) > 0 {
		fmt.Fprintln(out, "\nEvents (UTC):")
	}
	for _, e := range events[max(0, len(events)-mostEvents):] {
		fmt.Fprintf(out, "  %s  %s: %s\n", timeOf(e).UTC().Format(time.TimeOnly), e.Reason, e.Message)
	}
}
