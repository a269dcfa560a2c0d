//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stayput/stayput/inplace"
)

// readyIsWhatItIs checks which Ready is stored when a kubelet reports about a pod that is out of service. The pod is on a node that does
// not exist, so no kubelet reports about it. Dry runs do not change it.
func readyIsWhatItIs(t *testing.T) {
	s := &stage{T: t, namespace: createNamespace(t, labelled)} // without a Recorder: no workload owns the pod
	t.Cleanup(func() { deleteNamespace(t, s.namespace) })
	s.usable()
	s.kubectl(manifest(t, s.leftover("orphan")), "create", "-f", "-")
	owned := s.leftover("owned")
	owned.OwnerReferences = s.someOwner()
	s.kubectl(manifest(t, owned), "create", "-f", "-")
	for _, name := range []string{"orphan", "owned"} {
		s.kubectl("", "set", "image", "pod/"+name, "app="+appImage("v2"), "side="+appImage("v2")) // its generation is 2
	}
	const out, unready, serves = "False " + outReason, "False ContainersNotReady", "True"
	later, over := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	s.storesAll("owned", takenOutAt(1, later), map[string]reporting{
		"both containers are others":       {func(*report) {}, serves},
		"one was not to restart":           {func(r *report) { r.mark(","+sideMoved, ""); r.side().ContainerID = "cri://old-side" }, serves},
		"one has the same image, by name":  {func(r *report) { r.side().ImageID, r.side().Image = "sha256:old", "v2" }, serves},
		"one has become unready":           {func(r *report) { r.side().ContainerID = "cri://old-side"; r.unready() }, unready},
		"the new one is not ready":         {func(r *report) { r.unready() }, unready},
		"one does not run, and did before": {func(r *report) { r.side().State = corev1.ContainerState{}; r.unready() }, unready},
		"one is the same":                  {func(r *report) { r.side().ContainerID = "cri://old-side" }, out},
		"one has no ID":                    {func(r *report) { r.side().ContainerID = "" }, out},
		"one came again as it was":         {func(r *report) { r.side().ImageID = "sha256:old" }, out},
		"one is unready, as it was": {func(r *report) {
			r.mark(`old-side"`, `old-side","unready":true`)
			r.side().ContainerID = "cri://old-side"
			r.unready()
		}, out},
		"one is not reported":          {func(r *report) { r.side().Name = "other" }, out},
		"the old container is unknown": {func(r *report) { r.mark(`old-side"`, `old-side","unsure":true`) }, out},
		"nothing was to restart":       {func(r *report) { r.mark(appMoved+","+sideMoved, "") }, out},
		"the mark is of another patch": {func(r *report) { r.mark(`"generation":2`, `"generation":1`) }, out},
		"it has not been patched":      {func(r *report) { delete(r.annotations, moveAnnotation) }, out},
		"unready, and not patched":     {func(r *report) { delete(r.annotations, moveAnnotation); r.unready() }, out},
		"the patch is not seen":        {func(r *report) { r.status.ObservedGeneration = 1 }, out},
		"no kubelet reports":           {func(r *report) { r.group = "system:authenticated"; r.side().ContainerID = "cri://old-side" }, serves},
	})
	s.storesAll("owned", takenOutAt(2, later), map[string]reporting{"it was taken out since": {func(*report) {}, out}})
	s.storesAll("owned", takenOutAt(1, over), map[string]reporting{
		"it was not patched in time": {func(r *report) { delete(r.annotations, moveAnnotation) }, serves},
		"it stops for too long":      {func(r *report) { r.side().ContainerID = "cri://old-side" }, out},
	})
	s.storesAll("owned", corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
		map[string]reporting{"another has said that it is not Ready": {func(*report) {}, serves}})
	s.storesAll("orphan", takenOutAt(1, later), map[string]reporting{
		"its workload is gone": {func(r *report) { delete(r.annotations, moveAnnotation) }, serves}})
}

// reporting is a report of a kubelet, by what differs from that of a pod that has restarted, and the Ready that is stored then: its status
// and its reason.
type reporting struct {
	change func(*report)
	stored string
}

