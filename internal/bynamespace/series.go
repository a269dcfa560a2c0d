package bynamespace

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Label is the label that has the namespace of a workload. Its name is not namespace: under that name Prometheus usually puts the namespace
// of the pod that it scrapes.
const Label = "workload_namespace"

// Elsewhere is the value of Label for what happens in a namespace that is not labelled, or not yet known, or no longer.
const Elsewhere = ""

// Vector has one series for each combination of labels; Label is one of these.
type Vector interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// Series has the series of some metrics, by namespace.
type Series struct {
	vectors []Vector
	begin   func(namespace string)

	lock     sync.Mutex
	labelled sets.Set[string]
	begun    bool
}

// New returns Series of the vectors. Begin creates the series that a namespace has from the start; it may be nil.
func New(begin func(namespace string), vectors ...Vector) *Series {
	return &Series{vectors: vectors, begin: begin, labelled: sets.New[string]()}
}

// In returns the value of Label for what happens in a namespace.
func (s *Series) In(namespace string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.labelled.Has(namespace) {
		return Elsewhere
	}
	return namespace
}

// Begin creates the series that namespaces have from the start, now and for each namespace that gets its label later. Prometheus does not
// see an increase in a series that begins with its first value.
func (s *Series) Begin() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.begun = true
	for namespace := range s.labelled {
		s.begin(namespace)
	}
}

// Begun returns the namespaces that have series from the start.
func (s *Series) Begun() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.begun {
		return nil
	}
	return s.labelled.UnsortedList()
}

// Follow adds and removes namespaces as their labels change.
func (s *Series) Follow(ctx context.Context, informers cache.Informers, manages func(*corev1.Namespace) bool) error {
	informer, err := informers.GetInformer(ctx, &corev1.Namespace{}, cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(s.handler(manages))
	}
	if err != nil {
		return fmt.Errorf("watch namespaces for metrics: %w", err)
	}
	return nil
}

func (s *Series) handler(manages func(*corev1.Namespace) bool) toolscache.ResourceEventHandler {
	return toolscache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool {
			namespace := namespaceOf(object)
			return namespace != nil && manages(namespace)
		},
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { s.Add(namespaceOf(object).Name) },
			DeleteFunc: func(object any) { s.Remove(namespaceOf(object).Name) },
		},
	}
}

// namespaceOf returns the namespace of an event. An informer that missed a deletion has the last known state.
func namespaceOf(object any) *corev1.Namespace {
	if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	namespace, _ := object.(*corev1.Namespace)
	return namespace
}

// Add gives a namespace series of its own.
func (s *Series) Add(namespace string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.labelled.Insert(namespace)
	if s.begun {
		s.begin(namespace)
	}
}

// Remove deletes all series of a namespace.
func (s *Series) Remove(namespace string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.labelled.Delete(namespace)
	for _, vector := range s.vectors {
		vector.DeletePartialMatch(prometheus.Labels{Label: namespace})
	}
}
