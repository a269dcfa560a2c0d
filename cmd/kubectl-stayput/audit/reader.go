package audit

import (
	"context"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

// annotationHistory are the earlier numbers of a ReplicaSet that an undo has made the newest again
// (pkg/controller/deployment/util/deployment_util.go).
const annotationHistory = "deployment.kubernetes.io/revision-history"

// Reader reads the rollouts that a cluster remembers.
type Reader struct {
	client.Reader
	// Namespace is the only one to be read; empty for all.
	Namespace string
	// Excluded are namespaces that Stayput never manages.
	Excluded []string
	// Selector chooses workloads by their labels.
	Selector labels.Selector
	// Label is the key by whose values rollouts are counted, too; empty for none.
	Label string
}

// subject is a workload with its history.
type subject struct {
	workload
	history
}

// audit is one audit in progress.
type audit struct {
	Reader
	namespaces map[string]metav1.ObjectMeta
	subjects   map[types.UID]*subject
}

// Audit reads and counts. It holds the templates of all revisions: a few KiB for each rollout.
func (r Reader) Audit(ctx context.Context) (Report, error) {
	a := &audit{Reader: r, namespaces: map[string]metav1.ObjectMeta{}, subjects: map[types.UID]*subject{}}
	for _, read := range []func(context.Context) error{a.readNamespaces, a.readWorkloads, a.readRevisions} {
		if err := read(ctx); err != nil {
			return Report{}, err
		}
	}
	counted := newTally(r.Label)
	for _, each := range a.subjects {
		counted.add(each.workload, each.history)
	}
	return counted.report(), nil
}

// each lists the objects in pages.
func (r Reader) each(ctx context.Context, list func() client.ObjectList, which labels.Selector, do func(object runtime.Object)) error {
	pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		into := list()
		return into, r.List(ctx, into,
			&client.ListOptions{Namespace: r.Namespace, LabelSelector: which, Limit: page.Limit, Continue: page.Continue})
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		do(object)
		return nil
	})
}

// readNamespaces reads the metadata of namespaces. A user who may not read them gets an audit of namespaces without labels.
func (a *audit) readNamespaces(ctx context.Context) error {
	var all corev1.NamespaceList
	var err error
	if a.Namespace == "" {
		err = a.List(ctx, &all)
	} else {
		all.Items = make([]corev1.Namespace, 1)
		err = a.Get(ctx, types.NamespacedName{Name: a.Namespace}, &all.Items[0])
	}
	for _, each := range all.Items {
		a.namespaces[each.Name] = each.ObjectMeta
	}
	return utilerrors.FilterOut(err, apierrors.IsForbidden)
}

func (a *audit) readWorkloads(ctx context.Context) error {
	for _, kind := range observe.Kinds {
		if err := a.each(ctx, kind.Workload.List, a.Selector, func(object runtime.Object) {
			if of, is := object.(apps.Workload); is && !slices.Contains(a.Excluded, of.GetNamespace()) {
				of.SetManagedFields(nil) // they are larger than all that an audit needs
				a.subjects[of.GetUID()] = &subject{workload{kind, of, a.namespaces[of.GetNamespace()]}, history{}}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// readRevisions reads the histories. Where Stayput cannot use the template of a ControllerRevision, nothing is compared with it.
func (a *audit) readRevisions(ctx context.Context) error {
	replicaSets := func() client.ObjectList { return &apps.ReplicaSetList{} }
	if err := a.each(ctx, replicaSets, nil, func(object runtime.Object) {
		if rs, is := object.(*apps.ReplicaSet); is {
			a.remember(rs, rs.Spec.Template, numbersOf(rs)...)
		}
	}); err != nil {
		return err
	}
	controllerRevisions := func() client.ObjectList { return &apps.ControllerRevisionList{} }
	return a.each(ctx, controllerRevisions, nil, func(object runtime.Object) {
		if revision, is := object.(*apps.ControllerRevision); is {
			if template, err := revision.Template(); err == nil {
				a.remember(revision, template, revision.Revision)
			}
		}
	})
}

// numbersOf returns the numbers that a ReplicaSet has and had as a revision.
func numbersOf(rs *apps.ReplicaSet) []int64 {
	var numbers []int64
	for text := range strings.SplitSeq(rs.Annotations[inplace.AnnotationRevision]+","+rs.Annotations[annotationHistory], ",") {
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// remember adds a revision to the history of its workload, if that is audited.
func (a *audit) remember(revision metav1.Object, template apps.Template, numbers ...int64) {
	owner := metav1.GetControllerOf(revision)
	if owner == nil || a.subjects[owner.UID] == nil {
		return
	}
	for _, number := range numbers {
		a.subjects[owner.UID].history[number] = template
	}
}
