//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resizing are labels with which containers are resized in place although they do not say whether they need a restart for it.
var resizing = with(labelled, resizeSetting, "in-place")

// resizes changes CPU and memory of running pods. The changes suite has the edits of them that are native.
func resizes(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"memory up of a DaemonSet":   resizeMemory,
		"undo":                       resizeUndone,
		"waits for room":             resizeDeferred,
		"more than any node has":     resizeInfeasible,
		"less memory than is in use": resizeBelowUsage,
		"with a restart":             resizeRestarts,
	})
	nightly(t, map[string]func(*testing.T){
		"with a LimitRange's default": resizeWithDefaults,
		"beyond a quota":              resizeBeyondQuota,
		"more than one node can have": resizeTooLarge,
		"more than one node has":      resizeOfPodsThatDoNotFit,
	})
}

func resizeMemory(t *testing.T) {
	s := newDaemonScenario(t, resizing)
	s.install(agent(templated(sized("10m", "32Mi"))))
	s.inPlace(agents, nil, func() { s.setResources(agents, "--requests=cpu=10m,memory=48Mi", "--limits=memory=96Mi") })
	s.sized(agents, "10m")
	s.spelled(agents)
}

// spelled checks that the pods' CPU and memory are written as in the template, as those of new pods would be.
func (s *scenario) spelled(name string) {
	s.Helper()
	want := text(s.templateOf(name).Spec.Containers[0].Resources)
	for _, pod := range s.pods(name) {
		if got := text(pod.Spec.Containers[0].Resources); got != want {
			s.Errorf("pod %s has %s, and the template of %s %s", pod.Name, got, name, want)
		}
	}
}

func text(resources corev1.ResourceRequirements) string {
	raw, err := json.Marshal(resources)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// sized sets the first container's requests, and a memory limit.
func sized(cpu, memory string) option {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		}
	}
}

// setResources runs kubectl set resources on the first container.
func (s *scenario) setResources(name string, flags ...string) string {
	s.Helper()
	return s.kubectl("", append([]string{"set", "resources", ref(name), "--containers=app"}, flags...)...)
}

// patchApp merges fields into the first container.
func (s *scenario) patchApp(name, fields string) string {
	s.Helper()
	return s.kubectl("", "patch", ref(name), "--type=strategic", "-p",
		`{"spec":{"template":{"spec":{"containers":[{"name":"app",`+fields+`}]}}}}`)
}

// sized checks each pod of a complete workload: its kubelet has applied the resources of its spec, and they have so much CPU.
func (s *scenario) sized(name, cpu string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		if why := unsized(pod, cpu); why != nil {
			s.Errorf("%s is complete, but pod %s: %v", name, pod.Name, why)
		}
	}
}

func unsized(pod *corev1.Pod, cpu string) error {
	want := resource.MustParse(cpu)
	for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := podCondition(pod, kind); c != nil {
			return fmt.Errorf("%s: %s %s", kind, c.Reason, c.Message)
		}
	}
	spec := pod.Spec.Containers[0].Resources
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != pod.Spec.Containers[0].Name {
			continue
		}
		if status.Resources == nil || !spec.Requests.Cpu().Equal(want) || !status.Resources.Requests.Cpu().Equal(want) ||
			!status.Resources.Limits.Memory().Equal(*spec.Limits.Memory()) {
			return fmt.Errorf("it has %v, and its kubelet reports %v", spec, status.Resources)
		}
	}
	return nil
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func resizeUndone(t *testing.T) {
	s := newScenario(t, resizing)
	s.create(web(3, sized("10m", "32Mi")))
	s.inPlace("web", nil, func() {
		s.expectIn(s.setResources("web", "--requests=cpu=20m"), "Warning: stayput: in place: resizes app, no restart")
	})
	s.inPlace("web", nil, func() { s.rollout("undo", "web") })
	s.sized("web", "10m")
	s.history("web", "2", "3")
}

// crowded creates a Deployment of one pod whose node has no capacity for the coming resize, until uncrowd is called.
func (s *scenario) crowded() (uncrowd func()) {
	s.Helper()
	s.create(web(1, sized("10m", "32Mi")))
	return s.occupy(s.onlyPod("web").Spec.NodeName, corev1.ResourceMemory)
}

