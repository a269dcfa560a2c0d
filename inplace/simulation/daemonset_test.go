package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/amounts"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/conditions"
	"github.com/stayput/stayput/inplace/daemonsets"
	"github.com/stayput/stayput/inplace/dryrun"
	"github.com/stayput/stayput/inplace/engine"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/podstate"
	"github.com/stayput/stayput/inplace/readiness"
	"github.com/stayput/stayput/inplace/revisions"
	"github.com/stayput/stayput/inplace/steps"
	"github.com/stayput/stayput/inplace/times"
)

// fleet is a DaemonSet with a pod on each of its nodes, and a kubelet on each node that acts at once. Its revisions are called 1, 2 …, its
// nodes n1, n2 … and their pods p1, p2 …
type fleet struct {
	daemonsets.Rollout
	t     testing.TB
	steps []string
	// sick is the pod whose container never becomes ready.
	sick string
	pull pullModel
	// runs are the image names with which containers were started, by pod and container.
	runs map[string]string
	// short says that no node has capacity for larger resources.
	short bool
	// says means that the API server sets Ready, and that kubelets report observedGeneration before they act on a patch.
	says bool
}

func newFleet(t testing.TB, nodes int, changes ...func(*fleet)) *fleet {
	t.Helper()
	f := &fleet{t: t, Rollout: daemonsets.Rollout{DaemonSet: &apps.DaemonSet{},
		Seen: engine.Snapshot{Mode: inplace.ModeInPlace, Rules: fixture.AllInPlace, Now: fixture.Start}},
		runs: map[string]string{}}
	f.DaemonSet.ObjectMeta = metav1.ObjectMeta{Name: "agent", Namespace: "shop", UID: "agent"}
	f.DaemonSet.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	f.edit(fixture.App{Image: "v1"})
	for i := range nodes {
		f.addNode(fmt.Sprint("n", i+1))
		f.addPod(fmt.Sprint("p", i+1), fmt.Sprint("n", i+1))
	}
	for _, change := range changes {
		change(f)
	}
	return f
}

// edit sets the template of the DaemonSet. The native controller creates its revision unless there is one.
func (f *fleet) edit(a fixture.App) {
	f.setTemplate(a.Template())
}

func (f *fleet) setTemplate(template apps.Template) {
	f.DaemonSet.Spec.Template = template
	defer func() {
		f.Seen.DryRun = dryrun.Result{UpdateRevision: f.UpdateRevision().UID, Pod: &corev1.Pod{Spec: template.Typed().Spec}}
	}()
	if f.UpdateRevision() != nil {
		return
	}
	raw, err := json.Marshal(f.DaemonSet.Spec.Template)
	if err != nil {
		f.t.Fatal(err)
	}
	name := fmt.Sprint(len(f.Revisions) + 1)
	f.Revisions = append(f.Revisions, &apps.ControllerRevision{Revision: int64(len(f.Revisions) + 1),
		ObjectMeta: metav1.ObjectMeta{Name: "agent-" + name, UID: types.UID(name), ResourceVersion: "1",
			Labels: map[string]string{inplace.LabelRevisionHash: name}},
		Data: json.RawMessage(`{"spec":{"template":{"$patch":"replace",` + strings.TrimPrefix(string(raw), "{") + `}}`)})
}

func (f *fleet) addNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.NodeInfo.KubeletVersion = "v1.36.3"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	f.Seen.Nodes = append(f.Seen.Nodes, node)
	return node
}

// addPod adds a gated pod of the newest revision that serves.
func (f *fleet) addPod(name, node string) *corev1.Pod {
	r := fixture.New(1, fixture.App{Image: "v1"})
	pod := fixture.PodOf(r, name, fixture.ReplicaSetOf(r, "x", fixture.App{Image: "v1"}, 1))
	pod.Spec.NodeName = node
	delete(pod.Labels, inplace.LabelTemplateHash)
	pod.Labels[inplace.LabelRevisionHash], pod.Labels[inplace.LabelTemplateGeneration] = fmt.Sprint(len(f.Revisions)), "1"
	f.Seen.Pods = append(f.Seen.Pods, pod)
	return pod
}

// once carries out one plan, and has the kubelets act on it.
func (f *fleet) once() steps.Plan {
	f.t.Helper()
	f.Seen.Now = f.Seen.Now.Add(time.Second)
	if f.pull.parallel > 0 {
		f.pull.observe(&f.Seen.Settings, &f.Seen.Nodes, &f.Seen.Pull)
	}
	plan := f.Plan()
	for _, step := range plan.Steps {
		f.carryOut(step)
	}
	f.pull.run()
	for _, pod := range f.Seen.Pods {
		if node := f.node(pod.Spec.NodeName); node != nil && node.Status.Conditions[0].Status == corev1.ConditionTrue {
			f.kubelet(pod)
		}
	}
	return plan
}

func (f *fleet) rest() {
	f.t.Helper()
	for range 100 {
		plan := f.once()
		switch {
		case len(plan.Steps) > 0:
		case plan.After > 0 && plan.After <= readiness.GateSeenAfter:
			f.Seen.Now = f.Seen.Now.Add(plan.After)
		default:
			return
		}
	}
	f.t.Fatalf("never comes to rest: %q", f.steps)
}

