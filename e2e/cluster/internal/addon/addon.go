// Package addon is the part of the launcher that uses the Kubernetes API: it creates the initial objects of a cluster, and waits until the
// cluster is ready for use.
package addon

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

//go:embed addons.yaml
var addons []byte

// Cluster is a client of the cluster.
type Cluster struct{ client dynamic.Interface }

// Connect makes a client from a kubeconfig. It sends no request.
func Connect(kubeconfig string) (Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Cluster{}, err
	}
	config.QPS = -1 // no other client exists yet
	client, err := dynamic.NewForConfig(config)
	return Cluster{client}, err
}

// CreateAddons creates the objects of addons.yaml that do not exist.
func (c Cluster) CreateAddons(ctx context.Context) error {
	return c.createAll(ctx, bytes.NewReader(addons))
}

// CreateDefinitions creates the CustomResourceDefinitions of the files of directory that do not exist, and waits until they are served.
func (c Cluster) CreateDefinitions(ctx context.Context, directory string) error {
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no CustomResourceDefinitions in %s: run make cluster, which puts them there", directory)
	}
	group, creating := errgroup.WithContext(ctx)
	for _, file := range files {
		group.Go(func() error { return c.createFile(creating, file) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return c.awaitDefinitions(ctx)
}

func (c Cluster) createFile(ctx context.Context, file string) error {
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	return c.createAll(ctx, content)
}

func (c Cluster) createAll(ctx context.Context, manifests io.Reader) error {
	decoder := yaml.NewYAMLOrJSONDecoder(manifests, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(object.Object) == 0 { // only comments
			continue
		}
		if err := c.create(ctx, object); err != nil {
			return err
		}
	}
}

// create does not change an object that exists, because a user may have changed it. It looks first, because creating a Service with a fixed
// address that is already its own is refused as invalid.
func (c Cluster) create(ctx context.Context, object *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	objects := c.client.Resource(resource).Namespace(object.GetNamespace())
	_, err := objects.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = objects.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

var (
	definitions     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

func (c Cluster) awaitDefinitions(ctx context.Context) error {
	return await(ctx, func() error {
		list, err := c.client.Resource(definitions).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, definition := range list.Items {
			if !hasCondition(definition, "Established") {
				return fmt.Errorf("%s is not served yet", definition.GetName())
			}
		}
		return nil
	})
}

// AwaitUsable returns once the nodes are Ready and a pod can be created, which needs a service account in its namespace.
func (c Cluster) AwaitUsable(ctx context.Context, names []string) error {
	return await(ctx, func() error {
		for _, name := range names {
			node, err := c.client.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !hasCondition(*node, "Ready") {
				return fmt.Errorf("%s is not Ready", name)
			}
		}
		_, err := c.client.Resource(serviceAccounts).Namespace("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// await repeats check until it succeeds or ctx ends, and then returns the last error.
func await(ctx context.Context, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func hasCondition(object unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] == kind {
			return condition["status"] == "True"
		}
	}
	return false
}