// occupy uses more than half of a node's capacity of a resource, until uncrowd is called.
func (s *scenario) occupy(node string, what corev1.ResourceName) (uncrowd func()) {
	s.Helper()
	other := createNamespace(s.T, unlabelled)
	s.Cleanup(func() { deleteNamespace(s.T, other) })
	filler := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "filler"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{container("app", 8080)}}}
	filler.Spec.Containers[0].Resources.Requests = corev1.ResourceList{what: s.share(node, what)}
	if _, err := clients.CoreV1().Pods(other).Create(s.Context(), filler, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.eventually("the filler", func(ctx context.Context) error {
		found, err := clients.CoreV1().Pods(other).Get(ctx, "filler", metav1.GetOptions{})
		if err == nil && found.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s %s", found.Status.Phase, found.Status.Message)
		}
		return err
	})
	return func() {
		if err := clients.CoreV1().Pods(other).Delete(s.Context(), "filler", *metav1.NewDeleteOptions(1)); err != nil {
			s.Fatal(err)
		}
	}
}

// share returns more than half of the node's capacity of a resource; of memory, whole bytes.
func (s *scenario) share(node string, what corev1.ResourceName) resource.Quantity {
	s.Helper()
	found, err := clients.CoreV1().Nodes().Get(s.Context(), node, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	all := found.Status.Allocatable[what]
	if what == corev1.ResourceMemory {
		return *resource.NewQuantity(all.Value()/10*6, resource.BinarySI)
	}
	return *resource.NewMilliQuantity(all.MilliValue()/10*6, resource.DecimalSI)
}

func (s *scenario) onlyPod(name string) *corev1.Pod {
	s.Helper()
	for _, pod := range s.pods(name) {
		return pod
	}
	s.Fatalf("%s has no pods", name)
	return nil
}

// asksForTooMuch edits the only pod's memory request to more than its node has left.
func (s *scenario) asksForTooMuch() {
	s.Helper()
	most := s.share(s.onlyPod("web").Spec.NodeName, corev1.ResourceMemory)
	s.setResources("web", "--requests=memory="+most.String(), "--limits=memory="+most.String())
	s.wait("the resize to be deferred", of("web", func(now workload) error {
		for _, pod := range now.pods {
			if c := podCondition(pod, corev1.PodResizePending); c != nil && c.Reason == corev1.PodReasonDeferred {
				return nil
			}
		}
		return errors.New("it is not")
	}))
}

// resizeDeferred checks that a pod whose node has no capacity waits for it, and that an undo is possible meanwhile.
func resizeDeferred(t *testing.T) {
	s := newScenario(t, resizing)
	uncrowd := s.crowded()
	for _, ends := range []func(){func() { s.rollout("undo", "web") }, uncrowd} {
		s.inPlaceUnder(inPlace.of("web"), "web", nil, func() {
			s.asksForTooMuch()
			ends()
		})
		s.sized("web", "10m")
	}
}

// resizeOfPodsThatDoNotFit checks that only the pod that does not fit is recreated, on another node, after its deadline.
func resizeOfPodsThatDoNotFit(t *testing.T) {
	s := newScenario(t, resizing)
	s.create(web(2, sized("10m", "32Mi"), progressDeadline(10), apart))
	pods := slices.Collect(maps.Values(s.pods("web")))
	s.occupy(pods[0].Spec.NodeName, corev1.ResourceCPU)
	s.begin("one does not fit", Rules{Created: exactly(1), Deleted: exactly(1)})
	most := s.share(pods[0].Spec.NodeName, corev1.ResourceCPU)
	s.setResources("web", "--requests=cpu="+most.String())
	s.completes("web")
	s.sized("web", most.String())
	if after := s.pods("web"); after[pods[0].UID] != nil || after[pods[1].UID] == nil {
		t.Errorf("of %s, which does not fit, and %s there are now %v", pods[0].Name, pods[1].Name, slices.Collect(maps.Keys(after)))
	}
}

// resizeTooLarge checks that only the pod is recreated that would need more than its whole node, because another client has resized another
// container of it to nearly that.
func resizeTooLarge(t *testing.T) {
	s := newScenario(t, resizing)
	s.create(web(2, sized("10m", "32Mi"), withSide))
	pods := slices.Collect(maps.Values(s.pods("web")))
	node, err := clients.CoreV1().Nodes().Get(s.Context(), pods[0].Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	most := node.Status.Allocatable.Memory().DeepCopy()
	most.Sub(resource.MustParse("2Gi"))
	s.kubectl("", "patch", "pod/"+pods[0].Name, "--subresource=resize", "-p",
		`{"spec":{"containers":[{"name":"side","resources":{"requests":{"memory":"`+most.String()+`"}}}]}}`)
	s.begin("too large for one", Rules{Created: exactly(1), Deleted: exactly(1)})
	s.setResources("web", "--requests=memory=3Gi", "--limits=memory=3Gi")
	s.completes("web")
	s.sized("web", "10m")
	if after := s.pods("web"); after[pods[0].UID] != nil || after[pods[1].UID] == nil {
		t.Errorf("of %s, which does not fit, and %s there are now %v", pods[0].Name, pods[1].Name, slices.Collect(maps.Keys(after)))
	}
	s.tells("web", "pod "+pods[0].Name+" does not get its CPU and memory", "is more than all of node "+node.Name)
}

// resizeInfeasible asks for more than any node has. The native rollout begins at once, and ends with undo.
func resizeInfeasible(t *testing.T) {
	s := newScenario(t, resizing)
	s.create(web(3, sized("10m", "32Mi")))
	s.begin("infeasible", anyChurn)
	s.setResources("web", "--requests=cpu=1000")
	s.tells("web", "Pods are recreated: pod web-", "cpu of 1k is more than all of node")
	s.rollout("undo", "web")
	s.completes("web")
	s.sized("web", "10m")
}

// resizeBelowUsage checks that the update is native after the deadline if the kubelet goes on refusing the resize.
func resizeBelowUsage(t *testing.T) {
	s := newScenario(t, resizing)
	s.create(web(2, sized("10m", "32Mi"), progressDeadline(10)))
	s.begin("below usage", anyChurn)
	s.setResources("web", "--requests=memory=1Mi", "--limits=memory=1Mi")
	s.reported("Deployment", "InPlaceUpdateFellBack")
	s.rollout("undo", "web")
	s.completes("web")
	s.sized("web", "10m")
}

// resizeBeyondQuota checks that a quota prevents new pods natively as well, and that the update completes without it.
func resizeBeyondQuota(t *testing.T) {
	s := newScenario(t, resizing)
	s.create(web(2, sized("10m", "32Mi")))
	s.kubectl(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"bound"},"spec":{"hard":{"requests.cpu":"25m"}}}`,
		"create", "-f", "-")
	s.begin("refused", anyChurn)
	s.setResources("web", "--requests=cpu=30m")
	s.wait("the native controller to try", on("web", func(w world, d *appsv1.Deployment) error {
		if target := w.updateReplicaSet(d); target == nil || len(target.Status.Conditions) == 0 {
			return errors.New("it has not")
		}
		return nil
	}))
	s.kubectl("", "delete", "resourcequota", "bound")
	s.completes("web")
	s.sized("web", "30m")
}

// resizeWithDefaults checks that a pod gets what a new one would get, and keeps the limit that its template does not have.
func resizeWithDefaults(t *testing.T) {
	s := newScenario(t, resizing)
	s.kubectl(`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l"},`+
		`"spec":{"limits":[{"type":"Container","default":{"cpu":"300m"}}]}}`,
		"create", "-f", "-")
	s.create(web(2, sized("10m", "32Mi")))
	s.inPlace("web", nil, func() { s.setResources("web", "--requests=cpu=20m") })
	s.sized("web", "20m")
	for _, pod := range s.pods("web") {
		if limit := pod.Spec.Containers[0].Resources.Limits.Cpu().String(); limit != "300m" {
			t.Errorf("pod %s has a limit of %s", pod.Name, limit)
		}
	}
}

// restartsForCPU makes the first container ask for a restart when its CPU changes.
func restartsForCPU(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer},
	}
}

// sizedToResize prepares the first container for resizes.
func sizedToResize(d *appsv1.Deployment) {
	sized("10m", "32Mi")(d)
	setting(resizeSetting, "in-place")(d)
}

// asks reports whether the first container of the pod requests so much CPU.
func asks(pod *corev1.Pod, cpu string) bool {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().Equal(resource.MustParse(cpu))
}

// resizeRestarts checks that a container that asks for a restart is restarted as for an image. Until there is room on its node it runs on.
func resizeRestarts(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, sized("10m", "32Mi"), restartsForCPU))
	s.inPlace("web", once, func() {
		s.expectIn(s.setResources("web", "--requests=cpu=20m"), "in place: resizes app, restarts app")
	})
	s.sized("web", "20m")
	s.allWereOut("web")
	s.inPlace("web", once, func() { s.rollout("undo", "web") })
	s.sized("web", "10m")
}
