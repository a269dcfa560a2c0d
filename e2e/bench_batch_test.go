//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	batchNamespaces = 5
	editsAtOnce     = 10
	batchLabel      = "e2e/batch"
)

// batch is many Deployments of simulated pods that are edited at once. They are in several namespaces.
type batch struct {
	*scenario
	replicas int32
	options  []option
	homes    []string // the namespace of each Deployment
	seen     *lookout
}

// newBatch makes the namespaces, which the Deployments get in turns, and watches them.
func newBatch(t *testing.T, labels map[string]string, count int, replicas int32, options ...option) *batch {
	t.Helper()
	b := &batch{replicas: replicas, options: options, homes: make([]string, count), seen: newLookout()}
	namespaces := make([]string, min(count, batchNamespaces))
	for i := range namespaces {
		b.scenario = newCrowd(t, labels, "", b.size()).scenario
		namespaces[i] = b.namespace
	}
	for i := range b.homes {
		b.homes[i] = namespaces[i%len(namespaces)]
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	for resource, client := range map[string]cache.Getter{
		"deployments": clients.AppsV1().RESTClient(), "pods": clients.CoreV1().RESTClient(),
	} {
		list := cache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll, func(options *metav1.ListOptions) {
			options.LabelSelector = batchLabel + "=" + b.namespace
		})
		if err := follow(ctx, list, b.see); err != nil {
			t.Fatalf("watching %s: %v", resource, err)
		}
	}
	return b
}

func (b *batch) size() int { return len(b.homes) * int(b.replicas) }

func (b *batch) see(received watch.Event) {
	object, ok := received.Object.(metav1.Object)
	switch {
	case received.Type == watch.Bookmark:
	case ok:
		b.seen.take(event{at: time.Now(), what: received.Type, object: object})
	default:
		b.Errorf("a watch broke: %v", received.Object)
	}
}

// fill creates the Deployments, and waits until all are rolled out.
func (b *batch) fill() {
	b.Helper()
	fmt.Printf("%s: %d pods are created\n", b.Name(), b.size())
	b.await(b.each(func(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
		return clients.AppsV1().Deployments(namespace).Create(ctx, b.deployment(name), metav1.CreateOptions{})
	}))
}

func (b *batch) deployment(name string) *appsv1.Deployment {
	d := web(b.replicas, append([]option{named(name), setting(batchLabel, b.namespace)}, b.options...)...)
	d.Spec.Template.Labels[batchLabel] = b.namespace
	onSimulated(&d.Spec.Template.Spec)
	return d
}

// expose creates a Service for each Deployment, and waits until all pods are endpoints.
func (b *batch) expose() {
	b.Helper()
	for i, home := range b.homes {
		in := &scenario{T: b.T, namespace: home}
		in.service(fmt.Sprintf("web-%d", i), corev1.ServiceInternalTrafficPolicyCluster)
	}
	for _, home := range slices.Compact(slices.Sorted(slices.Values(b.homes))) {
		b.within(crowdPatience, "all pods to be endpoints", func(ctx context.Context) error { return b.endpointsIn(ctx, home) })
	}
}

// endpointsIn returns nil if as many pods are endpoints as the Deployments of the namespace have.
func (b *batch) endpointsIn(ctx context.Context, namespace string) error {
	listed, err := clients.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready, want := 0, 0
	for _, slice := range listed.Items {
		ready += len(slice.Endpoints)
	}
	for _, home := range b.homes {
		if home == namespace {
			want += int(b.replicas)
		}
	}
	if ready < want {
		return fmt.Errorf("%d of %d are in %s", ready, want, namespace)
	}
	return nil
}

// patchAll makes the same edit of each Deployment.
func (b *batch) patchAll(patch []byte) []edited {
	b.Helper()
	return b.each(func(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
		return clients.AppsV1().Deployments(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	})
}

// each makes a request about each Deployment, some at a time.
func (b *batch) each(request func(ctx context.Context, namespace, name string) (*appsv1.Deployment, error)) []edited {
	b.Helper()
	edits := make([]edited, len(b.homes))
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(editsAtOnce)
	for i, home := range b.homes {
		group.Go(func() error {
			from := time.Now()
			d, err := request(ctx, home, fmt.Sprintf("web-%d", i))
			edits[i] = edited{d.GetUID(), d.GetGeneration(), from}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return edits
}

// await waits until the edits are rolled out.
func (b *batch) await(edits []edited) {
	b.Helper()
	b.within(crowdPatience, "all Deployments to be rolled out", func(context.Context) error {
		if _, missing := b.seen.waits(edits); missing > 0 {
			return fmt.Errorf("%d of %d are not", missing, len(edits))
		}
		return nil
	})
}

// lastOf returns when the last edit was rolled out.
func lastOf(edits []edited, waits []float64) time.Time {
	var last time.Time
	for i, e := range edits {
		if at := e.at.Add(time.Duration(waits[i] * float64(time.Second))); at.After(last) {
			last = at
		}
	}
	return last
}
