package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stayput/stayput/controller/allowance"
	"github.com/stayput/stayput/controller/internal/fixture"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/internal/observe"
)

// protected is a cluster whose namespace asks for PodDisruptionBudgets. One of them requires so many of the three pods.
func protected(t *testing.T, required int32) *cluster {
	t.Helper()
	c := newCluster(t)
	namespace := c.namespace()
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, inplace.AnnotationDisruptionBudgets, inplace.DisruptionBudgetsRespect)
	if err := c.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, DesiredHealthy: required, DisruptionsAllowed: 3 - required,
			ExpectedPods: 3}}
	c.Add(budget)
	return c
}

// budgeting returns a Reconciler that knows PodDisruptionBudgets.
func (c *cluster) budgeting(cached, live observe.Reader) *Reconciler {
	r := c.reconciler(nil)
	r.broker = &allowance.Broker{Cached: cached, Live: live}
	return r
}

// setBudget has the disruption controller, or an eviction, write the status.
func (c *cluster) setBudget(change func(*policyv1.PodDisruptionBudget)) {
	c.T.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	if err := c.Get(c.T.Context(), fixture.Web, budget); err != nil {
		c.T.Fatal(err)
	}
	change(budget)
	if err := c.Status().Update(c.T.Context(), budget); err != nil {
		c.T.Fatal(err)
	}
}

// TestReconcileRespectsBudgets: a PodDisruptionBudget that allows no disruption holds the update, and one that does lets it go on.
func TestReconcileRespectsBudgets(t *testing.T) { synctest.Test(t, respectsBudgets) }

func respectsBudgets(t *testing.T) {
	c := protected(t, 3)
	r := c.budgeting(c.Observer(), c.Observer())
	c.start(r)
	c.reconcile(r) // writes the marks
	if result := c.reconcile(r); len(c.outPods()) > 0 || result.RequeueAfter == 0 {
		t.Fatalf("%v are out of service, requeued after %s", c.outPods(), result.RequeueAfter)
	}
	c.setBudget(func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy, b.Status.DisruptionsAllowed = 2, 1 })
	if c.reconcile(r); len(c.outPods()) > 0 {
		t.Fatalf("a new leader takes %v out of service", c.outPods())
	}
	time.Sleep(5 * time.Second)
	if c.reconcile(r); len(c.outPods()) != 1 {
		t.Fatalf("%v are out of service, want one", c.outPods())
	}
	if c.reconcile(r); len(c.outPods()) != 1 {
		t.Fatalf("%v are out of service, although the PodDisruptionBudget allows one only", c.outPods())
	}
}

// TestEvictionBeforeAPodIsTaken: an eviction that was granted after the plan was made takes the allowance.
func TestEvictionBeforeAPodIsTaken(t *testing.T) { synctest.Test(t, evictionBeforeAPodIsTaken) }

func evictionBeforeAPodIsTaken(t *testing.T) {
	c := protected(t, 2)
	frozen, err := c.Observer().DisruptionBudgets(t.Context(), fixture.Web.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	r := c.reconciler(nil)
	r.broker = &allowance.Broker{Cached: behind{c.Observer(), frozen}, Live: c.Observer()}
	c.start(r)
	c.reconcile(r)
	time.Sleep(5 * time.Second)
	c.setBudget(func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptionsAllowed, b.Status.DisruptedPods = 0, map[string]metav1.Time{"web-old-2": metav1.Now()}
	})
	if result := c.reconcile(r); len(c.outPods()) > 0 || result.RequeueAfter == 0 {
		t.Errorf("%v are out of service, requeued after %s", c.outPods(), result.RequeueAfter)
	}
}

// behind is a cache whose PodDisruptionBudgets stay as they were.
type behind struct {
	observe.Reader
	budgets []*policyv1.PodDisruptionBudget
}

func (b behind) DisruptionBudgets(context.Context, string) ([]*policyv1.PodDisruptionBudget, error) {
	return b.budgets, nil
}

// TestBudgetsConcernUpdates checks that a PodDisruptionBudget enqueues the workloads of its namespace that are being updated.
func TestBudgetsConcernUpdates(t *testing.T) {
	c := protected(t, 3)
	route := router{observe.Reader{Reader: c}, observe.Deployments}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Web.Namespace, Name: "any"}}
	if got := route.budget(t.Context(), budget); len(got) > 0 {
		t.Errorf("%v are enqueued, and none is being updated", got)
	}
	r := c.budgeting(c.Observer(), c.Observer())
	c.start(r)
	c.reconcile(r) // writes the marks
	if got := route.budget(t.Context(), budget); !slices.Equal(got, []reconcile.Request{fixture.Request}) {
		t.Errorf("%v are enqueued", got)
	}
	if got := (router{observe.Reader{Reader: c}, observe.DaemonSets}).budget(t.Context(), budget); len(got) > 0 {
		t.Errorf("%v are enqueued as DaemonSets", got)
	}
	c.unlabel()
	if got := route.budget(t.Context(), budget); len(got) > 0 {
		t.Errorf("%v are enqueued without the label", got)
	}
}

// TestPlanSaysWhichBudget: what the plan says of a PodDisruptionBudget is what users read.
func TestPlanSaysWhichBudget(t *testing.T) {
	c := protected(t, 3)
	r := c.budgeting(c.Observer(), c.Observer())
	c.start(r)
	c.reconcile(r)
	rollout := c.Snapshot().Read
	plan, err := r.planOf(t.Context(), fixture.Web, rollout)
	want := "waiting for PodDisruptionBudget web, which allows no disruption: 3 of 3 required pods are healthy"
	if err != nil || plan.Phase != steps.PhaseBudget || !strings.HasSuffix(plan.Message, want) {
		t.Errorf("%s %q, %v; want %q", plan.Phase, plan.Message, err, want)
	}
}
