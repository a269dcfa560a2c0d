package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/steps"
)

// asking returns a plan without an update, with pods a, b and so on that have these requests, and what happens to them in a few words.
func asking(t *testing.T, changes []func(*corev1.Pod), requests ...string) []string {
	t.Helper()
	r := fixture.New(int32(len(requests)), fixture.App{Image: "v2", Sidecar: "s"})
	rs := fixture.ReplicaSetOf(r, "b", fixture.App{Image: "v2", Sidecar: "s"}, int32(len(requests)))
	p := &plan{Update: engine.NewUpdate(engine.Workload{Object: r.Deployment, Kind: "Deployment", Template: r.Deployment.Spec.Template,
		Replicas: len(requests)}, &r.Seen)}
	r.Seen.Endpoints = podstate.Endpoints{}
	for i, request := range requests {
		pod := fixture.PodOf(r, string("abc"[i]), rs, func(pod *corev1.Pod) {
			fresh := inplace.FormatTime(fixture.Start.Add(-10*time.Second)) + "-" // its volumes are
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestarts, fresh)
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, inplace.AnnotationRestartContainers, request)
		}, changes[i])
		r.Seen.Endpoints[pod.UID] = podstate.Endpoint{OutSince: fixture.Start.Add(-time.Hour)}
		s := p.StateOf(pod, podstate.PodRevision{Revision: rs.Name, Updated: true})
		p.States = append(p.States, &s)
	}
	var did []string
	for _, step := range engine.Plan(func(*inplace.Reason) engine.Planner { return p }).Steps {
		switch s := step.(type) {
		case steps.SetReady:
			did = append(did, map[bool]string{true: "out ", false: "back "}[s.Out]+s.Pod.Name)
		case steps.PatchPod:
			did = append(did, strings.TrimSpace(map[bool]string{true: "restart ", false: "answer "}[s.Asked != ""]+s.Pod.Name+" "+s.Asked))
		}
	}
	slices.Sort(did)
	return did
}

// TestOneContainerAfterTheOther: the next container of a request restarts once the pod is available again. A pod that does not serve need
// not wait for that before the first.
func TestOneContainerAfterTheOther(t *testing.T) {
	const first, second = "app,side", "app=2026-01-01T00:00:00Z,side"
	for name, test := range map[string]struct {
		request string
		change  func(*corev1.Pod)
		want    []string
	}{
		"the first, it serves":              {first, nil, []string{"out a"}},
		"the first, it does not serve":      {first, fixture.Unready, []string{"out a"}},
		"the first, it is out":              {first, fixture.Out, []string{"restart a app"}},
		"the second, it serves":             {second, nil, []string{"out a"}},
		"the second, it does not serve yet": {second, fixture.Unready, nil},
		"the second, it is out":             {second, fixture.Out, []string{"restart a side"}},
	} {
		if got := asking(t, []func(*corev1.Pod){test.change}, test.request); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestAnswersComeAlone: two writes to one pod would name the same version of it, and the second would be refused. Other pods get their
// answers meanwhile.
func TestAnswersComeAlone(t *testing.T) {
	const flawed = "app,app"
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"all are answered":              {nil, []string{"answer a", "answer b"}},
		"one of them is put back first": {fixture.Out, []string{"answer b", "back a"}},
	} {
		if got := asking(t, []func(*corev1.Pod){test.change, nil}, flawed, flawed); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