func (f *fleet) node(name string) *corev1.Node {
	for _, node := range f.Seen.Nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

func (f *fleet) carryOut(step steps.Step) {
	f.t.Helper()
	switch s := step.(type) {
	case steps.PatchRevision:
		f.patch(s.Revision, s.Operations[1:])
		labels := s.Revision.Labels
		f.steps = append(f.steps, fmt.Sprintf("mark %s %t %t", s.Revision.UID, labels[inplace.LabelUpdating] != "",
			labels[inplace.LabelFallback] != ""))
	case steps.SetGate:
		f.patch(s.Pod, s.Operations[1:])
		f.steps = append(f.steps, map[bool]string{true: "open ", false: "close "}[s.Open]+s.Pod.Name)
	case steps.PatchPod:
		if strings.HasPrefix(s.Why, "its volumes") {
			f.patch(s.Pod, s.Operations[1:])
			f.steps = append(f.steps, "renew "+s.Pod.Name)
			return
		}
		before := fixture.Images(s.Pod) + fixture.Sizes(s.Pod)
		f.patch(s.Pod, s.Operations[1:])
		if fixture.Images(s.Pod)+fixture.Sizes(s.Pod) != before {
			s.Pod.Generation++
		}
		if s.Resizes {
			f.steps = append(f.steps, fmt.Sprintf("%s gets %s", s.Pod.Name, s.Pod.Spec.Containers[0].Resources.Requests.Cpu()))
			return
		}
		f.steps = append(f.steps, fmt.Sprintf("%s is %s %s", s.Pod.Name, s.Pod.Labels[inplace.LabelRevisionHash], fixture.Images(s.Pod)))
	case steps.CreatePrePullPod:
		f.steps = append(f.steps, "pull "+s.Pod.Spec.NodeName)
		if err := f.pull.create(s); err != nil {
			f.t.Fatal(err)
		}
	case steps.DeletePrePullPod:
		f.steps = append(f.steps, "drop "+s.Pod.Spec.NodeName)
		f.pull.delete(s)
	case steps.PersistFallback:
		f.Seen.PersistedFallback = s.Fallback.Hash
	case steps.ForgetFallback:
		f.Seen.PersistedFallback = ""
	default:
		f.t.Fatalf("unexpected step %s", step.Describe())
	}
}

func (f *fleet) patch(object any, operations []jsonpatch.Operation) {
	f.t.Helper()
	if err := fixture.Apply(object, operations); err != nil {
		f.t.Fatal(err)
	}
}

// saidOf returns the status of the container or init container.
func saidOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// started returns the image name with which the container was started. Before its first restart that is the name in its status.
func (f *fleet) started(pod *corev1.Pod, container string) string {
	key := pod.Name + "/" + container
	if f.runs[key] == "" {
		f.runs[key] = saidOf(pod, container).Image
	}
	return f.runs[key]
}

// kubelet restarts containers that have another image, or another name for the same image. Images with "bad" in their name cannot be
// pulled.
func (f *fleet) kubelet(pod *corev1.Pod) {
	if before := pod.DeepCopy(); f.says {
		defer func() { pod.Status.Conditions = readiness.StoredConditions(before, pod, readiness.KubeletWriter) }()
		if before.Status.ObservedGeneration < pod.Generation {
			pod.Status.ObservedGeneration = pod.Generation
			return
		}
	}
	pod.Status.ObservedGeneration = pod.Generation
	running := true
	for _, want := range fixture.Living(pod.Spec) {
		status, bad := saidOf(pod, want.Name), strings.Contains(want.Image, "bad")
		running = running && !bad
		if f.started(pod, want.Name) == want.Image {
			continue
		}
		f.runs[pod.Name+"/"+want.Name] = want.Image
		*status = corev1.ContainerStatus{Name: want.Name, Image: fixture.Plain.Replace(want.Image)}
		if !bad {
			status.ImageID, status.ContainerID, status.State = "sha256:"+fixture.Plain.Replace(want.Image),
				fmt.Sprint(pod.Name, "/", want.Image, f.Seen.Now.Unix()), fixture.RunningSince(f.Seen.Now)
		}
	}
	is := func(yes bool) corev1.ConditionStatus {
		return map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[yes]
	}
	f.resize(pod)
	running = running && pod.Name != f.sick
	ready := running && !readiness.Closed(pod) && !readiness.Unopened(pod)
	if conditions.IsTrue(pod, corev1.ContainersReady) != running {
		fixture.ConditionIs(corev1.ContainersReady, is(running))(pod)
	}
	if conditions.IsTrue(pod, corev1.PodReady) != ready {
		fixture.ConditionIs(corev1.PodReady, is(ready))(pod)
		if running && !ready {
			conditions.Condition(pod, corev1.PodReady).Reason = readiness.ReasonGatesNotReady
		}
	}
}

// resize gives the container of the pod the resources in its spec, unless that is infeasible or its node has no capacity now.
func (f *fleet) resize(pod *corev1.Pod) {
	wants, has := pod.Spec.Containers[0].Resources, &pod.Status.ContainerStatuses[0].Resources
	var why string
	switch {
	case amounts.Of(wants).CPURequest == tooMuch:
		why = corev1.PodReasonInfeasible
	case f.short && *has != nil && amounts.Of(wants) != amounts.Of(**has):
		why = corev1.PodReasonDeferred
	default:
		*has = wants.DeepCopy()
		return
	}
	pod.Status.Conditions = readiness.WithCondition(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending,
		Status: corev1.ConditionTrue,
		Reason: why, Message: "too much", ObservedGeneration: pod.Generation})
}

