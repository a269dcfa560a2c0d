//go:build e2e && bench

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	crowdPerNode = 5
	// crowdRounds is the number of updates of each way: kube-controller-manager takes minutes for thousands of pods.
	crowdRounds = 3
	// crowdPatience limits each rollout on simulated nodes: kube-controller-manager creates 20 pods a second.
	crowdPatience = 20 * time.Minute
	// fleetLabel is the label of the simulated nodes on which a DaemonSet that is not for all nodes may run.
	fleetLabel = "e2e/fleet"
)

// crowdSizes are the sizes of the Deployments, and fleetSizes those of the DaemonSets. The comparison shows whether the cost of a pod grows
// with them.
var (
	crowdSizes = []int{100, 300, 1000, 3000}
	fleetSizes = []int{200, 1000}
)

// benchCrowd measures Deployments on all simulated nodes, 10 % of their pods at a time. Only one Deployment exists at a time, so that all
// of the managers' processor time is for it.
func benchCrowd(t *testing.T) {
	nodes := simulatedNodes(t)
	for _, pods := range upTo(crowdSizes, nodes*crowdPerNode) {
		t.Run(fmt.Sprint(pods), func(t *testing.T) {
			var all []column
			defer func() { present(t, fmt.Sprintf("Deployment of %d simulated pods", pods), all) }()
			for _, way := range crowdWays {
				t.Run(way.name, func(t *testing.T) {
					c := newCrowd(t, way.labels, "web", pods)
					c.fill(crowded(int32(pods)))
					for round := range roundsOr(t, crowdRounds) {
						c.update(fmt.Sprintf("v%d", round+2))
					}
					all = append(all, column{name: way.name, figures: c.figures()})
				})
			}
		})
	}
}

var crowdWays = []struct {
	name   string
	labels map[string]string
}{{"native", unlabelled}, {"in place", labelled}}

// benchFleet measures DaemonSets on simulated nodes, 10 % of the nodes at a time. The number of held writes matters most here: the
// DaemonSet controller repeats its requests at every event of a pod, and shares its request rate among all DaemonSets. On all nodes both
// ways take turns.
func benchFleet(t *testing.T) {
	nodes := simulatedNodes(t)
	for _, pods := range upTo(fleetSizes, nodes) {
		t.Run(fmt.Sprint(pods), func(t *testing.T) {
			chooseNodes(t, pods)
			sides := []*crowd{newCrowd(t, labelled, agents, pods), newCrowd(t, unlabelled, agents, pods)}
			defer func() {
				present(t, fmt.Sprintf("DaemonSet of %d simulated pods", pods), []column{
					{name: "in place", figures: sides[0].figures()}, {name: "native", figures: sides[1].figures()}})
			}()
			for _, side := range sides {
				side.fill(agent(budget("10%", "0"), chosenOnly))
			}
			for round := range roundsOr(t, crowdRounds) {
				for _, side := range sides {
					side.update(fmt.Sprintf("v%d", round+2))
				}
			}
		})
	}
}

// upTo returns the sizes for which the nodes have capacity. If there is none, it returns the capacity.
func upTo(sizes []int, room int) []int {
	fit := slices.DeleteFunc(slices.Clone(sizes), func(size int) bool { return size > room })
	if len(fit) == 0 {
		return []int{room}
	}
	return fit
}

// crowd is a workload with too many pods to record every event.
type crowd struct {
	*scenario
	name   string
	pods   int
	filled float64 // seconds until all were Ready
	costs  []cost
	memory memory
	used   map[string]float64 // memory of the cluster's components, in MiB
}

func newCrowd(t *testing.T, labels map[string]string, name string, pods int) *crowd {
	t.Helper()
	c := &crowd{scenario: &scenario{T: t, namespace: createNamespace(t, asShipped(labels))}, name: name, pods: pods}
	t.Cleanup(c.clear)
	c.usable()
	return c
}

// fill creates the workload.
func (c *crowd) fill(object any) {
	c.Helper()
	fmt.Printf("%s: %d pods are created\n", c.Name(), c.pods)
	c.filled = c.takes(func() {
		switch of := object.(type) {
		case *appsv1.Deployment:
			c.submit(of)
		case *appsv1.DaemonSet:
			c.submitDaemonSet(of)
		}
	})
}