const (
	appMoved  = `"app":{"image":"v2","imageID":"sha256:old","containerID":"cri://old-app","at":"NOW"}`
	sideMoved = `"side":{"image":"v2","imageID":"sha256:old","containerID":"cri://old-side","at":"NOW"}`
)

// takenOutAt returns the Ready of a pod that was taken out of service at that generation, a minute ago, until that time.
func takenOutAt(generation int64, until time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: outReason, Message: outMessage(until),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute))}
}

// outMessage returns the message of such a Ready.
func outMessage(until time.Time) string {
	return "Stayput keeps the pod out of service before its containers restart, at most until " + until.UTC().Format(time.RFC3339)
}

// leftover returns a pod that no workload owns and no kubelet runs.
func (s *stage) leftover(name string) *corev1.Pod {
	spec := web(1, withSide).Spec.Template.Spec
	spec.NodeName, spec.TerminationGracePeriodSeconds = "nowhere", new(int64)
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       spec,
	}
}

// someOwner returns a controller that does nothing and stays, so that the garbage collector leaves its pods alone.
func (s *stage) someOwner() []metav1.OwnerReference {
	s.Helper()
	owner, err := clients.CoreV1().ConfigMaps(s.namespace).Create(s.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
}

// report is a report about a pod by a client of a group, and Stayput's annotations on the pod.
type report struct {
	group       string
	annotations map[string]string
	status      corev1.PodStatus
}

// restarted returns the report about a pod that was patched while it was out of service. Both of its containers have been replaced, and are
// ready. Its kubelet has never seen it go.
func restarted() *report {
	now, old := metav1.Now(), metav1.NewTime(time.Now().Add(-time.Hour))
	mark := `{"hash":"h","generation":2,"containers":{` + appMoved + "," + sideMoved + `}}`
	r := &report{
		group:       "system:nodes",
		annotations: map[string]string{moveAnnotation: strings.ReplaceAll(mark, "NOW", now.UTC().Format(time.RFC3339))},
		status: corev1.PodStatus{
			ObservedGeneration: 2,
			Conditions: []corev1.PodCondition{
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: old},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: old},
			},
		},
	}
	for _, name := range []string{"app", "side"} {
		r.status.ContainerStatuses = append(r.status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, ContainerID: "cri://new-" + name, ImageID: "sha256:new", Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(time.Minute))}},
		})
	}
	return r
}

func (r *report) side() *corev1.ContainerStatus { return &r.status.ContainerStatuses[1] }

// unready changes the report to one in which side is not ready.
func (r *report) unready() {
	r.side().Ready = false
	for i := range r.status.Conditions {
		r.status.Conditions[i].Status, r.status.Conditions[i].Reason = corev1.ConditionFalse, "ContainersNotReady"
	}
}

// mark replaces a part of Stayput's mark.
func (r *report) mark(old, by string) {
	_, rest, _ := strings.Cut(r.annotations[moveAnnotation], `"at":"`)
	at, _, _ := strings.Cut(rest, `"`)
	r.annotations[moveAnnotation] = strings.Replace(r.annotations[moveAnnotation], strings.ReplaceAll(old, "NOW", at), by, 1)
}

// storesAll gives the pod that Ready, as Stayput would, and checks what is stored of each report.
func (s *stage) storesAll(pod string, stored corev1.PodCondition, reports map[string]reporting) {
	s.Helper()
	patch := manifest(s.T, map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{stored}}})
	s.kubectl("", "patch", "pod", pod, "--subresource=status", "--type=strategic", "-p", patch)
	for name, of := range reports {
		s.stores(name, pod, of, stored.LastTransitionTime.Time)
	}
}