func (f *fleet) expect(want ...string) {
	f.t.Helper()
	if !slices.Equal(f.steps, want) {
		f.t.Errorf("steps are\n\t%s\nnot\n\t%s", strings.Join(f.steps, "\n\t"), strings.Join(want, "\n\t"))
	}
	f.steps = nil
}

func (f *fleet) updated(revision, image string) {
	f.t.Helper()
	for _, pod := range f.Seen.Pods {
		if pod.Labels[inplace.LabelRevisionHash] != revision || fixture.Images(pod) != "app="+image ||
			pod.Labels[inplace.LabelTemplateGeneration] != "" || !conditions.IsTrue(pod, corev1.PodReady) {
			f.t.Errorf("%s has labels %v, %s and is ready: %t", pod.Name, pod.Labels, fixture.Images(pod), conditions.IsTrue(pod, corev1.PodReady))
		}
	}
}

func maxUnavailable(value string) func(*fleet) {
	return func(f *fleet) {
		f.DaemonSet.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.Parse(value))}
	}
}

func TestDaemonStepsOfASidecar(t *testing.T) {
	for name, gated := range map[string]bool{"gated": true, "without gates": false} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1)
			f.edit(fixture.App{Image: "v1", Mesh: "m1"})
			r := fixture.New(1, fixture.App{})
			f.Seen.Pods[0].Spec = fixture.PodOf(r, "made", fixture.ReplicaSetOf(r, "x", fixture.App{Image: "v1", Mesh: "m1"}, 1)).Spec
			f.Seen.Pods[0].Spec.NodeName, f.Seen.Pods[0].Status.InitContainerStatuses = "n1", r.Seen.Pods[0].Status.InitContainerStatuses
			f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2"
			if !gated {
				fixture.Ungated(f.Seen.Pods[0])
			}
			f.edit(fixture.App{Image: "v1", Mesh: "m2"})
			f.rest()
			if gated {
				f.expect("mark 3 true false", "close p1", "p1 is 3 app=v1,mesh=m2", "open p1", "mark 3 false false")
			} else {
				f.expect("mark 3 true false", "p1 is updating-in-place app=v1,mesh=m2", "p1 is 3 app=v1,mesh=m2", "mark 3 false false")
			}
			f.edit(fixture.App{Image: "v2", Mesh: "m1"})
			f.rest()
			if got := fixture.Images(f.Seen.Pods[0]); got != "app=v2,mesh=m1" || !conditions.IsTrue(f.Seen.Pods[0], corev1.PodReady) {
				t.Errorf("p1 has %s, and is ready: %t", got, conditions.IsTrue(f.Seen.Pods[0], corev1.PodReady))
			}
		})
	}
}

func TestDaemonStepsOfAnImage(t *testing.T) {
	f := newFleet(t, 2)
	f.edit(fixture.App{Image: "v2"})
	f.rest()
	f.expect("mark 2 true false", "close p1", "p1 is 2 app=v2", "open p1", "close p2", "p2 is 2 app=v2", "open p2", "mark 2 false false")
	f.updated("2", "v2")
	f.edit(fixture.App{Image: "v1"})
	f.rest()
	f.updated("1", "v1")
}

func TestDaemonStepsOfALabel(t *testing.T) {
	f := newFleet(t, 2)
	f.edit(fixture.App{Image: "v1", Chart: "c2"})
	f.rest()
	f.expect("mark 2 true false", "p1 is 2 app=v1", "p2 is 2 app=v1", "mark 2 false false")
	if f.Seen.Pods[0].Labels["chart"] != "c2" {
		t.Errorf("labels are %v", f.Seen.Pods[0].Labels)
	}
}

func TestDaemonStepsWithoutGate(t *testing.T) {
	f := newFleet(t, 1, func(f *fleet) { fixture.Ungated(f.Seen.Pods[0]) })
	f.edit(fixture.App{Image: "v2"})
	f.rest()
	f.expect("mark 2 true false", "p1 is updating-in-place app=v2", "p1 is 2 app=v2", "mark 2 false false")
	f.updated("2", "v2")
}

func TestDaemonUndoMidUpdateWithoutGate(t *testing.T) {
	f := newFleet(t, 2, func(f *fleet) { fixture.Ungated(f.Seen.Pods[0]); fixture.Ungated(f.Seen.Pods[1]) })
	f.edit(fixture.App{Image: "bad"})
	f.rest()
	f.expect("mark 2 true false", "p1 is updating-in-place app=bad")
	f.edit(fixture.App{Image: "v1"})
	f.rest()
	f.expect("mark 1 true false", "mark 2 false false", "p1 is updating-in-place app=v1", "p1 is 1 app=v1", "mark 1 false false")
}

