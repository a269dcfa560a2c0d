package edit_test

import (
	"encoding/json"
	"errors"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/internal/templates"
)

// seeds is how many pairs of templates a test run compares. `go test -fuzz=Random ./inplace/edit` compares others until it is
// stopped.
const seeds = 2000

// FuzzRandom: a change in place turns a pod into what a new pod would be. The change can be undone in place, except where users are
// told that it cannot.
func FuzzRandom(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) { checkPair(t, seed) })
}

// TestRandom also requires that the pairs have enough variety.
func TestRandom(t *testing.T) {
	possible, resizes := 0, 0
	for seed := range uint64(seeds) {
		if checkPair(t, seed) {
			possible++
			if from, to := templates.Pair(seed); planOf(t, templates.PlanOf, from, to).Containers.Resizes() {
				resizes++
			}
		}
		if t.Failed() {
			return
		}
	}
	if possible < seeds/5 || possible > seeds*4/5 {
		t.Errorf("%d of %d edits can be made in place", possible, seeds)
	}
	if resizes < possible/20 {
		t.Errorf("%d of %d edits that can be made in place resize pods", resizes, possible)
	}
}

// checkPair reports whether the edit can be made in place.
func checkPair(t *testing.T, seed uint64) bool {
	t.Helper()
	from, to := templates.Pair(seed)
	plan, unlabelled := planOf(t, templates.PlanOf, from, to), planOf(t, templates.PlanWithoutRestarts, from, to)
	switch asks := plan.AsksForRestart(); {
	case asks && unlabelled.InPlace(), !asks && unlabelled.String() != plan.String():
		t.Errorf("seed %d: %s, and without the label for restarts: %s", seed, plan, unlabelled)
	}
	if !plan.Possible() {
		return false
	}
	back, oneWay := planOf(t, templates.PlanOf, to, from), templates.OneWay(from, to)
	if back.Possible() != (oneWay == "") {
		t.Errorf("seed %d: %s, and back: %s; one way: %q", seed, plan, back, oneWay)
	}
	for what, admitted := range map[string]func(*corev1.Pod) *corev1.Pod{"as its template": unchanged, "with more": withMore} {
		old, fresh := admitted(templates.PodOf(from)), admitted(templates.PodOf(to))
		pod, err := made(t, plan, old, fresh)
		if err == nil && oneWay == "" {
			_, err = made(t, back, pod, old)
		}
		if err != nil {
			t.Errorf("seed %d, a pod %s: %s: %v\nfrom %s\nto %s", seed, what, plan, err, templates.Text(from), templates.Text(to))
		}
	}
	return true
}

func planOf(t *testing.T, compare func(from, to corev1.PodTemplateSpec) (templates.Plan, error),
	from, to corev1.PodTemplateSpec) templates.Plan {
	t.Helper()
	plan, err := compare(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// made returns the pod after the writes of the plan. The error says how the pod differs from a fresh pod.
func made(t *testing.T, plan templates.Plan, pod, fresh *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	after := pod
	for _, write := range plan.Writes(pod) {
		after = patched(t, after, write)
	}
	return after, errors.Join(plan.Restarted(pod, after), templates.Same(after, fresh))
}

// patched returns the pod after the write.
func patched(t *testing.T, pod *corev1.Pod, write templates.Write) *corev1.Pod {
	t.Helper()
	patch, err := jsonpatch.DecodePatch([]byte(templates.Text(write.Operations)))
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply([]byte(templates.Text(pod)))
	if err != nil {
		t.Fatalf("%v in %s", err, templates.Text(write.Operations))
	}
	return decoded(t, []byte(templates.Text(decoded(t, after)))) // an API server stores no empty maps
}

func decoded(t *testing.T, text []byte) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

func unchanged(pod *corev1.Pod) *corev1.Pod { return pod }

// withMore returns the pod with what admission adds to every pod, whatever its template. It must stay as it is.
func withMore(pod *corev1.Pod) *corev1.Pod {
	mesh := corev1.Container{Name: "injected", Image: "registry.example/mesh:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}
	pod.Spec.Containers = append([]corev1.Container{mesh}, pod.Spec.Containers...)
	pod.Spec.Tolerations = append([]corev1.Toleration{{Key: "example.com/injected"}}, pod.Spec.Tolerations...)
	pod.Labels = with(pod.Labels, "example.com/injected")
	pod.Annotations = with(pod.Annotations, "example.com/injected")
	return pod
}

func with(entries map[string]string, key string) map[string]string {
	all := map[string]string{key: "yes"}
	for key, value := range entries {
		all[key] = value
	}
	return all
}
