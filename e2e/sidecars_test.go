//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// sidecars tests init containers with restartPolicy Always, whose images change as those of other containers do. kept checks that no other
// container restarts with them.
func sidecars(t *testing.T) {
	scenarios := map[string]func(*testing.T){}
	for kind, on := range map[string]meshWorkload{"Deployment": meshDeployment, "DaemonSet": meshDaemonSet} {
		for name, scenario := range map[string]func(*testing.T, meshWorkload){
			"image and undo":                    sidecarImage,
			"together with the container":       sidecarTogether,
			"undo of an image that is not":      func(t *testing.T, on meshWorkload) { sidecarBroken(t, on, "missing") },
			"undo of a crashing image":          func(t *testing.T, on meshWorkload) { sidecarBroken(t, on, "crash") },
			"both, and its image is not":        sidecarBrokenTogether,
			"pulled first, and its image's not": sidecarPulledFirst,
			"pods created before Stayput":       sidecarBornBefore,
			"undo of pods created before":       sidecarBornBeforeUndone,
			"with a startup probe":              sidecarStarting,
			"one more":                          sidecarAdded,
		} {
			scenarios[kind+", "+name] = func(t *testing.T) { scenario(t, on) }
		}
	}
	together(t, lengthy(scenarios, "Deployment, together with the container", "Deployment, undo of an image that is not",
		"Deployment, undo of a crashing image", "Deployment, pods created before Stayput", "Deployment, one more",
		"DaemonSet, image and undo", "DaemonSet, together with the container", "DaemonSet, undo of an image that is not",
		"DaemonSet, both, and its image is not",
		"DaemonSet, pulled first, and its image's not", "DaemonSet, pods created before Stayput", "DaemonSet, undo of pods created before",
		"DaemonSet, with a startup probe", "DaemonSet, one more",
		"Deployment, undo of pods created before", "Deployment, pulled first, and its image's not"))
}

// sidecar is the name of the sidecar in these scenarios.
const sidecar = "mesh"

// meshWorkload creates a namespace with these labels, and a workload with a sidecar in it. It waits until the workload is rolled out, and
// returns its name.
type meshWorkload func(*testing.T, map[string]string, ...knob) (*stage, string)

func meshDeployment(t *testing.T, labels map[string]string, knobs ...knob) (*stage, string) {
	t.Helper()
	s := newStage(t, labels)
	s.create(web(3, append([]knob{withMesh}, knobs...)...))
	return s, "web"
}

func meshDaemonSet(t *testing.T, labels map[string]string, knobs ...knob) (*stage, string) {
	t.Helper()
	s := newDaemonStage(t, labels)
	ds := agent(templated(withMesh))
	for _, turn := range knobs {
		templated(turn)(ds)
	}
	s.install(ds)
	return s, agents
}

// withMesh adds a sidecar after an init container that ends.
func withMesh(d *appsv1.Deployment) {
	prepared(d)
	side := container(sidecar, 8082)
	side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	d.Spec.Template.Spec.InitContainers = append(d.Spec.Template.Spec.InitContainers, side)
}

// sidecarOf returns the sidecar of the template.
func sidecarOf(d *appsv1.Deployment) *corev1.Container {
	return &d.Spec.Template.Spec.InitContainers[1]
}

// slowSidecar makes the sidecar take seconds to become ready, so that states in the middle of an update last.
var slowSidecar = readyAfter(sidecar, "6s")

// sidecarOnce expects that only the sidecar restarts, once.
var sidecarOnce = restarts{sidecar: exactly(1)}

func sidecarImage(t *testing.T, on meshWorkload) {
	s, name := on(t, labelled)
	s.inPlace(name, sidecarOnce, func() {
		s.expectIn(s.setImage(name, sidecar+"=v2"), "Warning:", "in place: restarts "+sidecar)
	})
	s.runsIn(sidecar, name, "v2")
	s.inPlace(name, once, func() { s.setImage(name, "app=v2") })
	s.inPlace(name, once, func() { s.rollout("undo", name) })
	s.inPlace(name, sidecarOnce, func() { s.rollout("undo", name, "--to-revision=1") })
	s.runsIn(sidecar, name, "v1")
	s.runs(name, "v1")
}

func sidecarTogether(t *testing.T, on meshWorkload) {
	s, name := on(t, labelled)
	both := restarts{"app": exactly(1), sidecar: exactly(1)}
	s.inPlace(name, both, func() { s.setImage(name, "app=v2", sidecar+"=v3") })
	s.runs(name, "v2")
	s.runsIn(sidecar, name, "v3")
	s.inPlace(name, both, func() { s.rollout("undo", name) })
	s.runs(name, "v1")
	s.runsIn(sidecar, name, "v1")
}

