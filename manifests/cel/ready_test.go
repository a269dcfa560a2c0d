package cel

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
)

// stayput is Stayput's user name in the namespace into which manifests/ installs it.
var stayput = readiness.UserOf("stayput-system", readiness.ServiceAccount)

const (
	readyPolicy  = "../ready/policy.yaml"
	readyWebhook = "../ready-webhook/webhook.yaml"
	writes       = 6000
)

// TestReadyIsTheRule checks, for thousands of random writes, that the policy and the rule in Go store the same.
func TestReadyIsTheRule(t *testing.T) {
	p, seen := compile(t, readyPolicy), map[string]int{}
	for seed := range int64(writes) {
		g := generator{rand.New(rand.NewSource(seed))}
		old, sent, by := g.write()
		want := sent.DeepCopy()
		want.Status.Conditions = readiness.StoredConditions(old, sent, readiness.WriterOf(stayput, by.Name, by.Groups, sent.Spec.NodeName))
		got, err := p.store(old, sent, by)
		switch {
		case err != nil:
			t.Fatalf("seed %d: the policy fails: %v", seed, err)
		case !equality.Semantic.DeepEqual(byType(got), byType(want)) || !equality.Semantic.DeepEqual(rest(got), rest(sent)):
			t.Fatalf("seed %d, by %s:\n old %s\nsent %s\nrule %s\n CEL %s\nmark %s", seed, by.Name, text(old.Status.Conditions),
				text(sent.Status), text(byType(want)), text(byType(got)), sent.Annotations["stayput.dev/move"])
		}
		seen[what(sent, want)]++
		switch writer := readiness.WriterOf(stayput, by.Name, by.Groups, sent.Spec.NodeName); {
		case writer != readiness.KubeletWriter || !readiness.DrainsStopping(sent):
		case readiness.DrainsStopping(want):
			seen["stays closed until it stops"]++
		case generationOf(want) != want.Generation:
			seen["opens, unproved"]++
		}
		if sidecars, others := restarting(sent); strings.HasPrefix(what(sent, want), "opens") && sidecars > 0 && readiness.Closed(sent) {
			seen["opens for a sidecar"]++
			if others == 0 {
				seen["for one alone"]++
			}
		}
	}
	for must, of := range map[string]int{
		"opens, unproved": 100, "stays closed until it stops": 500, "opens": 100, "opens, becomes ready": 100, "becomes ready": 100, "becomes unready": 100, "nothing": 100,
		"opens for a sidecar": 200, "for one alone": 400,
	} {
		if seen[must] < writes/of {
			t.Errorf("%q is the result of only %d of %d writes: %v", must, seen[must], writes, seen)
		}
	}
}

// TestWebhookIsAskedWhatIsStoredOtherwise checks that the webhook is called exactly for writes that are stored otherwise than they are
// sent. It is called neither for what the policy has stored, nor for its own answers.
func TestWebhookIsAskedWhatIsStoredOtherwise(t *testing.T) {
	w, seen := compileWebhook(t, readyWebhook), map[bool]int{}
	for seed := range int64(writes) {
		old, sent, by := generator{rand.New(rand.NewSource(seed))}.write()
		stored := sent.DeepCopy()
		stored.Status.Conditions = readiness.StoredConditions(old, sent, readiness.WriterOf(stayput, by.Name, by.Groups, sent.Spec.NodeName))
		otherwise := !equality.Semantic.DeepEqual(stored, sent)
		called, err := w.calls(old, sent, by)
		if err != nil || called != otherwise {
			t.Fatalf("seed %d, by %s: called %t, stored otherwise %t: %v\n old %s\nsent %s\nrule %s\nmark %s", seed, by.Name, called, otherwise, err,
				text(old.Status.Conditions), text(sent.Status), text(byType(stored)), sent.Annotations["stayput.dev/move"])
		}
		if again, err := w.calls(old, stored, by); again || err != nil {
			t.Fatalf("seed %d: called again, %v, about %s", seed, err, text(stored.Status))
		}
		seen[called]++
	}
	if seen[true] < writes/10 || seen[false] < writes/10 {
		t.Errorf("of %d writes it is asked about %d and not about %d", writes, seen[true], seen[false])
	}
}

