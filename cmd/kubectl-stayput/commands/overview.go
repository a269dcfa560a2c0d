package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/report"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/observe"
)

// overview reads and prints what Stayput does in a cluster.
type overview struct {
	client.Reader
	own string
	// only is the namespace that the user named; empty for all namespaces.
	only string
	now  time.Time
}

func (s overview) print(ctx context.Context, to io.Writer) error {
	out := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	if err := s.printLeader(ctx, out); err != nil {
		return err
	}
	if err := s.printBypasses(ctx, out); err != nil {
		return err
	}
	var namespaces corev1.NamespaceList
	if err := s.List(ctx, &namespaces, client.HasLabels{inplace.LabelUpdate}); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(namespaces.Items, func(each corev1.Namespace) bool { return s.only != "" && s.only != each.Name })
	if len(chosen) == 0 {
		fmt.Fprintf(out, "Nothing is updated in place: no such namespace has the label %s.\n", inplace.LabelUpdate)
		return out.Flush()
	}
	fmt.Fprintln(out, "NAMESPACE\tKIND\tNAME\tMODE\tUPDATE\tLAST EDIT")
	for _, namespace := range chosen {
		if err := s.printWorkloads(ctx, out, namespace); err != nil {
			return err
		}
	}
	return out.Flush()
}

// printLeader prints which manager holds the Lease, or that no manager has renewed it.
func (s overview) printLeader(ctx context.Context, out io.Writer) error {
	var lease coordinationv1.Lease
	if err := s.Get(ctx, types.NamespacedName{Namespace: s.own, Name: inplace.Lease}, &lease); client.IgnoreNotFound(err) != nil {
		return err
	}
	holder, renewed := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{})
	if holder == "" || s.now.Sub(renewed.Time) > inplace.LeaderPatience {
		fmt.Fprintln(out, "No manager leads, so every update is native: see kubectl stayput check")
	} else {
		fmt.Fprintf(out, "Leader: %s\n", holder)
	}
	return nil
}

// printBypasses prints native writes that a webhook should have held and did not, as long as their events exist.
func (s overview) printBypasses(ctx context.Context, out io.Writer) error {
	var events corev1.EventList
	if err := s.List(ctx, &events, client.InNamespace(s.only), client.MatchingFields{"reason": report.EventBypassed}); err != nil {
		return err
	}
	for _, event := range events.Items {
		about := event.InvolvedObject
		fmt.Fprintf(out, "Warning: %s %s/%s: %s\n", about.Kind, about.Namespace, about.Name, oneLine(event.Message))
	}
	return nil
}

func (s overview) printWorkloads(ctx context.Context, out io.Writer, namespace corev1.Namespace) error {
	updating, err := s.updating(ctx, namespace.Name)
	if err != nil {
		return err
	}
	for _, kind := range observe.Kinds {
		workloads, err := listMeta(ctx, s, kind.Workload, client.InNamespace(namespace.Name))
		if err != nil {
			return err
		}
		for _, each := range workloads {
			mode, decided := string(kind.ModeOf(&namespace, each.Labels)), oneLine(each.Annotations[inplace.AnnotationDecision])
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", namespace.Name, kind.Workload.Name, each.Name,
				cmp.Or(mode, inplace.Native), cmp.Or(updating[each.UID], "-"), cmp.Or(decided, "-"))
		}
	}
	return nil
}

// updating has the UIDs of the workloads with a marked revision.
func (s overview) updating(ctx context.Context, namespace string) (map[types.UID]string, error) {
	found := map[types.UID]string{}
	for _, kind := range observe.Kinds {
		revisions, err := listMeta(ctx, s, kind.Revision, client.InNamespace(namespace), client.HasLabels{inplace.LabelUpdating})
		if err != nil {
			return nil, err
		}
		for _, each := range revisions {
			if owner := metav1.GetControllerOf(&each); owner != nil {
				found[owner.UID] = "in place"
			}
		}
	}
	return found, nil
}
