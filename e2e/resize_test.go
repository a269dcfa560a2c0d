//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resizing has containers resized that do not say whether they need a restart for it.
var resizing = with(labelled, resizeLabel, "true")

// resizes: CPU and memory of running pods, for both kinds.
func resizes(t *testing.T) {
	scenarios := map[string]func(*testing.T){
		"undo":                        resizeUndone,
		"undo while it waits":         resizeUndoneDeferred,
		"waits for room":              resizeDeferred,
		"more than any node has":      resizeInfeasible,
		"less memory than is in use":  resizeBelowUsage,
		"beyond a quota":              resizeBeyondQuota,
		"beyond a LimitRange":         resizeBeyondLimit,
		"with a LimitRange's default": resizeWithDefaults,
		"paused":                      resizePaused,
		"scaled half-way":             resizeScaled,
		"declared":                    resizeDeclared,
		"switched off by a workload":  resizeSwitchedOff,
		"of pods born before Stayput": resizeBornBefore,
	}
	for name, change := range resizeEdits() {
		scenarios[name] = func(t *testing.T) {
			s := newStage(t, resizing)
			s.create(web(3, sized("10m", "32Mi")))
			change.made(s, "web")
		}
		scenarios[name+" of a DaemonSet"] = func(t *testing.T) {
			s := newDaemonStage(t, resizing)
			s.install(agent(templated(sized("10m", "32Mi"))))
			change.made(s, agents)
		}
	}
	together(t, lengthy(scenarios, "less memory than is in use", "cpu down of a DaemonSet", "another label of a DaemonSet", "beyond a LimitRange", "switched off by a workload"))
}

// resizeEdit is an edit of resources: in place with these restarts, or native.
type resizeEdit struct {
	edit     func(*stage, string)
	restarts restarts
	native   bool
	cpu      string // that all pods have in the end
}

func resizeEdits() map[string]resizeEdit {
	set := func(flags ...string) func(*stage, string) {
		return func(s *stage, name string) { s.setResources(name, flags...) }
	}
	return map[string]resizeEdit{
		"cpu up":      {edit: set("--requests=cpu=20m"), cpu: "20m"},
		"cpu down":    {edit: set("--requests=cpu=5m"), cpu: "5m"},
		"memory up":   {edit: set("--requests=cpu=10m,memory=48Mi", "--limits=memory=96Mi"), cpu: "10m"},
		"a new limit": {edit: set("--limits=cpu=500m"), native: true, cpu: "10m"},
		"with an image": {edit: func(s *stage, name string) {
			s.patchApp(name, `"image":"`+appImage("v2")+`","resources":{"requests":{"cpu":"20m"}}`)
		}, restarts: once, cpu: "20m"},
		"another label": {edit: func(s *stage, name string) { s.bumpChart(name) }, cpu: "10m"},
		"to guaranteed": {edit: set("--requests=cpu=20m,memory=64Mi", "--limits=cpu=20m,memory=64Mi"), native: true, cpu: "20m"},
		"resizePolicy": {edit: func(s *stage, name string) {
			s.patchApp(name, `"resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]`)
		}, native: true, cpu: "10m"},
		"a limit is lost": {edit: func(s *stage, name string) { s.patchApp(name, `"resources":{"limits":{"memory":null}}`) }, native: true, cpu: "10m"},
	}
}

func (c resizeEdit) made(s *stage, name string) {
	s.Helper()
	edit := func() { c.edit(s, name) }
	if c.native {
		s.recreated(name, edit)
	} else {
		s.inPlace(name, c.restarts, edit)
	}
	s.sized(name, c.cpu)
}

// sized gives the first container requests, and a limit of memory.
func sized(cpu, memory string) knob {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		}
	}
}

// setResources is kubectl set resources of the first container.
func (s *stage) setResources(name string, flags ...string) string {
	s.Helper()
	return s.kubectl("", append([]string{"set", "resources", ref(name), "--containers=app"}, flags...)...)
}

