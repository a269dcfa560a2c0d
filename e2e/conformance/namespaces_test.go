package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"

	"github.com/stayput/stayput/e2e/conformance/verdict"
)

// namespaces are those of the test that runs. Only one does at a time: ginkgo runs tests side by side in processes of their own.
var namespaces testNamespaces

type testNamespaces struct {
	label   label
	client  clientset.Interface
	created []string
}

// create is the framework's way to make a namespace, with our label. Tests that make namespaces by hand would get none.
func (n *testNamespaces) create(ctx context.Context, name string, client clientset.Interface, labels map[string]string) (*corev1.Namespace, error) {
	labels = maps.Clone(labels)
	n.label.addTo(labels)
	namespace, err := framework.CreateTestingNS(ctx, name, client, labels)
	if namespace != nil {
		n.client = client
		n.created = append(n.created, namespace.Name)
	}
	return namespace, err
}

// What Stayput did for a test goes on record before the framework deletes the namespace.
var _ = ginkgo.AfterEach(func(ctx context.Context) {
	defer func() { namespaces.created = nil }()
	for _, namespace := range namespaces.created {
		events, err := namespaces.client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		framework.ExpectNoError(err, "list the events in %s, which say what Stayput did", namespace)
		for i := range events.Items {
			if event := &events.Items[i]; event.ReportingController == verdict.Controller {
				ginkgo.AddReportEntry(verdict.Event, event.Reason)
			}
		}
	}
})

// label is the value of a flag, KEY=VALUE.
type label struct{ key, value string }

func (l *label) String() string { return l.key + "=" + l.value }

func (l *label) Set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return fmt.Errorf("a label is KEY=VALUE, and this is %q", text)
	}
	l.key, l.value = key, value
	return nil
}

func (l *label) addTo(labels map[string]string) {
	if l.key != "" {
		labels[l.key] = l.value
	}
}
