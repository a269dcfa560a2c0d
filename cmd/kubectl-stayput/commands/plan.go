package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// planFlags are the flags of the command plan.
type planFlags struct {
	files  resource.FilenameOptions
	output output
	apply  applier
}

func newPlan(cluster *connection, std streams) *cobra.Command {
	var asked planFlags
	plan := &cobra.Command{
		Use:   "plan (-f FILE | -k DIRECTORY)",
		Short: "Show what kubectl apply would do to running pods",
		Long: "Show what kubectl apply would do to running pods, without doing it.\n" +
			"The exit code is 0 if no pod is recreated, 2 if pods of a workload are, and 1 after an error.",
		Example: "  kubectl stayput plan -f shop.yaml\n  kustomize build shop | kubectl stayput plan -f - -o json",
		Args:    cobra.NoArgs,
		RunE:    func(plan *cobra.Command, _ []string) error { return asked.run(plan.Context(), cluster, std) },
	}
	asked.register(plan)
	return plan
}

// run prints what kubectl apply would do.
func (f *planFlags) run(ctx context.Context, cluster *connection, std streams) error {
	if err := f.files.RequireFilenameOrKustomize(); err != nil {
		return err
	}
	wanted, err := f.objects(cluster)
	if err != nil {
		return err
	}
	p, err := newPlanner(cluster, f.apply, std.ErrOut)
	if err != nil {
		return err
	}
	var rows []row
	for _, object := range wanted {
		rows = append(rows, p.plan(ctx, object))
	}
	return printRows(rows, f.output, std)
}

func (f *planFlags) register(plan *cobra.Command) {
	flags := plan.Flags()
	flags.StringSliceVarP(&f.files.Filenames, "filename", "f", nil, "`files`, folders or URLs of manifests; - is standard input")
	flags.StringVarP(&f.files.Kustomize, "kustomize", "k", "", "`folder` with a kustomization")
	flags.BoolVarP(&f.files.Recursive, "recursive", "R", false, "folders within folders, too")
	f.output.register(plan)
	flags.BoolVar(&f.apply.serverSide, "server-side", false, "as kubectl apply --server-side")
	flags.BoolVar(&f.apply.force, "force-conflicts", false, "as kubectl apply --force-conflicts")
	flags.StringVar(&f.apply.manager, "field-manager", "", "`name` of the field manager; kubectl's own if empty")
	for _, err := range []error{plan.MarkFlagFilename("filename", "yaml", "yml", "json"), plan.MarkFlagDirname("kustomize")} {
		if err != nil {
			panic(err) // there is no such flag
		}
	}
}