// update gives the pods an image and records the cost.
func (c *crowd) update(tag string) {
	c.Helper()
	fmt.Printf("%s: %d pods are updated to %s\n", c.Name(), c.pods, tag)
	existing := c.uids()
	before, _ := c.count()
	seconds := c.takes(func() { c.setImage(c.name, "app="+tag) })
	after, memory := c.count()
	created := c.uids()
	maps.DeleteFunc(created, func(uid types.UID, _ bool) bool { return existing[uid] })
	c.costs = append(c.costs, cost{counters: after.since(before).per(float64(c.pods)), seconds: seconds, created: float64(len(created))})
	used, err := componentsUse(c.Context(), "kube-apiserver", "etcd", "kwok")
	if err != nil {
		c.Error(err)
	}
	c.memory, c.used = c.memory.most(memory), used
}

func (c *crowd) figures() []figure {
	median := func(of func(cost) float64) float64 { return quantile(each(c.costs, of), 0.5) }
	figures := []figure{
		{"updates", float64(len(c.costs))},
		{"seconds until all are Ready", c.filled},
		{"seconds until rolled out, p50", median(func(c cost) float64 { return c.seconds })},
		{"seconds until rolled out, max", quantile(each(c.costs, func(c cost) float64 { return c.seconds }), 1)},
		{"pods created", median(func(c cost) float64 { return c.created })},
	}
	counted := counterFigures(c.costs, func(c cost) counters { return c.counters })
	figures = slices.Concat(figures, counted, c.memory.figures())
	for _, name := range slices.Sorted(maps.Keys(c.used)) {
		figures = append(figures, figure{"MiB of " + name, c.used[name]})
	}
	return figures
}

// takes returns the seconds from an edit until `kubectl rollout status` reports success.
func (c *crowd) takes(edit func()) float64 {
	c.Helper()
	from := time.Now()
	edit()
	c.rollout("status", c.name, "--timeout="+crowdPatience.String())
	return time.Since(from).Seconds()
}

func (c *crowd) uids() map[types.UID]bool {
	c.Helper()
	pods, err := clients.CoreV1().Pods(c.namespace).List(c.Context(), metav1.ListOptions{LabelSelector: "!" + prePullLabel})
	if err != nil {
		c.Fatal(err)
	}
	uids := map[types.UID]bool{}
	for _, pod := range pods.Items {
		uids[pod.UID] = true
	}
	return uids
}

// clear deletes the namespace and waits until its pods are gone, because their deletion would slow down the next measurement.
func (c *crowd) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), crowdPatience)
	defer cancel()
	if _, _, err := kubectl(ctx, "", "delete", "namespace", c.namespace, "--timeout="+crowdPatience.String()); err != nil {
		c.Error(err)
	}
}

// simulatedNodes returns how many simulated nodes the caller of make asked for, if the cluster has them.
func simulatedNodes(t *testing.T) int {
	t.Helper()
	asked := os.Getenv("SIMULATED_NODES")
	if asked == "" || asked == "0" {
		t.Skip("SIMULATED_NODES asks for none")
	}
	nodes, err := strconv.Atoi(asked)
	if err != nil || nodes < 0 {
		t.Fatalf("SIMULATED_NODES=%s is not a number of nodes", asked)
	}
	if found := len(simulated(t)); found < nodes {
		t.Fatalf("the cluster has %d simulated nodes: make cluster SIMULATED_NODES=%d adds the others", found, nodes)
	}
	return nodes
}

func simulated(t *testing.T) []corev1.Node {
	t.Helper()
	found, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type=simulated"})
	if err != nil {
		t.Fatal(err)
	}
	return found.Items
}

// chooseNodes labels so many simulated nodes, and removes the labels when the test ends.
func chooseNodes(t *testing.T, count int) {
	t.Helper()
	chosen := simulated(t)[:count]
	label := func(ctx context.Context, value string) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, fleetLabel, value)
		for _, node := range chosen {
			if _, err := clients.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(func() { label(context.Background(), "null") })
	label(t.Context(), `"true"`)
}

// crowded returns a Deployment whose pods only run on simulated nodes: see cluster/simulated/node.yaml.
func crowded(replicas int32) *appsv1.Deployment {
	d := web(replicas, rolling("10%", "25%"))
	onSimulated(&d.Spec.Template.Spec)
	return d
}

// chosenOnly lets the DaemonSet run on the chosen nodes and no others.
func chosenOnly(ds *appsv1.DaemonSet) {
	onSimulated(&ds.Spec.Template.Spec)
	ds.Spec.Template.Spec.NodeSelector[fleetLabel] = "true"
}

// simulatedOnly is onSimulated as an option.
func simulatedOnly(d *appsv1.Deployment) { onSimulated(&d.Spec.Template.Spec) }

// onSimulated lets pods run on simulated nodes and no others.
func onSimulated(spec *corev1.PodSpec) {
	spec.NodeSelector = map[string]string{"type": "simulated"}
	spec.Tolerations = []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Value: "fake", Effect: corev1.TaintEffectNoSchedule}}
}
