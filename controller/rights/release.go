package rights

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

const (
	// releaseTimeout bounds Release.
	releaseTimeout = 10 * time.Second
	// authorizedWithin is how long a request waits until all others are authorized. A proxy before the API server may keep
	// this to itself.
	authorizedWithin = 3 * time.Second
)

// Release takes the finalizer off all objects. An object that is being deleted is gone then. Each request needs all
// objects for its own authorization. So no object may be gone before the requests for all others are authorized. An API
// server authorizes a request before it reads the body, and says when it begins to read: "100 Continue". The requests
// ask for that (Expect), and send their bodies when all are authorized.
func (r Rights) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	objects := r.Objects()
	authorized := newBarrier(len(objects))
	failed := make([]error, len(objects))
	var all sync.WaitGroup
	for i, object := range objects {
		all.Go(func() { failed[i] = r.release(ctx, object, authorized) })
	}
	all.Wait()
	return errors.Join(failed...)
}

func (r Rights) release(ctx context.Context, object client.Object, authorized *barrier) error {
	arrive := sync.OnceFunc(authorized.missing.Done)
	defer arrive()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: arrive})
	body := &heldBody{Reader: strings.NewReader(release), until: authorized.all}
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, r.server.JoinPath(pathOf(object)).String(), body)
	if err != nil {
		return err
	}
	request.ContentLength = int64(len(release))
	request.Header.Set("Content-Type", string(types.StrategicMergePatchType))
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Expect", "100-continue")
	response, err := r.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotFound {
		return nil
	}
	answer, err := io.ReadAll(response.Body)
	return errors.Join(err, fmt.Errorf("take finalizer %s off our own %s %s: %s: %s",
		inplace.Finalizer, object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), response.Status, answer))
}

// pathOf returns the object's path in the API.
func pathOf(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind()
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	api, namespace := "api", ""
	if kind.Group != "" {
		api = path.Join("apis", kind.Group)
	}
	if object.GetNamespace() != "" {
		namespace = path.Join("namespaces", object.GetNamespace())
	}
	return path.Join(api, kind.Version, namespace, plural.Resource, object.GetName())
}

// barrier opens when a number of requests have arrived at it.
type barrier struct {
	missing sync.WaitGroup
	all     chan struct{}
}

func newBarrier(requests int) *barrier {
	b := &barrier{all: make(chan struct{})}
	b.missing.Add(requests)
	go func() {
		b.missing.Wait()
		close(b.all)
	}()
	return b
}

// heldBody is a request's body that cannot be read before the barrier opens, or authorizedWithin is over.
type heldBody struct {
	io.Reader
	until <-chan struct{}
}

// Read waits, and then reads.
func (b *heldBody) Read(into []byte) (int, error) {
	select {
	case <-b.until:
	case <-time.After(authorizedWithin):
	}
	return b.Reader.Read(into)
}