// TestReadyWithinItsBudget evaluates the policy on the largest pod. A policy that costs too much would fail there.
func TestReadyWithinItsBudget(t *testing.T) {
	p := compile(t, readyPolicy)
	for _, of := range []struct{ restart, unproved bool }{{}, {restart: true}, {restart: true, unproved: true}} {
		old, pod := largest(of.restart)
		if of.unproved {
			old.Status.ObservedGeneration, pod.Status.Conditions[0].Reason = 0, readiness.ReasonRestarting
		}
		stored, err := p.store(old, pod, kubelet(pod.Spec.NodeName))
		if err != nil {
			t.Fatal(err)
		}
		if got := what(pod, stored); got != "opens, becomes ready" {
			t.Errorf("the result is: %s", got)
		}
	}
}

// TestWebhookWithinItsBudget evaluates the webhook's conditions on the same pod, and on the kubelet's next report, which is stored as it
// is.
func TestWebhookWithinItsBudget(t *testing.T) {
	w := compileWebhook(t, readyWebhook)
	for _, of := range []struct{ restart, unproved bool }{{}, {restart: true}, {restart: true, unproved: true}} {
		old, pod := largest(of.restart)
		if of.unproved {
			old.Status.ObservedGeneration, pod.Status.Conditions[0].Reason = 0, readiness.ReasonRestarting
		}
		if called, err := w.calls(old, pod, kubelet(pod.Spec.NodeName)); !called || err != nil {
			t.Errorf("asked %t, %v", called, err)
		}
		pod.Status.InitContainerStatuses[len(pod.Status.InitContainerStatuses)-1].ContainerID = ""
		if called, err := w.calls(old, pod, kubelet(pod.Spec.NodeName)); called != of.unproved || err != nil {
			t.Errorf("one container has no ID yet: asked %t, %v", called, err)
		}
	}
}

// largest returns a pod as large as any, before and after all of its containers have restarted. If restart is true, they keep their images.
func largest(restart bool) (old, now *corev1.Pod) {
	g := generator{rand.New(rand.NewSource(1))}
	const containers = 40
	pod := g.pod(containers)
	pod.Spec.InitContainers, pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = nil, nil, nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, g.status(container.Name))
	}
	move := readiness.Move{Hash: "5d9f7c6b8", Generation: pod.Generation, Containers: map[string]readiness.MovedContainer{}}
	for i := range containers {
		status := &pod.Status.ContainerStatuses[i]
		image := "registry.example/" + strings.Repeat("x", 200)
		status.Image, status.ImageID = image+":2", image+"@sha256:"+strings.Repeat("2", 64)
		status.RestartCount, pod.Spec.Containers[i].StartupProbe = 1, &corev1.Probe{PeriodSeconds: 1}
		status.ContainerID, status.Ready, status.State = "containerd://"+strings.Repeat("2", 64), true, running(g.time())
		move.Containers[status.Name] = readiness.MovedContainer{Image: image + ":2", ImageID: image + "@sha256:" + strings.Repeat("1", 64),
			ContainerID: "containerd://" + strings.Repeat("1", 64), Unready: true, Restart: restart}
	}
	last := containers * 3 / 4
	pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.Containers[last:], pod.Spec.Containers[:last]
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[last:], pod.Status.ContainerStatuses[:last]
	pod.Annotations = map[string]string{inplace.AnnotationMove: move.String()}
	pod.Status.ObservedGeneration = pod.Generation
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: inplace.ConditionServing, Status: corev1.ConditionFalse, ObservedGeneration: pod.Generation - 1, LastTransitionTime: g.time()},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(g.time().Add(time.Hour))},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", LastTransitionTime: g.time()},
	}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}}
	old = pod.DeepCopy()
	for _, list := range [][]corev1.ContainerStatus{old.Status.ContainerStatuses, old.Status.InitContainerStatuses} {
		for i := range list {
			list[i].ContainerID = "containerd://" + strings.Repeat("1", 64)
		}
	}
	return old, pod
}

