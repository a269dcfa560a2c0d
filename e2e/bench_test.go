//go:build e2e && bench

package e2e

import (
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/watch"
)

const (
	benchPods   = 20
	benchRounds = 3 // of two updates, there and back

	crowdPerNode = 5
	// crowdPatience bounds each rollout on simulated nodes: kube-controller-manager creates 20 pods a second.
	crowdPatience = 20 * time.Minute
)

// TestBench measures the same edits in a labelled and in an unlabelled namespace and prints what they cost. It demands only that
// they end, and that the promises judged in every stage are kept.
func TestBench(t *testing.T) {
	t.Run("pods", benchReal)
	t.Run("crowd", benchSimulated)
	t.Run("fleet", benchFleet)
	t.Run("serving", benchServing)
	t.Run("gate", benchGate)
	t.Run("cold image", benchCold)
}

// benchReal takes turns, so that whatever slows the machine down slows both sides.
func benchReal(t *testing.T) {
	marked, plain := &side{stage: newStage(t, asShipped(labelled))}, &side{stage: newStage(t, unlabelled)}
	defer func() {
		title := fmt.Sprintf("%d pods, maxSurge and maxUnavailable 25 %%", benchPods)
		fmt.Println(table(title, marked.figures(), plain.figures()))
	}()
	for round := range benchRounds {
		for _, side := range []*side{marked, plain} {
			side.begin()
		}
		for _, tag := range []string{"v2", "v1"} {
			fmt.Printf("round %d of %d: %d pods to %s\n", round+1, benchRounds, benchPods, tag)
			marked.update(tag)
			plain.update(tag)
		}
		for _, side := range []*side{marked, plain} {
			side.end()
		}
	}
}

// side is one of the two that are compared: a namespace with a Deployment, and what has been measured there.
type side struct {
	*stage
	delays   []float64
	costs    []cost
	resident float64 // memory of the managers in the end, in MiB
}

// begin creates the Deployment. Each round has pods of its own, as the kubelet delays a container that comes back to an image for
// the second time: its crash back-off remembers images for ten minutes.
func (s *side) begin() {
	s.Helper()
	from := time.Now()
	s.create(web(benchPods))
	s.delays = append(s.delays, gateDelays(s.since(from))...)
}

// end deletes the Deployment and waits until its pods are gone.
func (s *side) end() {
	s.Helper()
	s.kubectl("", "delete", "deployment", "web", "--cascade=foreground", "--timeout="+patience.String())
}

// since are the events that have arrived from a moment on, but for those of pullers.
func (s *stage) since(moment time.Time) []event {
	return slices.DeleteFunc(s.recorder.inOrder(), func(e event) bool {
		pod, ok := e.object.(*corev1.Pod)
		return e.at.Before(moment) || ok && pulls(pod)
	})
}

// cost is what one update cost.
type cost struct {
	counters
	seconds  float64   // until `kubectl rollout status` says success
	created  float64   // pods
	notReady []float64 // seconds, of each pod
}

// update gives the pods an image and notes what that cost.
func (s *side) update(tag string) {
	s.Helper()
	before, _ := s.count()
	from := time.Now()
	s.setImage("web", "app="+tag)
	s.rollout("status", "web", "--timeout="+patience.String())
	seconds := time.Since(from).Seconds()
	s.completes("web")
	after, resident := s.count()
	happened := s.since(from)
	s.resident = resident
	s.costs = append(s.costs, cost{
		counters: after.since(before),
		seconds:  seconds,
		created:  births(happened),
		notReady: notReady(happened),
	})
}

// count reads the counters when nothing has been written for a second, so that each write is counted where it belongs.
func (s *side) count() (now counters, resident float64) {
	s.Helper()
	var since time.Time
	s.eventually("a cluster to which nobody else writes", func(ctx context.Context) error {
		read, err := apiWrites(ctx)
		if err != nil {
			return err
		}
		if read != now {
			now, since = read, time.Now()
		}
		if time.Since(since) < time.Second {
			return errors.New("writes were counted less than a second ago")
		}
		return nil
	})
	own := managersUse(s.Context())
	now.held, now.cpu = own.held, own.cpu
	return now, own.memory
}

// figures are all that was measured; writes are those for each pod.
func (s *side) figures() []figure {
	var seconds, notReady []float64
	for _, c := range s.costs {
		seconds, notReady = append(seconds, c.seconds), append(notReady, c.notReady...)
	}
	return []figure{
		{"seconds until rolled out, p50", quantile(seconds, 0.5)},
		{"seconds until rolled out, max", quantile(seconds, 1)},
		{"pods created", mean(s.costs, func(c cost) float64 { return c.created })},
		{"seconds a pod is not Ready, p50", quantile(notReady, 0.5)},
		{"seconds a pod is not Ready, max", quantile(notReady, 1)},
		{"API writes per pod, without events", mean(s.costs, func(c cost) float64 { return c.writes / benchPods })},
		{"API writes per pod, with events", mean(s.costs, func(c cost) float64 { return (c.writes + c.events) / benchPods })},
		{"native writes held per pod", mean(s.costs, func(c cost) float64 { return c.held / benchPods })},
		{"CPU seconds of the managers", mean(s.costs, func(c cost) float64 { return c.cpu })},
		{"MiB of the managers, together", s.resident},
		{"new pod: containers ready to Ready, s, p50", quantile(s.delays, 0.5)},
		{"new pod: containers ready to Ready, s, max", quantile(s.delays, 1)},
	}
}

