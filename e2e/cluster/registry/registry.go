// Package registry is the cluster's image registry: it runs in the launcher's process, starts with the test images
// and takes pushes over plain HTTP.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Serve serves a registry at address (host:port), in memory, until ctx ends. The keys of images are their names and tags, for example
// "app:v1". It has all of them before it answers.
func Serve(ctx context.Context, address string, images map[string]v1.Image) error {
	handler := registry.New()
	if err := fill(handler, address, images); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	return serve(ctx, listener, handler)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("registry: %w", err)
	}
	return nil
}

// Push stores image as reference, for example "127.0.0.1:5000/app:v1", over plain HTTP.
func Push(reference string, image v1.Image) error {
	return push(reference, image, http.DefaultTransport)
}

// fill pushes images to handler directly, before it is reachable over the network.
func fill(handler http.Handler, address string, images map[string]v1.Image) error {
	for tag, image := range images {
		if err := push(address+"/"+tag, image, direct{handler}); err != nil {
			return err
		}
	}
	return nil
}

func push(reference string, image v1.Image, transport http.RoundTripper) error {
	parsed, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		return err
	}
	if err := remote.Write(parsed, image, remote.WithTransport(transport)); err != nil {
		return fmt.Errorf("push %s: %w", reference, err)
	}
	return nil
}

// direct passes requests to a handler without a network.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil {
		request.Body = http.NoBody
	}
	defer request.Body.Close()
	recorder := httptest.NewRecorder()
	d.handler.ServeHTTP(recorder, request)
	response := recorder.Result()
	response.Request = request
	return response, nil
}