// what returns in words what is stored otherwise than it was sent.
func what(sent, stored *corev1.Pod) string {
	var did []string
	if status(stored, inplace.ConditionServing) != status(sent, inplace.ConditionServing) {
		did = append(did, "opens")
	}
	switch before, after := status(sent, corev1.PodReady), status(stored, corev1.PodReady); {
	case before == after:
	case after == corev1.ConditionTrue:
		did = append(did, "becomes ready")
	default:
		did = append(did, "becomes unready")
	}
	if len(did) == 0 {
		return "nothing"
	}
	return strings.Join(did, ", ")
}

func status(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// generationOf returns the generation that the pod's gate notes.
func generationOf(pod *corev1.Pod) int64 {
	for _, c := range pod.Status.Conditions {
		if c.Type == inplace.ConditionServing {
			return c.ObservedGeneration
		}
	}
	return 0
}

// byType returns the conditions in the order of their types. Stored conditions have no defined order.
func byType(pod *corev1.Pod) []corev1.PodCondition {
	return slices.SortedFunc(slices.Values(pod.Status.Conditions), func(a, b corev1.PodCondition) int {
		return strings.Compare(string(a.Type), string(b.Type))
	})
}

// rest returns the pod without its conditions.
func rest(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Conditions, pod.TypeMeta = nil, metav1.TypeMeta{}
	return pod
}

func text(object any) string {
	raw, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func kubelet(node string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
}

func running(since metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
}

// generator makes random writes. Most are like real ones, and some are not.
type generator struct{ *rand.Rand }

// mostly returns usual in seven of eight cases, else one of the others.
func mostly[T any](g generator, usual T, others ...T) T {
	if g.Intn(8) == 0 {
		return others[g.Intn(len(others))]
	}
	return usual
}

func pick[T any](g generator, values ...T) T { return values[g.Intn(len(values))] }

func (g generator) time() metav1.Time {
	return metav1.NewTime(time.Unix(1_800_000_000+int64(g.Intn(40)), 0))
}

func (g generator) write() (old, sent *corev1.Pod, by *user.DefaultInfo) {
	sent = g.pod(1 + g.Intn(3))
	g.mark(sent)
	g.conditions(sent)
	old = sent.DeepCopy()
	if g.Intn(3) > 0 {
		g.conditions(old)
	}
	g.before(old)
	node := kubelet(mostly(g, sent.Spec.NodeName, "other", ""))
	node.Groups = mostly(g, node.Groups, []string{"system:authenticated"})
	own := &user.DefaultInfo{Name: stayput, Groups: []string{"system:serviceaccounts"}}
	return old, sent, pick(g, node, node, own, mostly(g, node, &user.DefaultInfo{Name: "jane", Groups: []string{"system:masters"}}))
}

func (g generator) pod(containers int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", Namespace: "shop", CreationTimestamp: g.time(), Generation: mostly(g, int64(2), 0, 1, 3)}}
	pod.Spec.NodeName = mostly(g, "n", "")
	pod.Status.ObservedGeneration = mostly(g, pod.Generation, 0, 1)
	for i := range containers {
		name := pick(g, "a", "app", "image", "containers") + fmt.Sprint(i)
		container := corev1.Container{Name: name, Image: pick(g, "v1", "v2")}
		if g.Intn(4) == 0 {
			container.StartupProbe = &corev1.Probe{PeriodSeconds: int32(g.Intn(12))}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		if g.Intn(12) > 0 {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, g.status(name))
		}
	}
	g.initContainers(pod)
	pod.Spec.ReadinessGates = mostly(g, []corev1.PodReadinessGate{{ConditionType: inplace.ConditionServing}},
		nil, []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}, {ConditionType: inplace.ConditionServing}})
	return pod
}

// initContainers adds sidecars and other init containers to half of the pods.
func (g generator) initContainers(pod *corev1.Pod) {
	for i := range g.Intn(2) * (1 + g.Intn(2)) {
		name := pick(g, "side", "sidecars", "containers", "image") + "-init" + fmt.Sprint(i)
		container := corev1.Container{Name: name, Image: pick(g, "v1", "v2")}
		if g.Intn(4) > 0 {
			container.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		if g.Intn(12) > 0 {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, g.status(name))
		}
	}
}

