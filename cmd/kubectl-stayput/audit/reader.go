package audit

import (
	"context"
	"maps"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

// pageSize is how many objects an answer of the API server has at most. One more page is read while the audit works on one.
const pageSize = 100

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
	// Progress is told how many of all revisions have been read.
	Progress func(read, all int)
}

// subject is a workload with as much of its history as has been read.
type subject struct {
	workload
	history
	// unread is how many of its revisions have not been read. The metadata is read before: so a workload's templates are dropped as soon
	// as all of them are there, in whatever order the API server sends them.
	unread int
}

// audit is one audit in progress.
type audit struct {
	Reader
	tally      *tally
	namespaces map[string]metadata
	subjects   map[types.UID]*subject
	events     troublesByName
	// complete are the workloads whose history has been read.
	complete  chan *subject
	read, all int
}

// Audit reads and counts. It holds the templates of those workloads of which some revisions have been read and others have not.
func (r Reader) Audit(ctx context.Context) (Report, error) {
	a := newAudit(r)
	err := a.run(ctx)
	return a.tally.report(), err
}

// metadata are the labels and annotations of a namespace.
type metadata struct{ labels, annotations map[string]string }

func newAudit(r Reader) *audit {
	return &audit{Reader: r, tally: newTally(r.Label), subjects: map[types.UID]*subject{}, complete: make(chan *subject),
		namespaces: map[string]metadata{}, events: troublesByName{}}
}

// run compares on all processors while it reads on: with many workloads, comparing takes longer.
func (a *audit) run(ctx context.Context) error {
	var counting sync.WaitGroup
	for range goruntime.GOMAXPROCS(0) {
		counting.Go(func() {
			for each := range a.complete {
				a.tally.add(each.workload, each.history)
			}
		})
	}
	err := a.readAll(ctx)
	close(a.complete)
	counting.Wait()
	return err
}

func (a *audit) readAll(ctx context.Context) error {
	for _, read := range []func(context.Context) error{a.readNamespaces, a.readEvents, a.readWorkloads, a.countRevisions, a.readRevisions} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	for _, each := range a.subjects { // without a history, or a revision was deleted meanwhile
		a.complete <- each
	}
	return nil
}

// each lists the objects in pages. Which has the selectors of the list.
func (r Reader) each(ctx context.Context, list func() client.ObjectList, which client.ListOptions, do func(object runtime.Object)) error {
	pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		into := list()
		which.Namespace, which.Limit, which.Continue = r.Namespace, page.Limit, page.Continue
		return into, r.List(ctx, into, &which)
	})
	pages.PageSize, pages.PageBufferSize = pageSize, 0
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		do(object)
		return nil
	})
}

// eachMeta lists the metadata of objects of that kind.
func (r Reader) eachMeta(ctx context.Context, kind schema.GroupVersionKind, do func(of *metav1.PartialObjectMetadata)) error {
	list := func() client.ObjectList {
		metadata := &metav1.PartialObjectMetadataList{}
		metadata.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return metadata
	}
	return r.each(ctx, list, client.ListOptions{}, func(object runtime.Object) {
		if metadata, is := object.(*metav1.PartialObjectMetadata); is {
			do(metadata)
		}
	})
}