func TestDaemonBudget(t *testing.T) {
	for _, test := range []struct {
		value   string
		at      int
		changes func(*fleet)
	}{
		{"1", 1, nil},
		{"2", 2, nil},
		{"50%", 3, nil}, // of five, rounded up
		{"100%", 5, nil},
		{"2", 1, func(f *fleet) { f.Seen.Pods = f.Seen.Pods[1:] }}, // a node without a pod counts
		{"2", 2, func(f *fleet) { f.ail("p1") }},                   // a pod that does not serve counts, and is updated without taking more of the budget
		{"1", 1, func(f *fleet) { f.ail("p5") }},
		{"2", 2, func(f *fleet) { f.addNode("n6").Spec.Taints = taint("NoExecute") }}, // a node that runs no pod does not count
		{"1", 0, func(f *fleet) { fixture.Unready(f.Seen.Pods[0]); f.away("n1") }},
		{"2", 1, func(f *fleet) { fixture.Unready(f.Seen.Pods[0]); f.away("n1") }},
	} {
		f := newFleet(t, 5, maxUnavailable(test.value))
		if test.changes != nil {
			test.changes(f)
		}
		f.edit(fixture.App{Image: "bad"})
		f.rest()
		if at := slices.DeleteFunc(slices.Clone(f.steps),
			func(step string) bool { return !strings.HasSuffix(step, "app=bad") }); len(at) != test.at {
			t.Errorf("maxUnavailable %s: %d pods at a time, want %d: %q", test.value, len(at), test.at, f.steps)
		}
	}
}

func taint(effect corev1.TaintEffect) []corev1.Taint {
	return []corev1.Taint{{Key: "dedicated", Value: "db", Effect: effect}}
}

// ail makes the container of the pod not ready.
func (f *fleet) ail(name string) {
	f.sick = name
	f.rest()
}

// away stops the node's kubelet.
func (f *fleet) away(node string) {
	f.node(node).Status.Conditions[0].Status = corev1.ConditionUnknown
}

func TestDaemonUndoOfABadImage(t *testing.T) {
	f := newFleet(t, 3, maxUnavailable("2"))
	f.edit(fixture.App{Image: "bad"})
	f.rest()
	f.steps = nil
	f.edit(fixture.App{Image: "v1"})
	f.rest()
	f.updatedAll("1", "app=v1")
	for _, step := range f.steps {
		if strings.Contains(step, "p3") {
			t.Errorf("p3 was never updated, and needs no undo: %q", f.steps)
		}
	}
}

func (f *fleet) updatedAll(revision, image string) {
	f.t.Helper()
	for _, pod := range f.Seen.Pods {
		if pod.Labels[inplace.LabelRevisionHash] != revision || fixture.Images(pod) != image {
			f.t.Errorf("%s is %s %s", pod.Name, pod.Labels[inplace.LabelRevisionHash], fixture.Images(pod))
		}
	}
}

func TestDaemonOnAnUnreachableNodeFollowsLater(t *testing.T) {
	f := newFleet(t, 2, maxUnavailable("2"))
	f.away("n2")
	fixture.Unready(f.Seen.Pods[1])
	f.edit(fixture.App{Image: "v2"})
	f.rest()
	f.expect("mark 2 true false", "close p1", "p1 is 2 app=v2", "open p1")
	f.node("n2").Status.Conditions[0].Status = corev1.ConditionTrue
	f.rest()
	f.updated("2", "v2")
}

func TestDaemonsOfSeveralRevisions(t *testing.T) {
	f := newFleet(t, 2)
	f.edit(fixture.App{Image: "v1", Env: "a"})
	f.Seen.Pods[1].Labels[inplace.LabelRevisionHash] = "2" // natively replaced
	f.edit(fixture.App{Image: "v2"})
	held := func(pod int, want bool) {
		t.Helper()
		if got, why := f.HoldsDeletion(f.Seen.Pods[pod]); got != want {
			t.Errorf("deletion of %s held: %t (%s)", f.Seen.Pods[pod].Name, got, why.Message)
		}
	}
	held(0, true)
	held(1, true)
	f.once()
	f.once()
	held(1, true)
	f.rest()
	f.expect("mark 3 true false", "close p1", "p1 is 3 app=v2", "open p1", "mark 3 false true")
	held(0, true) // the native controller may have decided to delete it before it moved
	held(1, false)
	f.Seen.Now = f.Seen.Now.Add(revisions.NudgeDaemonSetEvery)
	f.once()
	f.expect("mark 3 false true")
	f.Seen.Pods = f.Seen.Pods[:1]
	f.once()
	f.expect("mark 3 false false")
}

// TestDaemonOfARevisionThatIsGoneMakesCapacity: a pod that is partially patched to a revision that is gone must be replaced. It is Ready
// and not available, so it takes the budget of the pods for which its deletion would wait. If its deletion were held, nothing would ever
// happen.
func TestDaemonOfARevisionThatIsGoneMakesCapacity(t *testing.T) {
	f := newFleet(t, 2)
	f.edit(fixture.App{Image: "v2"})
	f.once()
	f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = podstate.HashPartial
	f.Seen.Pods[0].Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "gone", Generation: 1,
		Containers: map[string]readiness.MovedContainer{"app": {Image: "v3",
			ContainerID: f.Seen.Pods[0].Status.ContainerStatuses[0].ContainerID}}}.String()}
	if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held || why.Code != inplace.CodeRevisionGone {
		t.Errorf("deletion held: %t, %+v", held, why)
	}
	if held, _ := f.HoldsDeletion(f.Seen.Pods[1]); !held {
		t.Error("the deletion of the other pod is not held")
	}
}