// gateDelays is how long after its containers each pod became Ready, in seconds. The conditions' own times are whole seconds, so
// it is the arrival of the events that counts.
func gateDelays(events []event) []float64 {
	running, delays := map[types.UID]time.Time{}, map[types.UID]float64{}
	for _, e := range events {
		pod, ok := e.object.(*corev1.Pod)
		if !ok {
			continue
		}
		containers := conditionOf(pod, corev1.ContainersReady)
		if _, known := running[pod.UID]; !known && containers != nil && containers.Status == corev1.ConditionTrue {
			running[pod.UID] = e.at
		}
		if _, known := delays[pod.UID]; !known && ready(pod) {
			delays[pod.UID] = e.at.Sub(running[pod.UID]).Seconds()
		}
	}
	return slices.Collect(maps.Values(delays))
}

func births(events []event) float64 {
	count := 0
	for _, e := range events {
		if _, pod := e.object.(*corev1.Pod); pod && e.what == watch.Added {
			count++
		}
	}
	return float64(count)
}

// notReady is how long each pod was there and not Ready, in seconds: natively from its birth on. Terminating pods, which only the
// native rollout has, are not counted.
func notReady(events []event) []float64 {
	since, total := map[types.UID]time.Time{}, map[types.UID]float64{}
	for _, e := range events {
		pod, ok := e.object.(*corev1.Pod)
		if !ok {
			continue
		}
		began, missing := since[pod.UID]
		switch misses := e.what != watch.Deleted && alive(pod) && !ready(pod); {
		case misses && !missing:
			since[pod.UID] = e.at
		case !misses && missing:
			total[pod.UID] += e.at.Sub(began).Seconds()
			delete(since, pod.UID)
		}
	}
	return slices.Collect(maps.Values(total))
}

// benchSimulated measures one Deployment all over the simulated nodes. The sides come one after the other: the API server keeps the
// memory it has once taken, so that what it uses natively is at least what it used before.
func benchSimulated(t *testing.T) {
	nodes := simulatedNodes(t)
	replicas := int32(nodes * crowdPerNode)
	var marked, plain []figure
	defer func() {
		fmt.Println(table(fmt.Sprintf("%d pods on %d nodes, maxUnavailable 10 %%", replicas, nodes), marked, plain))
	}()
	t.Run("in place", func(t *testing.T) { crowd(t, labelled, replicas, &marked) })
	t.Run("native", func(t *testing.T) { crowd(t, unlabelled, replicas, &plain) })
}

// simulatedNodes is how many were asked for, if the cluster has them.
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
	found, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "type=simulated"})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Items) < nodes {
		t.Fatalf("the cluster has %d simulated nodes: make cluster SIMULATED_NODES=%d adds the others", len(found.Items), nodes)
	}
	return nodes
}

// crowd creates the Deployment, updates it and notes the figures. There are too many pods to record every event.
func crowd(t *testing.T, labels map[string]string, replicas int32, figures *[]figure) {
	s := &stage{T: t, namespace: createNamespace(t, asShipped(labels))}
	t.Cleanup(s.clear)
	s.usable()
	note := func(what string, value float64) { *figures = append(*figures, figure{what, value}) }

	fmt.Printf("%s: %d pods are created\n", nameOf(t), replicas)
	note("seconds until all are Ready", s.takes(func() {
		if _, err := clients.AppsV1().Deployments(s.namespace).Create(t.Context(), crowded(replicas), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}))
	s.noteMemory("all Ready", note)

	fmt.Printf("%s: %d pods are updated\n", nameOf(t), replicas)
	before := s.uids()
	note("seconds until rolled out", s.takes(func() { s.setImage("web", "app=v2") }))
	created := s.uids()
	maps.DeleteFunc(created, func(uid types.UID, _ bool) bool { return before[uid] })
	note("pods created", float64(len(created)))
	s.noteMemory("updated", note)
}

// crowded is a Deployment whose pods only simulated nodes take: see cluster/simulated/node.yaml.
func crowded(replicas int32) *appsv1.Deployment {
	d := web(replicas, rolling("10%", "25%"))
	d.Spec.Template.Spec.NodeSelector = map[string]string{"type": "simulated"}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{
		Key: "kwok.x-k8s.io/node", Value: "fake", Effect: corev1.TaintEffectNoSchedule,
	}}
	return d
}

// takes is how many seconds pass from an edit until `kubectl rollout status` says success.
func (s *stage) takes(edit func()) float64 {
	s.Helper()
	from := time.Now()
	edit()
	s.rollout("status", "web", "--timeout="+crowdPatience.String())
	return time.Since(from).Seconds()
}

func (s *stage) uids() map[types.UID]bool {
	s.Helper()
	pods, err := clients.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "!" + pullerLabel})
	if err != nil {
		s.Fatal(err)
	}
	uids := map[types.UID]bool{}
	for _, pod := range pods.Items {
		uids[pod.UID] = true
	}
	return uids
}

// noteMemory notes what the components and the managers use now.
func (s *stage) noteMemory(when string, note func(string, float64)) {
	s.Helper()
	used, err := componentsUse(s.Context(), "kube-apiserver", "etcd", "kwok")
	if err != nil {
		s.Error(err)
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		note(fmt.Sprintf("MiB of %s, %s", name, when), used[name])
	}
	note("MiB of the managers, "+when, managersUse(s.Context()).memory)
}

// clear deletes the namespace and waits until its pods are gone, which would burden whatever is measured next.
func (s *stage) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), crowdPatience)
	defer cancel()
	if _, _, err := kubectl(ctx, "", "delete", "namespace", s.namespace, "--timeout="+crowdPatience.String()); err != nil {
		s.Error(err)
	}
}
