package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/patches"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// forever is how long promote waits without --timeout.
const forever = 365 * 24 * time.Hour

func newPromote(cluster *connection, std streams) *cobra.Command {
	var to string
	var timeout time.Duration
	promote := &cobra.Command{
		Use:   "promote (deployment/NAME | daemonset/NAME | statefulset/NAME)",
		Short: "Let an update in place go on to its next stage, and wait until it is there",
		Long: "Lower the partition of a workload, and wait until all other pods are updated and available.\n" +
			"Without --to, twice as many pods are updated as in the stage before: of ten pods 1, 2, 4, 8, and then all.\n" +
			"The stage before must be reached: promote waits for that first. If no update is in progress, it changes nothing.\n" +
			"It exits with 0 when the stage is reached, or nothing is to be promoted; and with 1 when the update stalls.",
		Example:           "  kubectl stayput promote deployment/web\n  kubectl stayput promote daemonset/agent --to 25% --timeout 10m",
		ValidArgsFunction: cluster.completeWorkload(),
		RunE: func(promote *cobra.Command, arguments []string) error {
			s, err := statusOf(cluster, arguments)
			if err != nil {
				return err
			}
			target, err := targetOf(to)
			if err != nil {
				return err
			}
			p := promotion{status: s, to: target, until: time.Now().Add(cmp.Or(timeout, forever)), teller: teller{out: std.Out}}
			switch err := p.make(promote.Context()); {
			case err != nil && promote.Context().Err() != nil: // interrupted
				return exitFailed
			case polling.Interrupted(err):
				return fmt.Errorf("timed out after %s: %s", timeout, p.last)
			default:
				return err
			}
		},
	}
	promote.Flags().StringVar(&to, "to", "", "how many `pods` keep their old revision: a number, or 0% to 100%; the next stage if empty")
	promote.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait, such as 10m; 0 is until the stage is reached or the update stalls")
	return promote
}

// targetOf returns the partition that the flag names.
func targetOf(to string) (inplace.Partition, error) {
	target := inplace.Partition{Value: to}
	if target.Flaw() != "" {
		return target, fmt.Errorf("--to: %q is neither a number of pods nor 0%% to 100%%", to)
	}
	return target, nil
}

// promotion lets the update of one workload go on to a stage.
type promotion struct {
	*status
	// to is the partition of that stage; the zero Partition for the next one.
	to inplace.Partition
	teller
	// until is when it gives up waiting.
	until time.Time
	// template is the hash of the template that is rolled out.
	template string
}

// make waits for the stage before, lowers the partition, and waits for the new stage.
func (p *promotion) make(ctx context.Context) error {
	rollout, err := p.read(ctx)
	if err != nil {
		return err
	}
	if mode := rollout.Snapshot().Mode; !mode.Manages() {
		return errors.New(mode.Reason().Message)
	}
	if over(rollout) && !rollout.Stage().Reached {
		p.say("nothing to promote: no update of %s is in progress", p.called())
		return nil
	}
	p.template = rollout.TemplateHash()
	if rollout, err = p.reach(ctx); err != nil || !rollout.Stage().Reached {
		return err
	}
	if lowered, err := p.lower(ctx, rollout); err != nil || !lowered {
		return err
	}
	_, err = p.reach(ctx)
	return err
}

// called is the workload in messages, as "deployment web".
func (p *promotion) called() string { return strings.ToLower(p.kind.Workload.Name) + " " + p.key.Name }

// reach reads the workload every second until the stage is reached, or cannot be.
func (p *promotion) reach(ctx context.Context) (rollout engine.Rollout, err error) {
	err = polling.PollUntilContextTimeout(ctx, time.Second, time.Until(p.until), true, func(context.Context) (bool, error) {
		if rollout, err = p.read(ctx); err != nil {
			return false, err
		}
		if err := p.failure(rollout); err != nil {
			return false, err
		}
		return p.reached(rollout), nil
	})
	return rollout, err
}