func (g generator) status(name string) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: name, Image: pick(g, "v1", "v2", "docker.io/library/v2:latest"),
		ImageID:     mostly(g, pick(g, "sha256:1", "sha256:2"), ""),
		ContainerID: mostly(g, pick(g, "cri://1", "cri://2"), ""), Ready: g.Intn(2) == 0, RestartCount: int32(g.Intn(2))}
	if g.Intn(6) > 0 {
		status.State = running(g.time())
	}
	return status
}

// before changes a pod to the report before: mostly of the same generation, and partly of containers that have been replaced since.
func (g generator) before(old *corev1.Pod) {
	old.Status.ObservedGeneration = mostly(g, old.Status.ObservedGeneration, 0, 1)
	for _, list := range []*[]corev1.ContainerStatus{&old.Status.ContainerStatuses, &old.Status.InitContainerStatuses} {
		for i := range *list {
			if g.Intn(2) == 0 {
				(*list)[i].ContainerID = pick(g, "cri://0", "cri://1", "")
			}
		}
		if n := len(*list); n > 0 && g.Intn(12) == 0 {
			*list = (*list)[:n-1]
		}
	}
}

// restarting counts the sidecars and the other containers that the pod's mark names.
func restarting(pod *corev1.Pod) (sidecars, others int) {
	for name := range readiness.MoveOf(pod).Containers {
		if edit.SidecarNamed(&pod.Spec, name) {
			sidecars++
		} else {
			others++
		}
	}
	return sidecars, others
}

func (g generator) mark(pod *corev1.Pod) {
	move := readiness.Move{Hash: "h", Generation: mostly(g, pod.Generation, 0, 1), Containers: map[string]readiness.MovedContainer{}}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if g.Intn(4) > 0 {
				move.Containers[list[i].Name] = g.moved()
			}
		}
	}
	if g.Intn(8) == 0 { // sidecars alone
		maps.DeleteFunc(move.Containers, func(name string, _ readiness.MovedContainer) bool { return !edit.SidecarNamed(&pod.Spec, name) })
	}
	if g.Intn(6) == 0 {
		move.Back = map[string]string{pod.Spec.Containers[0].Name: "v1"}
	}
	pod.Annotations = map[string]string{inplace.AnnotationMove: mostly(g, move.String(), "", "{", strings.Repeat(" ", 40<<10)+move.String())}
	if g.Intn(12) == 0 {
		pod.Annotations[inplace.AnnotationSurgePod] = pick(g, "true", "")
	}
}

func (g generator) moved() readiness.MovedContainer {
	return readiness.MovedContainer{Image: pick(g, "v1", "v2", "v2:latest"), ImageID: mostly(g, "sha256:1", ""),
		ContainerID: mostly(g, "cri://1", ""), At: g.time(), Unsure: g.Intn(12) == 0, Unready: g.Intn(3) == 0, Restart: g.Intn(3) == 0}
}

func (g generator) conditions(pod *corev1.Pod) {
	pod.Status.Conditions = nil
	bit := func() corev1.ConditionStatus {
		return mostly(g, pick(g, corev1.ConditionTrue, corev1.ConditionFalse), corev1.ConditionUnknown)
	}
	add := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string, generation int64) {
		if g.Intn(12) > 0 {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message,
				ObservedGeneration: generation, LastTransitionTime: g.time()})
		}
	}
	add(inplace.ConditionServing, pick(g, bit(), corev1.ConditionFalse), pick(g, "", "UpdatingInPlace", "RestartingInPlace", "NodeStatusUnknown"),
		mostly(g, "", "any message"), mostly(g, int64(1), 0, 2))
	if len(pod.Spec.ReadinessGates) > 1 {
		add("example.com/lb", bit(), "", "", 0)
	}
	add(corev1.ContainersReady, mostly(g, corev1.ConditionTrue, corev1.ConditionFalse), "", "", 2)
	add(corev1.PodReady, bit(), mostly(g, "ReadinessGatesNotReady", "ContainersNotReady", ""), pick(g, "", "gates"), 2)
}
