package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/test/e2e/framework"

	"github.com/stayput/stayput/e2e/conformance/verdict"
)

// namespaces are those of the running test. Only one test runs in a process: ginkgo runs parallel tests in several processes.
var namespaces = testNamespaces{labels: labels{}}

type testNamespaces struct {
	labels  labels
	client  clientset.Interface
	created []string
}

// create replaces the framework's function that makes namespaces. It adds Stayput's labels. Namespaces that tests make without the
// framework do not get them.
func (n *testNamespaces) create(ctx context.Context, name string, client clientset.Interface, asked map[string]string,
) (*corev1.Namespace, error) {
	all := maps.Clone(asked)
	maps.Copy(all, n.labels)
	namespace, err := framework.CreateTestingNS(ctx, name, client, all)
	if namespace != nil {
		n.client = client
		n.created = append(n.created, namespace.Name)
	}
	return namespace, err
}

// said returns the reasons of Stayput's events in the namespaces of the test that ends.
func (n *testNamespaces) said(ctx context.Context) ([]string, error) {
	var reasons []string
	for _, namespace := range n.created {
		events, err := n.client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range events.Items {
			if event := &events.Items[i]; event.ReportingController == verdict.Controller {
				reasons = append(reasons, event.Reason)
			}
		}
	}
	return reasons, nil
}

// record writes Stayput's events of a test to the report, before the framework deletes the test's namespaces. It is an extension of the
// framework, because nodes outside of containers are lost when the framework previews the tests (ginkgo.PreviewSpecs in
// AfterReadingAllFlags).
func (n *testNamespaces) record(*framework.Framework) {
	ginkgo.AfterEach(func(ctx context.Context) {
		reasons, err := n.said(ctx)
		n.created = nil
		framework.ExpectNoError(err, "list the events that say what Stayput did")
		for _, reason := range reasons {
			ginkgo.AddReportEntry(verdict.Event, reason)
		}
	})
}

func TestNamespacesAreLabelledAndRead(t *testing.T) {
	verify := framework.TestContext.VerifyServiceAccount
	framework.TestContext.VerifyServiceAccount = false // no controller creates one
	t.Cleanup(func() { framework.TestContext.VerifyServiceAccount = verify })
	client := fake.NewClientset()
	tested := testNamespaces{labels: labels{}}
	for _, label := range []string{"stayput.dev/update=in-place", "stayput.dev/kinds=deployments.daemonsets.statefulsets"} {
		if err := tested.labels.Set(label); err != nil {
			t.Fatal(err)
		}
	}

	asked := map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
	namespace, err := tested.create(t.Context(), "deployment", client, asked)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"stayput.dev/update": "in-place", "stayput.dev/kinds": "deployments.daemonsets.statefulsets",
		"pod-security.kubernetes.io/enforce": "baseline",
	} {
		if got := namespace.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if len(asked) != 1 {
		t.Errorf("the framework's own labels have become %v", asked)
	}

	for name, controller := range map[string]string{"stayput": verdict.Controller, "native": "deployment-controller"} {
		event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, ReportingController: controller, Reason: name}
		if _, err := client.EventsV1().Events(namespace.Name).Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := tested.said(t.Context()); err != nil || !slices.Equal(said, []string{"stayput"}) {
		t.Errorf("said %v (%v), want only Stayput's", said, err)
	}
}

func TestLabelsWithoutKeyAreRefused(t *testing.T) {
	for _, text := range []string{"stayput.dev/update", "=in-place"} {
		if err := (labels{}).Set(text); err == nil {
			t.Errorf("%q is taken as a label", text)
		}
	}
}

// labels are the values of a flag that may be given several times, each KEY=VALUE.
type labels map[string]string

func (l labels) String() string { return fmt.Sprint(map[string]string(l)) }

func (l labels) Set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return fmt.Errorf("a label is KEY=VALUE, and this is %q", text)
	}
	l[key] = value
	return nil
}
