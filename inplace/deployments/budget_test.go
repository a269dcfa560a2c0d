package deployments_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/internal/fixture"
)

// soonReady makes the pod one that is Ready, and not yet for minReadySeconds.
func soonReady(pod *corev1.Pod) {
	apps.Condition(pod, corev1.PodReady).LastTransitionTime = metav1.NewTime(fixture.Start)
}

// updateOf returns an update of four pods that has just begun.
func updateOf(from, to fixture.App, atATime int, pods [4]func(*corev1.Pod)) *deployments.Rollout {
	r := fixture.New(4, to)
	r.Deployment.Spec.MinReadySeconds = 60
	r.Deployment.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt(atATime))
	a, b := fixture.ReplicaSetOf(r, "a", from, 4), fixture.ReplicaSetOf(r, "b", to, 0)
	a.Labels[inplace.LabelUpdating], b.Labels[inplace.LabelUpdating] = fixture.Begun, fixture.Begun
	for i, change := range pods {
		fixture.PodOf(r, string("pqrs"[i]), a, change)
	}
	return r
}

// TestEditSoonAfterAnUpdate: pods that are Ready serve, though not yet for minReadySeconds. They need not wait for that, as an undo would.
// They go before those that are available, and not more of them at a time than may be unavailable stop serving.
func TestEditSoonAfterAnUpdate(t *testing.T) {
	no, soon, sick := func(*corev1.Pod) {}, soonReady, fixture.Unready
	v1, sized := fixture.App{Image: "v1"}, fixture.App{Image: "v1", CPU: "100m"}
	for name, test := range map[string]struct {
		from, to fixture.App
		atATime  int
		pods     [4]func(*corev1.Pod)
		want     string
	}{
		"all":                          {v1, fixture.App{Image: "v2"}, 1, [4]func(*corev1.Pod){soon, soon, soon, soon}, "out p"},
		"all, two at a time":           {v1, fixture.App{Image: "v2"}, 2, [4]func(*corev1.Pod){soon, soon, soon, soon}, "out p, out q"},
		"one is not Ready":             {v1, fixture.App{Image: "v2"}, 1, [4]func(*corev1.Pod){soon, soon, soon, sick}, "out s"},
		"one is not Ready, two may go": {v1, fixture.App{Image: "v2"}, 2, [4]func(*corev1.Pod){soon, soon, no, sick}, "out s, out p"},
		"an undo of one":               {v1, fixture.App{Image: "v2"}, 1, [4]func(*corev1.Pod){no, no, no, soon}, "out s"},
		"an undo of one, two may go":   {v1, fixture.App{Image: "v2"}, 2, [4]func(*corev1.Pod){no, no, no, soon}, "out s, out p"},
		"an undo of labels":            {fixture.App{Image: "v1", Chart: "2"}, v1, 1, [4]func(*corev1.Pod){soon, soon, soon, soon}, "4 → 3"},
		"an undo of CPU":               {sized, fixture.App{Image: "v1", CPU: "200m"}, 1, [4]func(*corev1.Pod){soon, soon, no, no}, "move p"},
	} {
		t.Run(name, func(t *testing.T) {
			planned := fixture.Brief(updateOf(test.from, test.to, test.atATime, test.pods).Plan().Steps)
			if planned = strings.TrimPrefix(planned, "status, "); planned != test.want {
				t.Errorf("steps are %q, not %q", planned, test.want)
			}
		})
	}
}