// stores checks the Ready that is stored of a report. A pod that comes back is not Ready for longer than since it was out of service.
func (s *stage) stores(name, pod string, of reporting, out time.Time) {
	s.Helper()
	r := restarted()
	of.change(r)
	patch := manifest(s.T, map[string]any{"metadata": map[string]any{"annotations": r.annotations}, "status": r.status})
	const ready = `.status.conditions[?(@.type=="Ready")]`
	said := s.kubectl("", "patch", "pod", pod, "--subresource=status", "--type=merge", "-p", patch, "--dry-run=server",
		"--as=system:node:nowhere", "--as-group="+r.group, "--as-group=system:masters", // kubectl reads objects that a kubelet may not read
		"-o", "jsonpath={"+ready+".lastTransitionTime} {"+ready+".status} {"+ready+".reason}")
	text, got, _ := strings.Cut(strings.TrimSpace(said), " ")
	if got != of.stored {
		s.Errorf("%s: Ready is %q instead of %q", name, got, of.stored)
	}
	since, err := time.Parse(time.RFC3339, text)
	if asked := r.group == "system:nodes"; err != nil || asked && got == "True" && since.Before(out.Truncate(time.Second)) {
		s.Errorf("%s: Ready is True since %q, and the pod was out of service at %s: %v", name, text, out.UTC().Format(time.RFC3339), err)
	}
}

// readyOnlyWithContainers checks every state of a pod that was ever stored: Ready is what its containers and its gates say, unless Stayput
// has taken it out of service.
func readyOnlyWithContainers(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(4))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.completes("web")
	for _, wrong := range s.recorder.unlikeItself() {
		s.Error(wrong)
	}
	s.allWereOut("web")
	s.isReadySince("web")
	s.leavesNothing("web")
}

// isReadySince checks that the Ready of each pod of a workload has its transition after the pod was out of service. Otherwise the pod would
// count as available at once.
func (s *stage) isReadySince(name string) {
	s.Helper()
	out := map[types.UID]time.Time{}
	for _, e := range s.recorder.inOrder() {
		if pod, is := e.object.(*corev1.Pod); is && isOut(pod) {
			out[pod.UID] = conditionOf(pod, corev1.PodReady).LastTransitionTime.Time
		}
	}
	for _, pod := range s.pods(name) {
		if condition := conditionOf(pod, corev1.PodReady); condition.LastTransitionTime.Time.Before(out[pod.UID]) {
			s.Errorf("pod %s was out of service at %s, and its Ready is %+v", pod.Name, out[pod.UID], *condition)
		}
	}
}

// leavesNothing checks that the pods of a workload have the Ready of their kubelets, and no condition of Stayput.
func (s *stage) leavesNothing(name string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		if condition := conditionOf(pod, corev1.PodReady); condition.Reason != "" || condition.Message != "" {
			s.Errorf("the Ready of pod %s is %+v", pod.Name, *condition)
		}
		for _, each := range pod.Status.Conditions {
			if strings.HasPrefix(string(each.Type), "stayput.dev/") {
				s.Errorf("pod %s has the condition %+v", pod.Name, each)
			}
		}
	}
}

// staysFor is how long a pod is out of service in these scenarios: for more ticks of its kubelet, one every ten seconds, than where no
// manager answers (takenBack).
const staysFor = takenBack + 15*time.Second

// readyStaysOut checks that a pod that drains is never Ready as long as managers answer, whatever its kubelet reports meanwhile. A label of
// the workload ends the drain. Without a readiness probe the kubelet may never see that the pod was not Ready.
func readyStaysOut(t *testing.T, options ...option) {
	s := newStage(t, unending)
	s.create(web(2, append(options, minReadySeconds(3))...))
	before := s.takesOneOut()
	s.passes(staysFor)
	s.wait("a pod to be still out of its Service", draining("web"))
	s.kubectl("", "label", ref("web"), drainLabel+"=500ms")
	s.completes("web")
	s.outUntilStopped()
	s.kept("web", before, once)
	s.isReadySince("web")
	s.leavesNothing("web")
}

// unprobed takes the readiness probe off the application.
func unprobed(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].ReadinessProbe = nil }

// outUntilStopped checks that no pod that was out of service has been Ready before its container stopped.
func (s *stage) outUntilStopped() {
	s.Helper()
	out := map[types.UID]*corev1.Pod{}
	for _, e := range s.recorder.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if !is {
			continue
		}
		if isOut(pod) && out[pod.UID] == nil {
			out[pod.UID] = pod
		}
		if was := out[pod.UID]; was != nil && ready(pod) && stillRuns(was, pod) {
			s.Errorf("pod %s was out of service, and at version %s it is Ready while its old container runs", pod.Name, pod.ResourceVersion)
		}
	}
}