func TestDaemonFallBack(t *testing.T) {
	f := newFleet(t, 2)
	f.edit(fixture.App{Image: "v2"})
	f.once()
	f.once()
	for _, step := range f.FallBack(inplace.Reason{Code: inplace.CodeRefused, Message: "policy"}).Steps {
		f.carryOut(step)
	}
	f.expect("mark 2 true false", "close p1", "open p1", "mark 2 false true")
	if decision := f.Decision(); decision.Held || decision.Reasons[0].Code != inplace.CodeFellBack {
		t.Errorf("decision is %+v after a fallback", decision)
	}
	if held, _ := f.HoldsDeletion(f.Seen.Pods[0]); held {
		t.Error("a deletion is held after a fallback")
	}
}

func TestDaemonsLeftWhenTheLabelIsTakenOff(t *testing.T) {
	f := newFleet(t, 2)
	f.edit(fixture.App{Image: "v2"})
	f.once()
	f.Seen.Mode = inplace.ModeNone
	f.once()
	f.expect("mark 2 true false", "mark 2 false true")
}

func TestDaemonsNative(t *testing.T) {
	one := intstr.FromInt32(1)
	for name, test := range map[string]struct {
		change func(*fleet)
		code   string
	}{
		"env":      {func(f *fleet) { f.edit(fixture.App{Image: "v1", Env: "a"}) }, inplace.CodeTemplateField},
		"OnDelete": {func(f *fleet) { f.DaemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType }, inplace.CodeStrategy},
		"maxSurge": {func(f *fleet) {
			f.DaemonSet.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: &one}
		}, inplace.CodeStrategy},
		"opted out": {func(f *fleet) { f.Seen.Mode = inplace.ModeRecreate }, inplace.CodeMode},
		"deleting":  {func(f *fleet) { f.DaemonSet.DeletionTimestamp = &metav1.Time{Time: fixture.Start} }, inplace.CodeDeleting},
		"too large": {func(f *fleet) { f.Seen.Unread = "too large" }, inplace.CodeTooLarge},
		"fallen back": {func(f *fleet) { f.UpdateRevision().Labels[inplace.LabelFallback] = times.Seconds(fixture.Start) },
			inplace.CodeFellBack},
		"the old revision is gone": {func(f *fleet) { f.Revisions = f.Revisions[1:] }, inplace.CodeRevisionGone},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.edit(fixture.App{Image: "v2"})
			test.change(f)
			decision := f.Decision()
			if decision.Held || len(decision.Reasons) == 0 || decision.Reasons[0].Code != test.code {
				t.Errorf("decision is %+v, want it native for %s", decision, test.code)
			}
			if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held != (test.code == inplace.CodeDeleting) || why.Code != test.code {
				t.Errorf("deletion held: %t, %+v, want it allowed for %s", held, why, test.code)
			}
			if plan := f.Plan(); len(plan.Steps) > 0 || plan.Phase != steps.PhaseNative {
				t.Errorf("%s with steps %v", plan.Phase, plan.Steps)
			}
		})
	}
}

// TestDaemonsAreNudgedAfterAGate: a deletion is held for as long as the gate of another pod may still make that pod unavailable. When that
// time is over, no event need occur, so the native controller is nudged.
func TestDaemonsAreNudgedAfterAGate(t *testing.T) {
	f := newFleet(t, 2)
	f.edit(fixture.App{Image: "v1", Env: "a"})
	gate := conditions.Condition(f.Seen.Pods[1], inplace.ConditionServing)
	gate.Reason, gate.LastTransitionTime = readiness.ReasonReopened, metav1.NewTime(f.Seen.Now.Add(-time.Second))
	if held, _ := f.HoldsDeletion(f.Seen.Pods[0]); !held {
		t.Fatal("the deletion is not held")
	}
	if plan := f.Plan(); len(plan.Steps) > 0 || plan.After != readiness.GateSeenAfter-time.Second {
		t.Errorf("looks again after %s, with steps %v", plan.After, plan.Steps)
	}
	f.Seen.Now = f.Seen.Now.Add(readiness.GateSeenAfter)
	if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held {
		t.Errorf("the deletion is still held: %s", why.Message)
	}
	if f.once(); f.UpdateRevision().Labels[inplace.LabelRenewed] == "" {
		t.Error("the native controller is not nudged")
	}
	if plan := f.Plan(); len(plan.Steps) > 0 {
		t.Errorf("it is nudged again: %v", plan.Steps)
	}
}