// readNamespaces reads the metadata of namespaces. A user who may not read them gets an audit of namespaces without labels.
func (a *audit) readNamespaces(ctx context.Context) error {
	kind := corev1.SchemeGroupVersion.WithKind("Namespace")
	var err error
	if a.Namespace == "" {
		err = a.eachMeta(ctx, kind, func(of *metav1.PartialObjectMetadata) { a.namespaces[of.Name] = metadata{of.Labels, of.Annotations} })
	} else {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(kind)
		err = a.Get(ctx, types.NamespacedName{Name: a.Namespace}, namespace)
		a.namespaces[a.Namespace] = metadata{namespace.Labels, namespace.Annotations}
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

func (a *audit) readWorkloads(ctx context.Context) error {
	for _, kind := range observe.Kinds {
		if err := a.each(ctx, kind.Workload.List, client.ListOptions{LabelSelector: a.Selector}, func(object runtime.Object) {
			if of, is := object.(apps.Workload); is {
				a.add(kind, of)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// keep drops what is not kept of a workload. Its own annotations may be as large as its template.
func keep(of apps.Workload) {
	*of.PodTemplate() = apps.Template{}
	of.SetManagedFields(nil)
	annotations := map[string]string{}
	for _, setting := range inplace.Annotations {
		if value, has := of.GetAnnotations()[setting.Key]; has {
			annotations[setting.Key] = value
		}
	}
	of.SetAnnotations(annotations)
}

func (a *audit) add(kind observe.Kind, of apps.Workload) {
	if slices.Contains(a.Excluded, of.GetNamespace()) {
		return
	}
	keep(of)
	met := deadlineOf(of)
	if kind.Of != nil { // it creates pods itself
		maps.Copy(met, a.events[client.ObjectKeyFromObject(of)])
	}
	a.subjects[of.GetUID()] = &subject{history: history{}, workload: workload{met: met,
		kind: kind, namespace: of.GetNamespace(), name: of.GetName(), object: of,
		within: a.namespaces[of.GetNamespace()], labels: of.GetLabels(), annotations: of.GetAnnotations()}}
}

// revisionKinds are the kinds of objects that hold revisions.
var revisionKinds = []schema.GroupVersionKind{apps.KindOf(&apps.ReplicaSet{}), apps.KindOf(&apps.ControllerRevision{})}

// countRevisions counts the revisions of each workload.
func (a *audit) countRevisions(ctx context.Context) error {
	for _, kind := range revisionKinds {
		err := a.eachMeta(ctx, kind, func(of *metav1.PartialObjectMetadata) {
			if a.all++; a.of(of) != nil {
				a.of(of).unread++
				maps.Copy(a.of(of).met, a.events[client.ObjectKeyFromObject(of)])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// of returns the workload to which the revision belongs; nil if it is not audited.
func (a *audit) of(revision metav1.Object) *subject {
	if owner := metav1.GetControllerOf(revision); owner != nil {
		return a.subjects[owner.UID]
	}
	return nil
}

func (a *audit) readRevisions(ctx context.Context) error {
	replicaSets := func() client.ObjectList { return &apps.ReplicaSetList{} }
	if err := a.each(ctx, replicaSets, client.ListOptions{}, func(object runtime.Object) {
		if rs, is := object.(*apps.ReplicaSet); is {
			a.remember(rs, rs.Spec.Template, numbersOf(rs)...)
		}
	}); err != nil {
		return err
	}
	controllerRevisions := func() client.ObjectList { return &apps.ControllerRevisionList{} }
	return a.each(ctx, controllerRevisions, client.ListOptions{}, func(object runtime.Object) {
		if revision, is := object.(*apps.ControllerRevision); is {
			a.rememberData(revision)
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

// rememberData adds a revision whose template is in its data. Where Stayput cannot use the template, the revision has no number, so
// nothing is compared with it.
func (a *audit) rememberData(revision *apps.ControllerRevision) {
	template, err := revision.Template()
	if err != nil {
		a.remember(revision, template)
		return
	}
	a.remember(revision, template, revision.Revision)
}

// remember adds a revision to the history of its workload. If it is the last one, it has the rollouts counted and drops them.
func (a *audit) remember(revision metav1.Object, template apps.Template, numbers ...int64) {
	a.read++
	a.Progress(a.read, a.all)
	of := a.of(revision)
	if of == nil {
		return
	}
	for _, number := range numbers {
		of.history[number] = template
	}
	if of.unread--; of.unread <= 0 {
		a.complete <- of
		delete(a.subjects, metav1.GetControllerOf(revision).UID)
	}
}
