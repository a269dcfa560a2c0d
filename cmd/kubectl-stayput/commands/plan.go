package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/engine"
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
		Args:    noArguments,
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
	case !isWorkload(object):
	case said == "":
		object.SetNamespace(namespace)
	case enforced && said != namespace:
		return fmt.Errorf("%s %s is of namespace %s, and --namespace says %s", object.GetKind(), object.GetName(), said, namespace)
	}
	return nil
}

func isWorkload(object *unstructured.Unstructured) bool {
	_, known := previews[object.GetKind()]
	return known && object.GroupVersionKind().GroupVersion() == appsv1.SchemeGroupVersion
}

// planner asks the API server, in dry runs, what it would store.
type planner struct {
	applier
	warnings *warnings
	reader   func(answered bool) observe.Reader
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
	p.reader = func(answered bool) observe.Reader { return cluster.reader(p.Client, answered) }
	return p, nil
}

// plan returns the plan of one object.
func (p *planner) plan(ctx context.Context, wanted *unstructured.Unstructured) row {
	planned := rowOf(wanted)
	if !isWorkload(wanted) {
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
	case sameTemplate(stored, applied):
		return planned.with(unchanged, "")
	}
	preview, err := p.preview(ctx, stored, applied)
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

// sameTemplate reports whether the edit leaves the pod template as it is. If an object does not decode, it reports false; the preview then
// returns that error.
func sameTemplate(stored, applied *unstructured.Unstructured) bool {
	was, will, err := readBoth[apps.Deployment](stored, applied) // every kind has its template at the same place
	return err == nil && apps.SameTemplate(was.Spec.Template, will.Spec.Template)
}

func (p *planner) preview(ctx context.Context, stored, applied *unstructured.Unstructured) (steps.Preview, error) {
	return previews[applied.GetKind()](ctx, p.reader(p.warnings.answer() != ""), stored, applied)
}

// preview previews an edit.
type preview func(ctx context.Context, reader observe.Reader, stored, applied *unstructured.Unstructured) (steps.Preview, error)

// previews are the functions that preview an edit, by kind of workload.
var previews = map[string]preview{
	"Deployment":  besideAutoscalers(observe.Deployments, previewDeployment),
	"DaemonSet":   besideAutoscalers(observe.DaemonSets.Kind, previewRevised(observe.DaemonSets)),
	"StatefulSet": besideAutoscalers(observe.StatefulSets.Kind, previewRevised(observe.StatefulSets)),
}

// besideAutoscalers returns the preview with a line about an autoscaler of the workload, if the user may list them: custom roles may not
// allow it.
func besideAutoscalers(kind observe.Kind, of preview) preview {
	return func(ctx context.Context, reader observe.Reader, stored, applied *unstructured.Unstructured) (steps.Preview, error) {
		preview, err := of(ctx, reader, stored, applied)
		if err != nil {
			return preview, err
		}
		key := client.ObjectKeyFromObject(applied)
		preview.Autoscaler, err = reader.AboutAutoscalers(ctx, kind, key, preview.Change)
		return preview, utilerrors.FilterOut(err, apierrors.IsForbidden)
	}
}

func previewDeployment(ctx context.Context, reader observe.Reader, stored, applied *unstructured.Unstructured) (steps.Preview, error) {
	was, will, err := readBoth[apps.Deployment](stored, applied)
	if err != nil {
		return steps.Preview{}, err
	}
	rollout, err := reader.WithoutPods().RolloutOf(ctx, will)
	if err != nil {
		return steps.Preview{}, err
	}
	claims := readiness.ClaimsOf(will.Spec.Template.Decoded().Spec)
	if rollout.Seen.DryRun.Claim, err = observe.ClaimForOneNode(ctx, reader, will.Namespace, claims); err != nil {
		return steps.Preview{}, err
	}
	err = addBudgets(ctx, reader, will.Namespace, &rollout.Seen)
	return rollout.Preview(was.Spec.Template), err
}

// previewRevised previews an edit of a workload whose revisions are ControllerRevisions.
func previewRevised(kind observe.Revised) preview {
	return func(ctx context.Context, reader observe.Reader, stored, applied *unstructured.Unstructured) (steps.Preview, error) {
		was, will := kind.Workload.Object(), kind.Workload.Object()
		if err := cmp.Or(readInto(was, stored), readInto(will, applied)); err != nil {
			return steps.Preview{}, err
		}
		rollout, err := kind.RolloutOf(ctx, reader, will)
		if err != nil {
			return steps.Preview{}, err
		}
		err = addBudgets(ctx, reader, will.GetNamespace(), &rollout.Seen)
		return rollout.Preview(kind.Of(was).Workload().Template), err
	}
}

// addBudgets adds the PodDisruptionBudgets, if the user may list them: custom roles may not allow it.
func addBudgets(ctx context.Context, reader observe.Reader, namespace string, seen *engine.Snapshot) error {
	return utilerrors.FilterOut(reader.WithBudgets(ctx, namespace, seen), apierrors.IsForbidden)
}