func TestDaemonRewrittenImageFallsBack(t *testing.T) {
	f := newFleet(t, 1, func(f *fleet) { f.Seen.Pods[0].Spec.Containers[0].Image = "mirror/v1" })
	f.edit(fixture.App{Image: "v2"})
	f.Seen.DryRun = dryrun.Result{UpdateRevision: "2", Unknown: "it is not known"}
	f.once()
	f.expect("mark 2 false true")
}

func TestHoldsDeletion(t *testing.T) {
	const housekept = inplace.CodeHousekeeping
	for name, test := range map[string]struct {
		change func(*fleet, *corev1.Pod)
		code   string // empty: held
	}{
		"untouched":          {func(*fleet, *corev1.Pod) {}, ""},
		"moved a moment ago": {func(_ *fleet, pod *corev1.Pod) { pod.Labels[inplace.LabelRevisionHash] = "2" }, ""},
		"restarts without gate": {func(_ *fleet, pod *corev1.Pod) {
			pod.Labels[inplace.LabelRevisionHash] = podstate.HashPartial
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "2"}.String()}
		}, ""},
		"undone before the stale deletion": {func(f *fleet, _ *corev1.Pod) { f.edit(fixture.App{Image: "v1"}) }, ""},
		"no revision yet":                  {func(f *fleet, _ *corev1.Pod) { f.Revisions = f.Revisions[:1] }, ""},
		"node not ready":                   {func(f *fleet, _ *corev1.Pod) { f.away("n1") }, ""},
		"cordoned": {func(f *fleet, _ *corev1.Pod) {
			f.node("n1").Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		}, ""},
		"tainted NoSchedule, where it may stay": {func(f *fleet, _ *corev1.Pod) { f.node("n1").Spec.Taints = taint("NoSchedule") }, ""},
		"tainted NoExecute":                     {func(f *fleet, _ *corev1.Pod) { f.node("n1").Spec.Taints = taint("NoExecute") }, housekept},
		"node gone":                             {func(f *fleet, _ *corev1.Pod) { f.Seen.Nodes = f.Seen.Nodes[1:] }, housekept},
		"no node left":                          {func(f *fleet, _ *corev1.Pod) { f.Seen.Nodes = []*corev1.Node{} }, housekept},
		"node not selected":                     {func(f *fleet, _ *corev1.Pod) { f.place(`"nodeSelector":{"disk":"ssd"}`) }, housekept},
		"node selected": {func(f *fleet, _ *corev1.Pod) {
			f.place(`"nodeSelector":{"disk":"ssd"}`)
			f.node("n1").Labels = map[string]string{"disk": "ssd"}
		}, ""},
		"node not affine": {func(f *fleet, _ *corev1.Pod) {
			f.place(`"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
				{"matchExpressions":[{"key":"disk","operator":"In","values":["ssd"]}]}]}}}`)
		}, housekept},
		"failed":         {func(_ *fleet, pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, housekept},
		"succeeded":      {func(_ *fleet, pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }, housekept},
		"not scheduled":  {func(_ *fleet, pod *corev1.Pod) { pod.Spec.NodeName = "" }, housekept},
		"one of several": {func(f *fleet, _ *corev1.Pod) { f.addPod("p9", "n1") }, housekept},
		"one is going": {func(f *fleet, _ *corev1.Pod) {
			f.addPod("p9", "n1").DeletionTimestamp = &metav1.Time{Time: fixture.Start}
		}, ""},
		"not in place": {func(f *fleet, _ *corev1.Pod) { f.edit(fixture.App{Image: "v1", Env: "a"}) }, inplace.CodeTemplateField},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.edit(fixture.App{Image: "v2"})
			test.change(f, f.Seen.Pods[0])
			held, why := f.HoldsDeletion(f.Seen.Pods[0])
			if held != (test.code == "") || why.Code != test.code {
				t.Errorf("held is %t, %+v; want %q", held, why, test.code)
			}
		})
	}
}

// TestDaemonsOfADaemonSetBeingDeletedStay: the native controller does nothing to a DaemonSet that is being deleted, once it knows of the
// deletion. The leader no longer renews the hold.
func TestDaemonsOfADaemonSetBeingDeletedStay(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fleet)
		held   bool
		code   string
	}{
		"updated in place":           {func(*fleet) {}, true, inplace.CodeDeleting},
		"long ago":                   {func(f *fleet) { f.HeldSince = f.Seen.Now.Add(-time.Hour) }, true, inplace.CodeDeleting},
		"one of the update revision": {func(f *fleet) { f.Seen.Pods[0].Labels[inplace.LabelRevisionHash] = "2" }, true, inplace.CodeDeleting},
		"its node is gone":           {func(f *fleet) { f.Seen.Nodes = f.Seen.Nodes[1:] }, false, inplace.CodeHousekeeping},
		"not managed":                {func(f *fleet) { f.Seen.Mode = inplace.ModeNone }, false, inplace.CodeMode},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.edit(fixture.App{Image: "v2"})
			f.DaemonSet.DeletionTimestamp = &metav1.Time{Time: fixture.Start}
			test.change(f)
			if held, why := f.HoldsDeletion(f.Seen.Pods[0]); held != test.held || why.Code != test.code {
				t.Errorf("held is %t, %+v; want %t, %s", held, why, test.held, test.code)
			}
		})
	}
}

