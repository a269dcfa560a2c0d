package configuration

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stayput/stayput/inplace/configuration"
)

// Follower is a workload that follows sources of its namespace.
type Follower struct {
	Kind string
	types.NamespacedName
}

// Sources has the ConfigMaps and Certificates of the namespaces in which workloads follow any.
type Sources struct {
	config *rest.Config
	client *http.Client
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	live   client.Reader

	lock       sync.Mutex
	namespaces map[string]*namespace
	queues     map[string]func(types.NamespacedName) // by the kind of workload
}

// NewSources returns Sources that watch nothing yet. When the manager ends, so do their watches.
func NewSources(m manager.Manager) (*Sources, error) {
	s := &Sources{config: m.GetConfig(), client: m.GetHTTPClient(), scheme: m.GetScheme(), mapper: m.GetRESTMapper(), live: m.GetAPIReader(),
		namespaces: map[string]*namespace{}, queues: map[string]func(types.NamespacedName){}}
	return s, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		s.end()
		return nil
	}))
}

// Of returns a source of requests for the workloads of a kind: when anything changes in a namespace, for all that follow anything there.
func (s *Sources) Of(kind string) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.queues[kind] = func(workload types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: workload}) }
		return nil
	})
}

// Read returns the sources of the workload's namespace, and watches them from now on. The error is errNotYet as long as not all are known.
func (s *Sources) Read(ctx context.Context, by Follower) (configuration.Namespace, error) {
	there := s.namespaceOf(by)
	if err := there.watch(ctx, s); err != nil {
		return configuration.Namespace{}, err
	}
	return there.read(ctx)
}

func (s *Sources) namespaceOf(by Follower) *namespace {
	s.lock.Lock()
	defer s.lock.Unlock()
	there := s.namespaces[by.Namespace]
	if there == nil {
		there = newNamespace(by.Namespace)
		s.namespaces[by.Namespace] = there
	}
	there.followers[by] = true
	return there
}

// Leave ends the watches in the workload's namespace if no other workload follows anything there.
func (s *Sources) Leave(by Follower) {
	s.lock.Lock()
	defer s.lock.Unlock()
	there := s.namespaces[by.Namespace]
	if there == nil {
		return
	}
	if delete(there.followers, by); len(there.followers) == 0 {
		there.end()
		delete(s.namespaces, by.Namespace)
	}
}

// gather is after what time followers are told of a change, and of all that has changed by then: there may be many of both. Nothing
// restarts within five seconds of a change.
const gather = time.Second

// changed soon enqueues what follows anything in the namespace.
func (s *Sources) changed(in string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	there := s.namespaces[in]
	if there == nil || there.telling {
		return
	}
	there.telling = true
	time.AfterFunc(gather, func() { s.tell(there) })
}

// tell enqueues what follows anything in the namespace.
func (s *Sources) tell(there *namespace) {
	s.lock.Lock()
	defer s.lock.Unlock()
	there.telling = false
	for by := range there.followers {
		if add := s.queues[by.Kind]; add != nil {
			add(by.NamespacedName)
		}
	}
}

func (s *Sources) end() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, there := range s.namespaces {
		there.end()
	}
}

// The kinds of sources.
var (
	configMaps   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	certificates = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
)

// served reports whether the API server serves the kind.
func (s *Sources) served(kind schema.GroupVersionKind) (bool, error) {
	_, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// mayList returns why the kind cannot be watched in a namespace; nil if it can. A watch itself would only try again and again.
func (s *Sources) mayList(ctx context.Context, kind schema.GroupVersionKind, in string) error {
	one := outlines(kind)
	if err := s.live.List(ctx, one, client.InNamespace(in), client.Limit(1)); err != nil {
		return fmt.Errorf("changes of configuration cannot be seen: %w; see docs/how-to/configuration-reload.md for the rights", err)
	}
	return nil
}

// lookForCertificates is how often it is looked for cert-manager where it was missing.
const lookForCertificates = 5 * time.Minute