// stillRuns reports whether the first container is the one that it was.
func stillRuns(was, is *corev1.Pod) bool {
	before, now := was.Status.ContainerStatuses, is.Status.ContainerStatuses
	return len(before) > 0 && len(now) > 0 && now[0].ContainerID == before[0].ContainerID && now[0].State.Running != nil
}

// readyIsTakenBack ends what keeps a pod out of service that drains for a restart of its own.
func readyIsTakenBack(t *testing.T) {
	killAll := func(s *stage) {
		for _, process := range s.managerProcesses() {
			kill(s, process)
		}
		removeManagers(s)
	}
	for what, happens := range map[string]func(s *stage, node string){
		"every manager killed": func(s *stage, _ string) { killAll(s) },
		"every manager killed, its kubelet restarted": func(s *stage, node string) {
			killAll(s)
			s.stopKubelet(node)
			startKubelet(s.T, node)
		},
		"label removed": func(s *stage, _ string) { s.label(updateLabel + "-") },
	} {
		t.Run(what, func(t *testing.T) { isTakenBackWhen(t, happens) })
	}
}

// isTakenBackWhen checks that the pod is Ready again soon after that. No update is in progress, so no controller deletes the pod: its
// kubelet makes it Ready.
func isTakenBackWhen(t *testing.T, happens func(s *stage, node string)) {
	long(t)
	s := newStage(t, unending)
	s.create(web(2))
	s.service("web", corev1.ServiceInternalTrafficPolicyCluster)
	s.offered("web")
	t.Cleanup(func() { restoreManagers(t) })
	before := s.pods("web")
	one := firstOf(before)
	s.begin("drained", Rules{Created: none, Deleted: none, UpdatesOnly: "none", Outage: true})
	s.asks(one, "app")
	s.wait("the pod to be out of its Service", func(w world) error {
		if pod := w.pods[one.UID]; !isOut(pod) || w.offers(pod) {
			return errors.New("it is not: " + describePod(pod))
		}
		return nil
	})
	happens(s, one.Spec.NodeName)
	s.noneStaysOut(time.Now())
	s.offered("web")
	s.kept("web", before, nil)
	s.leavesNothing("web")
	s.kubectl("", "annotate", "pod", one.Name, inplace.AnnotationRestartContainers+"-") // the next managers would do what it asks for
}

// readyAfterStartup tests a startup probe. Kubelets 1.35 and 1.36 report a container as started when it has just restarted, and take that
// back with the next run of the startup probe (kubernetes#141155). The judge checks that no other pod is taken out of service in between.
func readyAfterStartup(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(3, rolling("1", "0"), starting))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.completes("web")
}

// starting gives the application a startup probe besides its readiness probe, with fewer runs.
func starting(d *appsv1.Deployment) {
	app := &d.Spec.Template.Spec.Containers[0]
	app.StartupProbe = app.ReadinessProbe.DeepCopy()
	app.StartupProbe.PeriodSeconds, app.StartupProbe.FailureThreshold = 3, 30
}

// unlikeItself returns the states of pods, of all that were ever stored, in which Ready differs from ContainersReady and all gates, and
// Stayput has not taken the pod out of service.
func (r *Recorder) unlikeItself() []string {
	var wrong []string
	for _, e := range r.inOrder() {
		pod, is := e.object.(*corev1.Pod)
		if !is || isOut(pod) {
			continue
		}
		containers := conditionOf(pod, corev1.ContainersReady)
		should := allGatesOpen(pod) && containers != nil && containers.Status == corev1.ConditionTrue
		if ready(pod) != should {
			wrong = append(wrong, fmt.Sprintf("pod %s at version %s: Ready is %t, and should be %t", pod.Name, pod.ResourceVersion,
				ready(pod), should))
		}
	}
	return wrong
}

// allGatesOpen looks at the gates of other controllers, and at that of pre-pull pods, which never opens.
func allGatesOpen(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		c := conditionOf(pod, g.ConditionType)
		return c == nil || c.Status != corev1.ConditionTrue
	})
}
