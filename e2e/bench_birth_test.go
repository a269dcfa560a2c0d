//go:build e2e && bench

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// bornPods are created in each namespace in each round, so many in a turn.
	bornPods   = 300
	bornInTurn = 50
	// restingPods do nothing, unless RESTING says otherwise. The managers are watched for restingFor.
	restingPods = 3000
	restingFor  = time.Minute
	// passingPause is the time between two unlabelled pods that come and go.
	passingPause = time.Second / 10
)

// benchBirth measures what the webhooks add to CREATE of a pod of a Deployment. The pods are created in dry runs, in the name of the
// ReplicaSet controller, so that no pod has to be scheduled and the controllers have nothing to do.
func benchBirth(t *testing.T) {
	ways := []*nursery{newNursery(t, "labelled", asShipped(labelled)), newNursery(t, "unlabelled", unlabelled)}
	defer func() {
		var all []column
		for _, way := range ways {
			all = append(all, way.column())
		}
		if beside := quantile(ways[1].took, 0.99); measured(beside) {
			all = append(all, column{name: "added", figures: []figure{
				{"milliseconds of CREATE, p50", quantile(ways[0].took, 0.5) - quantile(ways[1].took, 0.5)},
				{"milliseconds of CREATE, p99", quantile(ways[0].took, 0.99) - beside},
			}})
		}
		present(t, "CREATE of a pod of a Deployment", all)
	}()
	rounds := roundsOr(t, benchRounds)
	for range rounds * bornPods / bornInTurn {
		for _, way := range ways {
			way.turn()
		}
	}
}

// nursery is a namespace in which pods are created for a ReplicaSet.
type nursery struct {
	*scenario
	way   string
	as    kubernetes.Interface // a client in the name of the ReplicaSet controller
	set   appsv1.ReplicaSet
	took  []float64 // milliseconds
	calls float64   // of Stayput's webhooks
}

// newNursery creates a Deployment whose pod stays unscheduled.
func newNursery(t *testing.T, way string, labels map[string]string) *nursery {
	t.Helper()
	n := &nursery{scenario: unjudged(t, labels), way: way, as: asReplicaSetController(t)}
	d := web(1)
	d.Spec.Template.Spec.SchedulerName = "none"
	n.submit(d)
	n.eventually("a ReplicaSet with its pod", func(ctx context.Context) error {
		sets, err := clients.AppsV1().ReplicaSets(n.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(sets.Items) == 0 || sets.Items[0].Status.Replicas == 0 {
			return errors.New("there is none")
		}
		n.set = sets.Items[0]
		return nil
	})
	return n
}

func asReplicaSetController(t *testing.T) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:replicaset-controller",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// turn creates pods, one after another, and counts the calls of webhooks meanwhile.
func (n *nursery) turn() {
	n.Helper()
	before := n.webhookCalls()
	for range bornInTurn {
		from := time.Now()
		_, err := n.as.CoreV1().Pods(n.namespace).Create(n.Context(), n.pod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			n.Fatal(err)
		}
		n.took = append(n.took, milliseconds(time.Since(from)))
	}
	n.calls += n.webhookCalls() - before
}

// pod returns a pod as the ReplicaSet controller creates it.
func (n *nursery) pod() *corev1.Pod {
	template := n.set.Spec.Template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: n.set.Name + "-", Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&n.set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: template.Spec,
	}
}

// webhookCalls returns how often the API server has called Stayput's webhooks.
func (n *nursery) webhookCalls() float64 {
	n.Helper()
	server, err := serverMetrics(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	calls := 0.0
	for _, series := range server["apiserver_admission_webhook_request_total"].GetMetric() {
		if strings.HasSuffix(labelOf(series, "name"), ".stayput.dev") {
			calls += amount(series)
		}
	}
	return calls
}

func (n *nursery) column() column {
	return column{name: n.way, figures: []figure{
		{"pods", float64(len(n.took))},
		{"milliseconds of CREATE, p50", quantile(n.took, 0.5)},
		{"milliseconds of CREATE, p99", quantile(n.took, 0.99)},
		{"calls of webhooks", n.calls},
	}}
}

// benchRest measures the managers beside simulated pods that do nothing, at first alone, then while other pods come and go in a namespace
// without the label. Then these pods are updated.
func benchRest(t *testing.T) {
	pods := int(numberOf(t, "RESTING", restingPods))
	roomFor(t, pods)
	c := newCrowd(t, asShipped(surging), "web", pods)
	c.fill(crowded(int32(pods)))
	c.count() // waits until the cluster is at rest
	resting := managersOver(t, func() { time.Sleep(restingFor) })
	other := newBystander(t, unlabelled)
	passing := managersOver(t, func() { other.pass(restingFor) })
	if other.failed > 0 {
		t.Errorf("%v requests for pods that come and go failed", other.failed)
	}
	ways := []column{{name: "at rest", figures: resting}, {name: "others pass", figures: passing}}
	defer func() { present(t, fmt.Sprintf("%d simulated pods at rest", pods), ways) }()
	c.update("v2")
	ways = append(ways, column{name: "then updated", figures: c.figures()})
}

// managersOver returns what the managers use while something happens.
func managersOver(t *testing.T, happens func()) []figure {
	t.Helper()
	before, from := managersUse(t.Context()), time.Now()
	happens()
	after := managersUse(t.Context())
	perSecond := 1000 * (after.cpu - before.cpu) / time.Since(from).Seconds()
	return append([]figure{{"milliseconds of the managers' CPU per second", perSecond}}, after.memory.figures()...)
}

// pass lets pods come and go for some time.
func (b *bystander) pass(duration time.Duration) {
	end := time.After(duration)
	tick := time.NewTicker(passingPause)
	defer tick.Stop()
	for {
		select {
		case <-end:
			b.pending.Wait()
			return
		case <-tick.C:
			b.pending.Go(b.create)
		}
	}
}
