package addon

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// writers is how many nodes are created at the same time. An API server on two cores handles about as many well.
const writers = 16

// SimulateNodes creates those of the nodes simulated-1 to simulated-count that do not exist, from the Node in template, and waits until
// they are Ready.
func (c Cluster) SimulateNodes(ctx context.Context, template string, count int) error {
	content, err := os.ReadFile(template)
	if err != nil {
		return err
	}
	node := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &node.Object); err != nil {
		return fmt.Errorf("%s: %w", template, err)
	}
	if err := c.createNodes(ctx, node, count); err != nil {
		return err
	}
	return c.awaitSimulated(ctx, count)
}

func (c Cluster) createNodes(ctx context.Context, template *unstructured.Unstructured, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range count {
		group.Go(func() error {
			node := template.DeepCopy()
			node.SetName(fmt.Sprintf("simulated-%d", i+1))
			return c.create(ctx, node)
		})
	}
	return group.Wait()
}

func (c Cluster) awaitSimulated(ctx context.Context, count int) error {
	return await(ctx, func() error {
		list, err := c.client.Resource(nodes).List(ctx, metav1.ListOptions{LabelSelector: "type=simulated", ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := 0
		for _, node := range list.Items {
			if hasCondition(node, "Ready") {
				ready++
			}
		}
		if ready < count {
			return fmt.Errorf("%d of %d simulated nodes are Ready", ready, count)
		}
		return nil
	})
}
