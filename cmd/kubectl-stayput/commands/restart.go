package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
)

// restartFlags are the flags of the command restart.
type restartFlags struct {
	containers []string
	timeout    time.Duration
	wait       bool
}

func newRestart(cluster *connection, std streams) *cobra.Command {
	var asked restartFlags
	restart := &cobra.Command{
		Use:   "restart (deployment/NAME | daemonset/NAME | statefulset/NAME) -c CONTAINER",
		Short: "Restart containers in the running pods of a workload",
		Long: "Restart containers and sidecars in the running pods of a workload, under your own right to patch it. Each pod restarts all of\n" +
			"them at once. Nothing is written if pods would be replaced. The exit code is 1 if a container does not restart, or not in time.",
		Example:           "  kubectl stayput restart deployment/web -c app",
		ValidArgsFunction: cluster.completeWorkload(),
		RunE: func(restart *cobra.Command, arguments []string) error {
			return asked.run(restart.Context(), cluster, arguments, std)
		},
	}
	flags := restart.Flags()
	flags.StringArrayVarP(&asked.containers, "container", "c", nil, "`name` of a container or sidecar; several times for several")
	flags.DurationVar(&asked.timeout, "timeout", 10*time.Minute, "how long to wait")
	flags.BoolVar(&asked.wait, "wait", true, "wait until the containers have restarted and the pods are available")
	return restart
}

func (f *restartFlags) check() error {
	switch {
	case len(f.containers) == 0:
		return errors.New("say which container: -c NAME. kubectl rollout restart restarts all")
	case slices.Contains(f.containers, ""):
		return errors.New("-c has no name of a container")
	case f.timeout <= 0:
		return fmt.Errorf("--timeout is %s; it must be more than 0", f.timeout)
	}
	return nil
}

// run writes the annotations by which the containers restart into the workload's template, if that restarts them in place.
func (f *restartFlags) run(ctx context.Context, cluster *connection, arguments []string, std streams) error {
	if err := f.check(); err != nil {
		return err
	}
	s, err := statusOf(cluster, arguments)
	if err != nil {
		return err
	}
	said := &warnings{others: rest.NewWarningWriter(std.ErrOut, rest.WarningWriterOptions{Deduplicate: true})}
	writer, err := cluster.client(said)
	if err != nil {
		return err
	}
	before, err := s.look(ctx)
	if err != nil {
		return err
	}
	named := strings.ToLower(s.kind.Workload.Name) + "/" + s.key.Name
	if err := f.annotate(ctx, writer, before, said); err != nil {
		return fmt.Errorf("%s: %w", named, err)
	}
	fmt.Fprintf(std.Out, "%s: %s\n", named, strings.TrimPrefix(said.answer(), edit.InPlacePrefix))
	if !f.wait {
		return nil
	}
	return f.follow(ctx, s, before, std.Out)
}

// annotate writes the template, after a dry run.
func (f *restartFlags) annotate(ctx context.Context, writer client.Client, before sight, said *warnings) error {
	at, stored := time.Now().UTC().Format(time.RFC3339), before.rollout.Workload()
	annotations := map[string]string{}
	for _, container := range f.containers {
		annotations[inplace.AnnotationRestartPrefix+container] = at
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": stored.GetResourceVersion()},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}}})
	if err != nil {
		return err
	}
	workload := stored.DeepCopyObject().(client.Object)
	err = writer.Patch(ctx, workload, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
	switch reasons := refusalOf(err); {
	case len(reasons) > 0:
		return fmt.Errorf("pods would be replaced, which %s forbids: %s", inplace.ModeInPlaceOnly, reasons)
	case err != nil:
		return err
	case isRecreate(said.answer()):
		return fmt.Errorf("pods would be replaced: %s", strings.TrimPrefix(said.answer(), edit.RecreatePrefix))
	case said.answer() == "":
		return errors.New("pods would be replaced, as there is no answer from Stayput: is the namespace labelled, and does Stayput run?")
	}
	return writer.Patch(ctx, workload, client.RawPatch(types.MergePatchType, patch))
}

// follow tells how far the restart is, until it is over.
func (f *restartFlags) follow(ctx context.Context, s *status, before sight, out io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, f.timeout)
	defer stop()
	told, now := teller{out: out}, before
	err := s.follow(ctx, func(seen sight) error {
		now = seen
		told.say("%s", now.update())
		return nil
	})
	gone := before.pods().Difference(now.pods()).Len()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("not over after %s: %s%s", f.timeout, told.last, now.awaits())
	case err != nil:
		return err
	case gone > 0:
		return fmt.Errorf("%d pods are gone, so not all containers restarted in place%s", gone, now.lastEvent())
	}
	return nil
}

// pods returns the UIDs of the pods.
func (s sight) pods() sets.Set[types.UID] {
	all := sets.New[types.UID]()
	for _, each := range s.rollout.PodProgress() {
		all.Insert(each.Pod.UID)
	}
	return all
}

// lastEvent returns why the last update fell back, after a colon; empty if no event says so.
func (s sight) lastEvent() string {
	for _, event := range slices.Backward(s.events) {
		if event.Reason == report.EventFellBack || event.Reason == report.EventRecreated {
			return ": " + event.Message
		}
	}
	return ""
}
