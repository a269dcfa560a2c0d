package bynamespace

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// updates counts by namespace and mode.
func updates() (*prometheus.CounterVec, *Series) {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "updates_total"}, []string{Label, "mode"})
	return vector, New(func(namespace string) { vector.WithLabelValues(namespace, "a") }, vector)
}

// namespaces returns the namespaces that the vector has series of, in order, once for each series.
func namespaces(t *testing.T, vector *prometheus.CounterVec) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(vector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if label.GetName() == Label {
					found = append(found, label.GetValue())
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

func want(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

func TestSeriesComeAndGoWithTheLabel(t *testing.T) {
	vector, series := updates()
	labelled := func(namespace *corev1.Namespace) bool { return namespace.Labels["managed"] == "yes" }
	handler := series.handler(labelled)
	plain := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	managed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"managed": "yes"}}}

	handler.OnAdd(plain, true)
	series.Begin()
	want(t, "without the label", namespaces(t, vector))
	handler.OnUpdate(plain, managed)
	want(t, "with the label", namespaces(t, vector), "shop")
	handler.OnUpdate(managed, plain)
	want(t, "the label is removed", namespaces(t, vector))
	handler.OnAdd(managed, false)
	want(t, "a new namespace", namespaces(t, vector), "shop")
	handler.OnDelete(managed)
	want(t, "the namespace is deleted", namespaces(t, vector))
	handler.OnAdd(managed, false)
	handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "shop", Obj: managed})
	want(t, "the deletion was missed", namespaces(t, vector))
}

func TestSeriesOfLabelledNamespacesOnly(t *testing.T) {
	vector, series := updates()
	count := func(namespace string) {
		vector.WithLabelValues(series.In(namespace), "b").Inc()
	}
	series.Add("shop")
	want(t, "before it begins", series.Begun())
	count("shop")
	for _, unlabelled := range []string{"one", "two", "three"} {
		count(unlabelled)
	}
	want(t, "counted", namespaces(t, vector), Elsewhere, "shop")
	if n := testutil.ToFloat64(vector.WithLabelValues(Elsewhere, "b")); n != 3 {
		t.Errorf("%v are counted elsewhere, want 3", n)
	}
	series.Remove("shop")
	count("shop")
	want(t, "removed, and counted since", namespaces(t, vector), Elsewhere)
}
