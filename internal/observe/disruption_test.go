package observe

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/disruption"
	"github.com/stayput/stayput/inplace/engine"
)

// TestDisruption reads the PodDisruptionBudgets and pods of one namespace, of whatever workload, from the API server and from a cache.
func TestDisruption(t *testing.T) {
	elsewhere := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "other", UID: "o"}}
	objects := append(shop(), elsewhere, &policyv1.PodDisruptionBudget{ObjectMeta: meta("web", "b")},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "web"}})
	pods := 0
	for _, object := range shop() {
		if _, is := object.(*corev1.Pod); is {
			pods++
		}
	}
	for name, reader := range map[string]Reader{"live": {Reader: builder(t, objects...).Build()}, "indexed": cacheHas(t, objects...)} {
		seen, err := reader.Disruption(t.Context(), "shop")
		if err != nil || len(seen.Budgets) != 1 || seen.Budgets[0].UID != "b" || len(seen.Pods) != pods {
			t.Errorf("%s: %d PodDisruptionBudgets and %d pods of %d, %v", name, len(seen.Budgets), len(seen.Pods), pods, err)
		}
	}
}

// TestBudgetsAreReadOnRequest checks that PodDisruptionBudgets are read only for workloads that Stayput manages and that ask for them.
func TestBudgetsAreReadOnRequest(t *testing.T) {
	reader := Reader{Reader: builder(t, &policyv1.PodDisruptionBudget{ObjectMeta: meta("web", "b")}).Build()}
	for _, test := range []struct {
		mode inplace.Mode
		asks bool
		want int
	}{{inplace.ModeInPlace, true, 1}, {inplace.ModeInPlace, false, 0}, {inplace.ModeNone, true, 0}} {
		seen := engine.Snapshot{Mode: test.mode, Settings: inplace.Settings{DisruptionBudgets: test.asks}}
		if err := reader.WithBudgets(t.Context(), "shop", &seen); err != nil || len(seen.Disruption.Budgets) != test.want {
			t.Errorf("mode %q, asks %t: %d are read, %v", test.mode, test.asks, len(seen.Disruption.Budgets), err)
		}
	}
}

// TestTooManyBudgets checks that a namespace with too many PodDisruptionBudgets is an error: some of them would not be respected.
func TestTooManyBudgets(t *testing.T) {
	var objects []client.Object
	for i := range disruption.MostBudgets + 1 {
		objects = append(objects, &policyv1.PodDisruptionBudget{ObjectMeta: meta(fmt.Sprint("b", i), "")})
	}
	if _, err := (Reader{Reader: builder(t, objects...).Build()}).DisruptionBudgets(t.Context(), "shop"); err == nil {
		t.Error("all are read")
	}
}
