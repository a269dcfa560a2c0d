package configuration

import (
	"context"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/configuration"
)

// namespace has the watches of one namespace.
type namespace struct {
	name string
	// ctx ends with the watches.
	ctx       context.Context
	end       context.CancelFunc
	followers map[Follower]bool // under the lock of Sources
	telling   bool              // followers are about to be told of a change; under the lock of Sources

	lock     sync.Mutex
	cache    cache.Cache
	watched  map[schema.GroupVersionKind]cache.Informer
	lookedAt time.Time // when it was last looked for cert-manager, in vain
	// seen is what the watches have seen, until they see more: all followers of the namespace read the same.
	seen *configuration.Namespace
}

func newNamespace(name string) *namespace {
	ctx, end := context.WithCancel(context.Background())
	return &namespace{name: name, ctx: ctx, end: end, followers: map[Follower]bool{}, watched: map[schema.GroupVersionKind]cache.Informer{}}
}

// watch begins the watches that do not run yet.
func (n *namespace) watch(ctx context.Context, of *Sources) error {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.watched[configMaps] == nil {
		if err := n.begin(ctx, of, configMaps); err != nil {
			return err
		}
	}
	if n.watched[certificates] != nil || time.Since(n.lookedAt) < lookForCertificates {
		return nil
	}
	served, err := of.served(certificates)
	if err != nil {
		return err
	}
	if !served {
		n.lookedAt = time.Now()
		return nil
	}
	return n.begin(ctx, of, certificates)
}

// begin begins the watch of a kind.
func (n *namespace) begin(ctx context.Context, of *Sources, kind schema.GroupVersionKind) error {
	if err := of.mayList(ctx, kind, n.name); err != nil {
		return err
	}
	if err := n.start(of); err != nil {
		return err
	}
	informer, err := n.cache.GetInformer(n.ctx, form(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	n.seen = nil
	changed := func() {
		n.forget()
		of.changed(n.name)
	}
	if _, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	}); err != nil {
		return err
	}
	n.watched[kind] = informer
	return nil
}

// start starts the cache, once.
func (n *namespace) start(of *Sources) error {
	if n.cache != nil {
		return nil
	}
	made, err := cache.New(of.config, cache.Options{HTTPClient: of.client, Scheme: of.scheme, Mapper: of.mapper,
		DefaultNamespaces: map[string]cache.Config{n.name: {}}, DefaultTransform: trimmed, ReaderFailOnMissingInformer: true})
	if err != nil {
		return err
	}
	n.cache = made
	go made.Start(n.ctx) //nolint:errcheck // it ends with the context
	return nil
}

// read returns what the watches have seen.
func (n *namespace) read(ctx context.Context) (configuration.Namespace, error) {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.seen != nil {
		return *n.seen, nil
	}
	for _, informer := range n.watched {
		if !informer.HasSynced() {
			return configuration.Namespace{}, errNotYet
		}
	}
	seen := configuration.Namespace{ConfigMaps: map[string]string{}, Certificates: map[string]configuration.Certificate{}}
	found := outlines(configMaps)
	if err := n.cache.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
		return seen, err
	}
	for i := range found.Items {
		seen.ConfigMaps[found.Items[i].Name] = configuration.VersionOf(&found.Items[i])
	}
	if err := n.readCertificates(ctx, seen.Certificates); err != nil {
		return seen, err
	}
	n.seen = &seen
	return seen, nil
}

// forget has the next follower read again what the watches have seen.
func (n *namespace) forget() {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.seen = nil
}

func (n *namespace) readCertificates(ctx context.Context, into map[string]configuration.Certificate) error {
	if n.watched[certificates] == nil {
		return nil
	}
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(listOf(certificates))
	if err := n.cache.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for _, certificate := range found.Items {
		secret, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
		one := configuration.Certificate{Secret: secret}
		if revision, has, _ := unstructured.NestedInt64(certificate.Object, "status", "revision"); has {
			one.Revision = strconv.FormatInt(revision, 10)
		}
		into[certificate.GetName()] = one
	}
	return nil
}

// form returns an object of what is watched of a kind: the metadata of ConfigMaps, and Certificates with spec and status.
func form(kind schema.GroupVersionKind) client.Object {
	if kind == certificates {
		certificate := &unstructured.Unstructured{}
		certificate.SetGroupVersionKind(kind)
		return certificate
	}
	outline := &metav1.PartialObjectMetadata{}
	outline.SetGroupVersionKind(kind)
	return outline
}

// outlines returns an empty list of the metadata of objects of a kind.
func outlines(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(listOf(kind))
	return list
}

func listOf(kind schema.GroupVersionKind) schema.GroupVersionKind {
	return kind.GroupVersion().WithKind(kind.Kind + "List")
}

// trimmed drops what is not read of an object, before it is kept.
func trimmed(object any) (any, error) {
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		o.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
			Annotations: configuration.Trimmed(o.Annotations)}
	case *unstructured.Unstructured:
		for _, path := range [][]string{
			{"metadata", "managedFields"}, {"metadata", "annotations"}, {"metadata", "labels"}, {"status", "conditions"},
		} {
			unstructured.RemoveNestedField(o.Object, path...)
		}
	}
	return object, nil
}