// place gives all revisions these scheduling constraints.
func (f *fleet) place(where string) {
	f.t.Helper()
	template, err := apps.ParseTemplate([]byte(`{"metadata":{"labels":{"app":"web"}},"spec":{` + where +
		`,"containers":[{"name":"app","image":"v2"}]}}`))
	if err != nil {
		f.t.Fatal(err)
	}
	f.DaemonSet.Spec.Template = template
	for _, revision := range f.Revisions {
		raw := strings.Replace(rawOf(template), "v2", "v"+revision.Labels[inplace.LabelRevisionHash], 1)
		revision.Data = json.RawMessage(`{"spec":{"template":` + raw + `}}`)
	}
}

func TestRevisionTemplate(t *testing.T) {
	for data, want := range map[string]string{
		`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null}}}}`: "",
		`{"spec":{"volumeClaimTemplates":[]}}`:                                             "no pod template",
		`{"spec":7}`:                                                                       "cannot unmarshal",
		``:                                                                                 "unexpected end",
	} {
		template, err := (&apps.ControllerRevision{Data: json.RawMessage(data)}).Template()
		switch {
		case want == "" && (err != nil || !apps.SameTemplate(template, apps.Template{})):
			t.Errorf("%s is %s, %v", data, rawOf(template), err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want one about %q", data, err, want)
		}
	}
}

// TestCreationPastTheWebhooks: a pod that is created in the middle of an update gets its gate from a webhook. A pod without one shows that
// the API server did not call the webhook.
func TestCreationPastTheWebhooks(t *testing.T) {
	for name, c := range map[string]struct {
		ungated bool
		age     time.Duration
		want    bool
	}{
		"created before the update":   {true, time.Hour, false},
		"in its middle, without gate": {true, time.Minute, true},
		"in its middle, with gate":    {false, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3)
			f.edit(fixture.App{Image: "v2"})
			f.UpdateRevision().Labels[inplace.LabelUpdating] = times.Seconds(f.Seen.Now.Add(-10 * time.Minute))
			other := f.Seen.Pods[2]
			other.CreationTimestamp = metav1.NewTime(f.Seen.Now.Add(-c.age))
			if c.ungated {
				other.Spec.ReadinessGates = nil
			}
			if plan := f.Plan(); (plan.Bypassed != "") != c.want {
				t.Errorf("a bypass is reported: %q, phase %s", plan.Bypassed, plan.Phase)
			}
		})
	}
}

// TestCreationsPastTheWebhooksGoOn: if such creations go on, the DaemonSet controller takes pods down at the same time as Stayput. Stayput
// is the one that can be told to stop.
func TestCreationsPastTheWebhooksGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		ages                []time.Duration
		closes, held, waits bool
	}{
		"none":                             {nil, true, true, false},
		"one, just now":                    {[]time.Duration{2 * time.Second}, false, true, true},
		"one, and quiet since":             {[]time.Duration{podstate.QuietAfterBypass + time.Second}, true, true, false},
		"two at once":                      {[]time.Duration{time.Second, 4 * time.Second}, false, true, true},
		"two at once, and quiet since":     {[]time.Duration{time.Minute, time.Minute + time.Second}, true, true, false},
		"they go on":                       {[]time.Duration{time.Second, time.Second + 2*podstate.QuietAfterBypass}, false, false, false},
		"they went on":                     {[]time.Duration{time.Minute, 2 * time.Minute}, false, false, false},
		"the one before is long forgotten": {[]time.Duration{time.Minute, 2 * podstate.BypassMemory}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 4)
			f.edit(fixture.App{Image: "v2"})
			f.UpdateRevision().Labels[inplace.LabelUpdating] = times.Seconds(f.Seen.Now.Add(-time.Hour))
			for i, age := range c.ages {
				created := f.Seen.Pods[len(f.Seen.Pods)-1-i]
				created.CreationTimestamp, created.Spec.ReadinessGates = metav1.NewTime(f.Seen.Now.Add(-age)), nil
			}
			plan := f.Plan()
			if closes := slices.ContainsFunc(plan.Steps, steps.Closes); closes != c.closes || plan.Decision.Held != c.held ||
				(plan.Phase == steps.PhaseWaiting) != c.waits {
				t.Errorf("a gate closes: %v, held %v %s, phase %s: %s", closes, plan.Decision.Held, plan.Decision.Reasons, plan.Phase, plan.Message)
			}
			if !c.held && plan.Decision.Reasons[0].Code != inplace.CodeBypassed {
				t.Errorf("it ends with %v for %s", plan.Steps, plan.Decision.Reasons)
			}
		})
	}
}

func newSizedFleet(t *testing.T, nodes int) *fleet {
	return newFleetOf(t, nodes, fixture.App{Image: "v1", CPU: "100m"})
}