// patchApp merges into the first container.
func (s *stage) patchApp(name, fields string) {
	s.Helper()
	s.kubectl("", "patch", ref(name), "--type=strategic", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"app",`+fields+`}]}}}}`)
}

// sized demands of each pod of a workload that is complete that its kubelet has given it what its spec says, and that this is so much CPU.
func (s *stage) sized(name, cpu string) {
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
	s := newStage(t, resizing)
	s.create(web(3, sized("10m", "32Mi")))
	s.inPlace("web", nil, func() {
		s.expectIn(s.setResources("web", "--requests=cpu=20m"), "Warning: stayput: in place: resizes app, no restart")
	})
	s.inPlace("web", nil, func() { s.rollout("undo", "web") })
	s.sized("web", "10m")
	s.history("web", "2", "3")
}

// crowded is a Deployment of one pod whose node has no room for what it is to get, until the other is gone: see uncrowd.
func (s *stage) crowded() {
	s.Helper()
	s.create(web(1, sized("10m", "32Mi")))
	pod := s.onlyPod("web")
	filler := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "filler"}, Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: []corev1.Container{container("app", 8080)}}}
	filler.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: s.share(pod.Spec.NodeName, 60)}
	if _, err := clients.CoreV1().Pods(s.namespace).Create(s.Context(), filler, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.eventually("the filler", func(ctx context.Context) error {
		found, err := clients.CoreV1().Pods(s.namespace).Get(ctx, "filler", metav1.GetOptions{})
		if err == nil && found.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s %s", found.Status.Phase, found.Status.Message)
		}
		return err
	})
}

// uncrowd gives the room back.
func (s *stage) uncrowd() {
	s.Helper()
	s.kubectl("", "delete", "pod", "filler", "--grace-period=1")
}

// share is so many percent of the memory of the node.
func (s *stage) share(node string, percent int64) resource.Quantity {
	s.Helper()
	found, err := clients.CoreV1().Nodes().Get(s.Context(), node, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return *resource.NewQuantity(found.Status.Allocatable.Memory().Value()/100*percent, resource.BinarySI)
}

func (s *stage) onlyPod(name string) *corev1.Pod {
	s.Helper()
	for _, pod := range s.pods(name) {
		return pod
	}
	s.Fatalf("%s has no pods", name)
	return nil
}

// asksForTooMuch has the only pod ask for more memory than its node has left.
func (s *stage) asksForTooMuch() {
	s.Helper()
	most := s.share(s.onlyPod("web").Spec.NodeName, 60)
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

func resizeDeferred(t *testing.T) {
	s := newStage(t, resizing)
	s.crowded()
	s.inPlaceUnder(inPlace.of("web"), "web", nil, func() {
		s.asksForTooMuch()
		s.uncrowd()
	})
	s.sized("web", "10m")
}

func resizeUndoneDeferred(t *testing.T) {
	s := newStage(t, resizing)
	s.crowded()
	s.inPlaceUnder(inPlace.of("web"), "web", nil, func() {
		s.asksForTooMuch()
		s.rollout("undo", "web")
	})
	s.sized("web", "10m")
}

// resizeInfeasible: nobody has so much. The native rollout begins, and ends with undo.
func resizeInfeasible(t *testing.T) {
	s := newStage(t, resizing)
	s.create(web(3, sized("10m", "32Mi")))
	s.begin("infeasible", anyChurn)
	s.setResources("web", "--requests=cpu=1000")
	s.reported("Deployment", "InPlaceUpdateReleased")
	s.rollout("undo", "web")
	s.completes("web")
	s.sized("web", "10m")
}

// resizeBelowUsage: the kubelet goes on refusing. As long as the deadline, then it is native.
func resizeBelowUsage(t *testing.T) {
	s := newStage(t, resizing)
	s.create(web(2, sized("10m", "32Mi"), progressDeadline(10)))
	s.begin("below usage", anyChurn)
	s.setResources("web", "--requests=memory=1Mi", "--limits=memory=1Mi")
	s.reported("Deployment", "InPlaceUpdateReleased")
	s.rollout("undo", "web")
	s.completes("web")
	s.sized("web", "10m")
}

// refusedResize: natively new pods would be refused as well, and come when they are not.
func refusedResize(t *testing.T, object, kind string) {
	s := newStage(t, resizing)
	s.create(web(2, sized("10m", "32Mi")))
	s.kubectl(object, "create", "-f", "-")
	s.begin("refused", anyChurn)
	s.setResources("web", "--requests=cpu=30m")
	s.wait("the native controller to try", on("web", func(w world, d *appsv1.Deployment) error {
		if target := w.target(d); target == nil || len(target.Status.Conditions) == 0 {
			return errors.New("it has not")
		}
		return nil
	}))
	s.kubectl("", "delete", kind, "bound")
	s.completes("web")
	s.sized("web", "30m")
}

func resizeBeyondQuota(t *testing.T) {
	refusedResize(t, `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"bound"},"spec":{"hard":{"requests.cpu":"25m"}}}`, "resourcequota")
}

func resizeBeyondLimit(t *testing.T) {
	refusedResize(t, `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"bound"},"spec":{"limits":[{"type":"Container","max":{"cpu":"20m"}}]}}`, "limitrange")
}

// resizeWithDefaults: a pod gets what a new one would, and keeps the limit that its template does not have.
func resizeWithDefaults(t *testing.T) {
	s := newStage(t, resizing)
	s.kubectl(`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","default":{"cpu":"300m"}}]}}`, "create", "-f", "-")
	s.create(web(2, sized("10m", "32Mi")))
	s.inPlace("web", nil, func() { s.setResources("web", "--requests=cpu=20m") })
	s.sized("web", "20m")
	for _, pod := range s.pods("web") {
		if limit := pod.Spec.Containers[0].Resources.Limits.Cpu().String(); limit != "300m" {
			t.Errorf("pod %s has a limit of %s", pod.Name, limit)
		}
	}
}