// sidecarBroken checks that a bad image makes as many pods unavailable as may be, and that an undo repairs them. Their other containers
// keep running.
func sidecarBroken(t *testing.T, on meshWorkload, tag string) {
	s, name := on(t, unpulled)
	s.inPlace(name, restarts{sidecar: anyNumber}, func() {
		s.setImage(name, sidecar+"="+tag)
		s.backsOff()
		s.rollout("undo", name)
	})
	s.runsIn(sidecar, name, "v1")
	s.someNeverRestarted(name)
}

// backsOff waits until a kubelet delays its attempts. The status need not give the reason: of a sidecar that ended with code 0, kubelets
// report that it has ended for as long as the new image cannot be pulled (convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go).
func (s *stage) backsOff() {
	s.Helper()
	s.reported("Pod", "BackOff")
}

// sidecarBrokenTogether checks that the container restarts although the sidecar beside it does not, and that an undo reverts both.
func sidecarBrokenTogether(t *testing.T, on meshWorkload) {
	s, name := on(t, unpulled)
	s.inPlace(name, restarts{"app": {0, 2}, sidecar: {0, 2}}, func() {
		s.setImage(name, "app=v2", sidecar+"=missing")
		s.backsOff()
		s.rollout("undo", name)
	})
	s.runs(name, "v1")
	s.runsIn(sidecar, name, "v1")
	s.someNeverRestarted(name)
}

// sidecarPulledFirst checks that a missing image stops no container where images are pulled first.
func sidecarPulledFirst(t *testing.T, on meshWorkload) {
	s, name := on(t, labelled)
	before, tag := s.pods(name), s.unique()
	s.begin("missing", spared)
	s.setImage(name, sidecar+"="+tag)
	s.tells(name, appImage(tag), "not found")
	s.kept(name, before, nil)
	s.begin("pushed", inPlace)
	s.publish("v2", tag)
	s.completes(name)
	s.kept(name, before, sidecarOnce)
}

// sidecarBornBefore updates pods that are older than the namespace's label.
func sidecarBornBefore(t *testing.T, on meshWorkload) {
	s, name := on(t, unlabelled)
	s.label("stayput.dev/update=in-place")
	s.managed(name)
	s.inPlace(name, sidecarOnce, func() { s.setImage(name, sidecar+"=v2") })
	s.runsIn(sidecar, name, "v2")
	s.allWereOut(name)
}

func sidecarBornBeforeUndone(t *testing.T, on meshWorkload) {
	s, name := on(t, unlabelled, slowSidecar)
	s.label("stayput.dev/update=in-place")
	s.managed(name)
	s.inPlace(name, restarts{sidecar: {0, 2}}, func() {
		s.setImage(name, sidecar+"=v2")
		s.reaches(name, partly)
		s.rollout("undo", name)
	})
	s.met(name, partly)
	s.runsIn(sidecar, name, "v1")
}

// sidecarStarting tests a sidecar with a startup probe. A kubelet compares its image only once that probe has succeeded, so its update is
// native. An update of another container of the same pods is in place.
func sidecarStarting(t *testing.T, on meshWorkload) {
	s, name := on(t, labelled, func(d *appsv1.Deployment) {
		probe := *sidecarOf(d).ReadinessProbe
		sidecarOf(d).StartupProbe = &probe
	})
	s.recreated(name, func() {
		s.expectIn(s.setImage(name, sidecar+"=v2"), "Warning:", "recreate: sidecar "+sidecar+" has a startup probe")
	})
	s.inPlace(name, once, func() { s.setImage(name, "app=v2") })
	s.runsIn(sidecar, name, "v2")
}

// sidecarAdded checks that a new sidecar recreates pods: a pod keeps the containers that it was created with.
func sidecarAdded(t *testing.T, on meshWorkload) {
	s, name := on(t, labelled)
	s.recreated(name, func() {
		s.kubectl("", "patch", ref(name), "--type=strategic", "-p", fmt.Sprintf(
			`{"spec":{"template":{"spec":{"initContainers":[{"name":"more","image":%q,"restartPolicy":"Always",`+
				`"env":[{"name":"PORT","value":"8083"}]}]}}}}`,
			appImage("v1")))
	})
	s.inPlace(name, sidecarOnce, func() { s.setImage(name, sidecar+"=v2") })
}