// failure returns why the stage will not be reached by itself; nil if it may.
func (p *promotion) failure(rollout engine.Rollout) error {
	switch stalled, decision, flaw := rollout.Stalled(), rollout.Decision(), rollout.Snapshot().Settings.Partition.Flaw(); {
	case rollout.TemplateHash() != p.template:
		return errors.New("the template was edited meanwhile, so this is another update; its partition is left as it is")
	case stalled != "":
		return errors.New("the update has stalled: " + stalled)
	case flaw != "":
		return errors.New(flaw)
	case decision.Waits:
		return errors.New("the update waits, and no pod is replaced: " + decision.Reasons.String())
	case decision.Native():
		return errors.New("the update is native, and a partition does not hold it: " + decision.Reasons.String())
	}
	return nil
}

// reached reports whether the update is at its stage, or over, and says so, or what it waits for.
func (p *promotion) reached(rollout engine.Rollout) bool {
	stage, now := rollout.Stage(), sight{kind: p.kind, rollout: rollout}
	updated := now.are(podstate.Updated)
	switch window := rollout.Snapshot().Settings.Partition.Closed; {
	case window != "" && now.are(podstate.Updating) == 0 && (stage.Reached || !over(rollout)): // whatever the stage is
		p.say("Waiting for %s: %d of %d pods are updated, and all others wait for %s", p.called(), updated, stage.Pods, window)
		return false
	case stage.Reached:
		p.say("%s has reached its stage: %d of %d pods are updated, %d keep their old revision", p.called(), updated, stage.Pods, stage.Kept)
	case over(rollout):
		p.say("%s is updated: all %d pods", p.called(), stage.Pods)
	default:
		p.say("Waiting for %s: %d of %d pods are updated, %d keep their old revision%s",
			p.called(), updated, stage.Pods, stage.Kept, now.awaits())
		return false
	}
	return true
}

// lower writes the partition of the stage, and reports whether it did. It does not if the workload is there already.
func (p *promotion) lower(ctx context.Context, rollout engine.Rollout) (bool, error) {
	stage := rollout.Stage()
	to := p.to
	if to.Value == "" {
		to = inplace.Partition{Value: fmt.Sprint(stage.Kept)}.Next(stage.Pods)
	}
	switch keeps := to.Keeps(stage.Pods); {
	case keeps > stage.Kept:
		return false, fmt.Errorf("--to %s would keep %d pods, and only %d keep their old revision; no pod goes back but by kubectl rollout undo",
			to.Value, keeps, stage.Kept)
	case keeps == stage.Kept:
		return false, nil
	}
	patch, err := json.Marshal(lowering(p.kind, rollout.Workload(), to, stage))
	if err != nil {
		return false, err
	}
	workload := rollout.Workload().DeepCopyObject().(client.Object)
	err = p.Patch(ctx, workload, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("kubectl-stayput"))
	if apierrors.IsInvalid(err) {
		return false, fmt.Errorf("the workload was changed meanwhile, so its partition is left as it is; run promote again (%w)", err)
	}
	if err == nil {
		p.say("%s: the partition is lowered, so that %d of %d pods are updated", p.called(), stage.Pods-to.Keeps(stage.Pods), stage.Pods)
	}
	return err == nil, err
}

// lowering returns the patch that sets the partition. It fails if the partition or the template is no longer what was read. A change of
// annotations does not change the generation.
func lowering(kind observe.Kind, workload client.Object, to inplace.Partition, stage steps.Stage) []jsonpatch.Operation {
	operations := []jsonpatch.Operation{
		jsonpatch.NewOperation("test", "/metadata/uid", workload.GetUID()),
		jsonpatch.NewOperation("test", "/metadata/generation", workload.GetGeneration()),
	}
	if kind.OwnPartition != "" {
		return append(operations, jsonpatch.NewOperation("replace", kind.OwnPartition, to.Keeps(stage.Pods)))
	}
	path := patches.Pointer("metadata", "annotations", inplace.AnnotationPartition)
	if own, has := workload.GetAnnotations()[inplace.AnnotationPartition]; has {
		operations = append(operations, jsonpatch.NewOperation("test", path, own))
	}
	return append(operations, jsonpatch.NewOperation("add", path, to.Value))
}
