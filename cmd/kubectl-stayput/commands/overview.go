package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/observe"
)

// overview reads and prints what Stayput does in a cluster.
type overview struct {
	kubernetes.Interface
	metadata metadata.Interface
	own      string
	// only is the namespace that the user named; empty for all namespaces.
	only string
	now  time.Time
}

// workload is a workload without its spec.
type workload struct {
	kind observe.Kind
	metav1.ObjectMeta
}

func (s overview) print(ctx context.Context, out io.Writer) error {
	if err := s.printLeader(ctx, out); err != nil {
		return err
	}
	if err := s.printBypasses(ctx, out); err != nil {
		return err
	}
	namespaces, err := s.namespaces(ctx)
	if err != nil {
		return err
	}
	if len(namespaces) == 0 {
		return s.nothing(out)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tKIND\tNAME\tMODE\tUPDATE\tLAST EDIT")
	for _, namespace := range namespaces {
		if err := s.printWorkloads(ctx, table, namespace); err != nil {
			return err
		}
	}
	return table.Flush()
}

// namespaces returns the namespaces with the label. If the user named a namespace, it returns only that one.
func (s overview) namespaces(ctx context.Context) ([]corev1.Namespace, error) {
	if s.only != "" {
		namespace, err := s.CoreV1().Namespaces().Get(ctx, s.only, metav1.GetOptions{})
		if err != nil || namespace.Labels[inplace.LabelUpdate] == "" {
			return nil, err
		}
		return []corev1.Namespace{*namespace}, nil
	}
	found, err := s.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: inplace.LabelUpdate})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

func (s overview) nothing(out io.Writer) error {
	unlabelled := "No namespace has"
	if s.only != "" {
		unlabelled = "Namespace " + s.only + " has not"
	}
	_, err := fmt.Fprintf(out, "%s the label %s, so nothing is updated in place.\n", unlabelled, inplace.LabelUpdate)
	return err
}

// printLeader prints which manager holds the Lease, or that no manager has renewed it.
func (s overview) printLeader(ctx context.Context, out io.Writer) error {
	lease, err := s.CoordinationV1().Leases(s.own).Get(ctx, inplace.Lease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(out, "No manager leads, so every update is native: there is no Lease %s in namespace %s.\n", inplace.Lease, s.own)
		return nil
	}
	if err != nil {
		return err
	}
	holder, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime
	switch {
	case holder == nil || *holder == "" || renewed == nil:
		fmt.Fprintln(out, "No manager leads at this moment.")
	case s.now.Sub(renewed.Time) > inplace.LeaderPatience:
		fmt.Fprintf(out, "No manager leads, so every update is native: %s last renewed the Lease %s ago.\n",
			*holder, s.now.Sub(renewed.Time).Round(time.Second))
	default:
		fmt.Fprintf(out, "Leader: %s\n", *holder)
	}
	return nil
}

// printBypasses prints native writes that a webhook should have held and did not, as long as their events exist.
func (s overview) printBypasses(ctx context.Context, out io.Writer) error {
	events, err := s.EventsV1().Events(s.only).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + report.EventBypassed})
	if err != nil {
		return err
	}
	for _, event := range events.Items {
		about := event.Regarding
		fmt.Fprintf(out, "Warning: %s %s/%s: %s\n", about.Kind, about.Namespace, about.Name, oneLine(event.Note))
	}
	return nil
}

func (s overview) printWorkloads(ctx context.Context, out io.Writer, namespace corev1.Namespace) error {
	workloads, err := s.workloads(ctx, namespace.Name)
	if err != nil {
		return err
	}
	updating, err := s.updating(ctx, namespace.Name)
	if err != nil {
		return err
	}
	for _, each := range workloads {
		update := "-"
		if updating[each.UID] {
			update = "in place"
		}
		mode := cmp.Or(string(each.kind.ModeOf(&namespace, each.Labels)), inplace.Native)
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n",
			namespace.Name, each.kind.Workload.Name, each.Name, mode, update, cmp.Or(oneLine(each.Annotations[inplace.AnnotationDecision]), "-"))
	}
	return nil
}

func (s overview) workloads(ctx context.Context, namespace string) ([]workload, error) {
	var found []workload
	for _, kind := range observe.Kinds {
		list, err := s.metadata.Resource(kind.Workload.Resource()).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, each := range list.Items {
			found = append(found, workload{kind, each.ObjectMeta})
		}
	}
	return found, nil
}

// updating returns the UIDs of the workloads with a marked revision.
func (s overview) updating(ctx context.Context, namespace string) (map[types.UID]bool, error) {
	found := map[types.UID]bool{}
	for _, kind := range observe.Kinds {
		marked := metav1.ListOptions{LabelSelector: inplace.LabelUpdating}
		revisions, err := s.metadata.Resource(kind.Revision.Resource()).Namespace(namespace).List(ctx, marked)
		if err != nil {
			return nil, err
		}
		for _, each := range revisions.Items {
			found[controllerOf(&each)] = true
		}
	}
	return found, nil
}

func controllerOf(revision metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(revision); owner != nil {
		return owner.UID
	}
	return ""
}