func resizePaused(t *testing.T) {
	s := newStage(t, resizing)
	s.create(web(3, sized("10m", "32Mi")))
	s.inPlace("web", nil, func() {
		s.rollout("pause", "web")
		s.setResources("web", "--requests=cpu=20m")
		s.rollout("resume", "web")
	})
	s.sized("web", "20m")
}

func resizeScaled(t *testing.T) {
	s := newStage(t, resizing)
	s.create(web(3, sized("10m", "32Mi")))
	s.begin("scaling", Rules{Created: exactly(2), Deleted: none})
	s.setResources("web", "--requests=cpu=20m")
	s.kubectl("", "scale", "deployment", "web", "--replicas=5")
	s.completes("web")
	s.has("web", 5)
	s.sized("web", "20m")
}

// declares has the first container say that it needs no restart when its CPU changes.
func declares(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}}
}

// resizeDeclared: without a label it is as the container says, of each resource.
func resizeDeclared(t *testing.T) {
	s := newStage(t, labelled)
	s.create(web(2, sized("10m", "32Mi"), declares))
	s.inPlace("web", nil, func() { s.setResources("web", "--requests=cpu=20m") })
	s.sized("web", "20m")
	s.recreated("web", func() { s.setResources("web", "--requests=memory=40Mi") })
	s.sized("web", "20m")
}

func resizeSwitchedOff(t *testing.T) {
	s := newStage(t, resizing)
	s.create(web(2, sized("10m", "32Mi"), declares, workloadLabel(resizeLabel, "false")))
	s.recreated("web", func() { s.setResources("web", "--requests=cpu=20m") })
	s.sized("web", "20m")
}

func resizeBornBefore(t *testing.T) {
	s := newStage(t, with(unlabelled, resizeLabel, "true"))
	s.create(web(2, sized("10m", "32Mi")))
	s.label(updateLabel + "=in-place")
	s.managed("web")
	s.inPlace("web", once, func() { s.patchApp("web", `"image":"`+appImage("v2")+`","resources":{"requests":{"cpu":"20m"}}`) })
	s.sized("web", "20m")
}