// objects reads the manifests. It does not ask the API server.
func (f *planFlags) objects(cluster *connection) ([]*unstructured.Unstructured, error) {
	namespace, enforced, err := cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	infos, err := resource.NewLocalBuilder().Unstructured().FilenameParam(false, &f.files).Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, info := range infos {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%s: %T is no object", info.Source, info.Object)
		}
		if err := place(object, namespace, enforced); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// place sets the namespace of a workload. If the user gave --namespace, the manifest must not name another one.
func place(object *unstructured.Unstructured, namespace string, enforced bool) error {
	switch said := object.GetNamespace(); {
	case kindOf(object) == nil:
	case said == "":
		object.SetNamespace(namespace)
	case enforced && said != namespace:
		return fmt.Errorf("%s %s is of namespace %s, and --namespace says %s", object.GetKind(), object.GetName(), said, namespace)
	}
	return nil
}

// kindOf returns the kind of the object; nil if it is no workload that Stayput updates.
func kindOf(object *unstructured.Unstructured) *observe.Kind {
	for _, kind := range observe.Kinds {
		if apps.KindOf(kind.Workload.Object()) == object.GroupVersionKind() {
			return &kind
		}
	}
	return nil
}

// planner asks the API server, in dry runs, what it would store.
type planner struct {
	applier
	warnings *warnings
	reader   observe.Reader
}

func newPlanner(cluster *connection, apply applier, messages io.Writer) (*planner, error) {
	p := &planner{applier: apply, warnings: &warnings{others: rest.NewWarningWriter(messages, rest.WarningWriterOptions{Deduplicate: true})}}
	var err error
	if p.Client, err = cluster.client(p.warnings); err != nil {
		return nil, err
	}
	served, err := cluster.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	p.schemas = openapi3.NewRoot(served.OpenAPIV3())
	p.reader = cluster.reader(p.Client)
	return p, nil
}

// plan returns the plan of one object.
func (p *planner) plan(ctx context.Context, wanted *unstructured.Unstructured) row {
	planned := rowOf(wanted)
	kind := kindOf(wanted)
	if kind == nil {
		return planned.with(skipped, "no Deployment, DaemonSet or StatefulSet")
	}
	p.warnings.answers = nil
	stored, applied, err := p.apply(ctx, wanted)
	switch reasons := refusalOf(err); {
	case len(reasons) > 0:
		return planned.refused(reasons)
	case err != nil:
		return planned.with(failed, err.Error())
	case stored == nil:
		return planned.with(created, "")
	}
	was, will, err := readBoth(*kind, stored, applied)
	if err != nil {
		return planned.with(failed, err.Error())
	}
	if apps.SameTemplate(*was.PodTemplate(), *will.PodTemplate()) {
		return planned.with(unchanged, "")
	}
	preview, err := preview(ctx, p.reader, *kind, was, will)
	if err != nil {
		return planned.with(failed, err.Error())
	}
	return planned.decided(preview, p.warnings.answer())
}

// refusalOf returns why Stayput refuses the edit, because the workload is in-place-only. It returns none if the error says something else.
func refusalOf(err error) inplace.Reasons {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var reasons inplace.Reasons
	for _, cause := range status.Status().Details.Causes {
		message, ours := strings.CutSuffix(cause.Message, ", "+steps.NotAllowed)
		if !ours {
			return nil
		}
		reasons = reasons.And(inplace.Reason{Path: cause.Field, Message: strings.TrimPrefix(message, "Forbidden: ")})
	}
	return reasons
}

// readBoth decodes a workload as it is stored and as it would be after the edit.
func readBoth(kind observe.Kind, stored, applied *unstructured.Unstructured) (was, will apps.Workload, err error) {
	was, will = kind.Workload.Object().(apps.Workload), kind.Workload.Object().(apps.Workload)
	return was, will, cmp.Or(readInto(was, stored), readInto(will, applied))
}

// preview previews an edit. PodDisruptionBudgets and autoscalers are in it if the user may list them: custom roles may not allow it.
func preview(ctx context.Context, reader observe.Reader, kind observe.Kind, was, will apps.Workload) (preview steps.Preview, err error) {
	rollout, err := kind.Edited(ctx, reader, will)
	if err != nil {
		return preview, err
	}
	seen, key := rollout.Snapshot(), client.ObjectKeyFromObject(will)
	claims := readiness.ClaimsOf(will.PodTemplate().Decoded().Spec)
	if seen.DryRun.Claim, err = observe.ClaimForOneNode(ctx, reader, key.Namespace, claims); err != nil {
		return preview, err
	}
	if err := utilerrors.FilterOut(reader.WithBudgets(ctx, key.Namespace, seen), apierrors.IsForbidden); err != nil {
		return preview, err
	}
	preview = rollout.Preview(*was.PodTemplate())
	if preview.Duration, err = kind.AboutDuration(ctx, reader, key, preview); utilerrors.FilterOut(err, apierrors.IsForbidden) != nil {
		return preview, err
	}
	preview.Autoscaler, err = kind.AboutAutoscalers(ctx, reader, key, preview.Change)
	return preview, utilerrors.FilterOut(err, apierrors.IsForbidden)
}