// newFleetOf returns a fleet whose pods were created from that app.
func newFleetOf(t *testing.T, nodes int, a fixture.App) *fleet {
	return newFleet(t, nodes, func(f *fleet) {
		f.Revisions = nil
		f.edit(a)
		for _, pod := range f.Seen.Pods {
			of := f.DaemonSet.Spec.Template.Typed().Spec.Containers[0]
			pod.Spec.Containers[0].Resources, pod.Spec.Containers[0].ResizePolicy = *of.Resources.DeepCopy(), of.ResizePolicy
			for _, side := range f.DaemonSet.Spec.Template.Typed().Spec.Containers[1:] {
				status := pod.Status.ContainerStatuses[0]
				status.Name, status.Image, status.ImageID, status.ContainerID = side.Name, side.Image, "sha256:"+side.Image, pod.Name+"/"+side.Image
				pod.Spec.Containers, pod.Status.ContainerStatuses = append(pod.Spec.Containers, side), append(pod.Status.ContainerStatuses, status)
			}
			f.kubelet(pod)
		}
	})
}

func TestDaemonStepsOfResources(t *testing.T) {
	f := newSizedFleet(t, 2)
	f.edit(fixture.App{Image: "v1", CPU: "200m"})
	f.rest()
	f.expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "p1 is 2 app=v1",
		"p2 is updating-in-place app=v1", "p2 gets 200m", "p2 is 2 app=v1", "mark 2 false false")
	f.updated("2", "v1")
}

func TestDaemonUndoOfResourcesMidUpdate(t *testing.T) {
	f := newSizedFleet(t, 2)
	f.edit(fixture.App{Image: "v1", CPU: "200m"})
	for range 3 {
		f.once()
	}
	f.expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m")
	f.edit(fixture.App{Image: "v1", CPU: "100m"})
	f.rest()
	f.expect("mark 1 true false", "mark 2 false false", "p1 is updating-in-place app=v1", "p1 gets 100m", "p1 is 1 app=v1",
		"mark 1 false false")
}

func TestDaemonStepsOfResourcesAndAnImage(t *testing.T) {
	f := newSizedFleet(t, 1)
	f.edit(fixture.App{Image: "v2", CPU: "200m"})
	f.rest()
	f.expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "close p1", "p1 is 2 app=v2", "open p1",
		"mark 2 false false")
	f.updated("2", "v2")
}

// TestDaemonFurtherEditOfAnImage: a pod is partially patched to a revision, and the next revision has the same resources. The pod still has
// to get them.
func TestDaemonFurtherEditOfAnImage(t *testing.T) {
	f := newSizedFleet(t, 1)
	f.edit(fixture.App{Image: "v1", CPU: "200m"})
	for range 2 {
		f.once()
	}
	f.expect("mark 2 true false", "p1 is updating-in-place app=v1")
	f.edit(fixture.App{Image: "v2", CPU: "200m"})
	f.rest()
	f.updated("3", "v2")
	if cpu := f.Seen.Pods[0].Spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "200m" {
		t.Errorf("it has %s", cpu)
	}
}

// TestDaemonResourcesThatRestart: if resizePolicy asks for a restart with other CPU, the pod is resized like a pod that gets another image.
// An undo takes the same way.
func TestDaemonResourcesThatRestart(t *testing.T) {
	there := []string{"mark 2 true false", "close p1", "p1 is updating-in-place app=v1", "p1 gets 200m", "open p1", "p1 is 2 app=v1",
		"mark 2 false false"}
	back := []string{"close p1", "p1 is updating-in-place app=v1", "p1 gets 100m", "open p1", "p1 is 1 app=v1", "mark 1 false false"}
	for steps, then := range map[int][]string{
		1: {"mark 2 false false"},
		2: {"open p1", "mark 2 false false"},
		3: {"mark 1 true false", "mark 2 false false", "p1 is 1 app=v1", "open p1", "mark 1 false false"},
		4: slices.Concat([]string{"open p1", "mark 1 true false", "mark 2 false false"}, back),
		5: slices.Concat([]string{"p1 is 2 app=v1", "mark 1 true false", "mark 2 false false"}, back),
		7: slices.Concat([]string{"mark 1 true false"}, back),
	} {
		f := newFleetOf(t, 1, fixture.App{Image: "v1", CPU: "100m", Renews: true})
		f.edit(fixture.App{Image: "v1", CPU: "200m", Renews: true})
		for range steps {
			f.once()
		}
		f.edit(fixture.App{Image: "v1", CPU: "100m", Renews: true})
		f.rest()
		f.expect(append(slices.Clone(there[:min(steps, len(there))]), then...)...)
		f.updatedAll("1", "app=v1")
	}
}

func TestDaemonInfeasibleResources(t *testing.T) {
	f := newSizedFleet(t, 2)
	f.edit(fixture.App{Image: "v1", CPU: "9"})
	f.rest()
	f.expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 9", "p2 is updating-in-place app=v1", "p2 gets 9",
		"mark 2 false true")
}

// TestDaemonStepsOfResourcesAndARestart: a pod that has been resized still has to be restarted.
func TestDaemonStepsOfResourcesAndARestart(t *testing.T) {
	f := newSizedFleet(t, 1)
	f.says = true
	f.edit(fixture.App{Image: "v1", CPU: "200m", Restarted: "1"})
	for range 30 {
		f.once()
	}
	f.expect("mark 2 true false", "p1 is updating-in-place app=v1", "p1 gets 200m", "renew p1", "close p1", "p1 is 2 app="+another,
		"mark 2 false false")
	f.updated("2", another)
}
