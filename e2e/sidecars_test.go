//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// sidecars: init containers with restartPolicy Always, whose image changes as that of other containers does. That no other container restarts
// with them, `kept` demands.
func sidecars(t *testing.T) {
	scenarios := map[string]func(*testing.T){}
	for kind, on := range map[string]progress{"Deployment": standsAsDeployment, "DaemonSet": standsAsDaemonSet} {
		for name, scenario := range map[string]func(*testing.T, progress){
			"image and undo":                    sidecarImage,
			"together with the container":       sidecarTogether,
			"undo of an image that is not":      func(t *testing.T, on progress) { sidecarBroken(t, on, "missing") },
			"undo of a crashing image":          func(t *testing.T, on progress) { sidecarBroken(t, on, "crash") },
			"both, and its image is not":        sidecarBrokenTogether,
			"pulled first, and its image's not": sidecarPulledFirst,
			"pods born before Stayput":          sidecarBornBefore,
			"undo of pods born before":          sidecarBornBeforeUndone,
			"with a startup probe":              sidecarStarting,
			"one more":                          sidecarAdded,
		} {
			scenarios[kind+", "+name] = func(t *testing.T) { scenario(t, on) }
		}
	}
	together(t, lengthy(scenarios, "Deployment, together with the container", "Deployment, undo of an image that is not", "Deployment, undo of a crashing image",
		"Deployment, pods born before Stayput", "Deployment, one more",
		"DaemonSet, image and undo", "DaemonSet, together with the container", "DaemonSet, undo of an image that is not", "DaemonSet, both, and its image is not",
		"DaemonSet, pulled first, and its image's not", "DaemonSet, pods born before Stayput", "DaemonSet, undo of pods born before",
		"DaemonSet, with a startup probe", "DaemonSet, one more"))
}

// sidecar is the name of the one that these scenarios have.
const sidecar = "mesh"

// progress has a namespace with these labels, and a workload with a sidecar in it, rolled out; it returns the workload's name.
type progress func(*testing.T, map[string]string, ...knob) (*stage, string)

func standsAsDeployment(t *testing.T, labels map[string]string, knobs ...knob) (*stage, string) {
	t.Helper()
	s := newStage(t, labels)
	s.create(web(3, append([]knob{withMesh}, knobs...)...))
	return s, "web"
}

func standsAsDaemonSet(t *testing.T, labels map[string]string, knobs ...knob) (*stage, string) {
	t.Helper()
	s := newDaemonStage(t, labels)
	ds := agent(templated(withMesh))
	for _, turn := range knobs {
		templated(turn)(ds)
	}
	s.install(ds)
	return s, agents
}

// withMesh adds one behind an init container that ends.
func withMesh(d *appsv1.Deployment) {
	prepared(d)
	side := container(sidecar, 8082)
	side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	d.Spec.Template.Spec.InitContainers = append(d.Spec.Template.Spec.InitContainers, side)
}

// sidecarOf is the template's.
func sidecarOf(d *appsv1.Deployment) *corev1.Container {
	return &d.Spec.Template.Spec.InitContainers[1]
}

// slowSidecar lets it take seconds to become ready, so that half-way states last.
var slowSidecar = readyAfter(sidecar, "6s")

// noSurge is what a change of its image costs.
var noSurge = restarts{sidecar: exactly(1)}

func sidecarImage(t *testing.T, on progress) {
	s, name := on(t, labelled)
	s.inPlace(name, noSurge, func() {
		s.expectIn(s.setImage(name, sidecar+"=v2"), "Warning:", "in place: restarts "+sidecar)
	})
	s.runsIn(sidecar, name, "v2")
	s.inPlace(name, once, func() { s.setImage(name, "app=v2") })
	s.inPlace(name, once, func() { s.rollout("undo", name) })
	s.inPlace(name, noSurge, func() { s.rollout("undo", name, "--to-revision=1") })
	s.runsIn(sidecar, name, "v1")
	s.runs(name, "v1")
}

func sidecarTogether(t *testing.T, on progress) {
	s, name := on(t, labelled)
	both := restarts{"app": exactly(1), sidecar: exactly(1)}
	s.inPlace(name, both, func() { s.setImage(name, "app=v2", sidecar+"=v3") })
	s.runs(name, "v2")
	s.runsIn(sidecar, name, "v3")
	s.inPlace(name, both, func() { s.rollout("undo", name) })
	s.runs(name, "v1")
	s.runsIn(sidecar, name, "v1")
}

// sidecarBroken: a bad image takes as many pods as may be missed, and not one for good. Their other containers run on.
func sidecarBroken(t *testing.T, on progress, tag string) {
	s, name := on(t, unpulled)
	s.inPlace(name, restarts{sidecar: anyNumber}, func() {
		s.setImage(name, sidecar+"="+tag)
		s.backsOff()
		s.rollout("undo", name)
	})
	s.runsIn(sidecar, name, "v1")
	s.someNeverRestarted(name)
}

// backsOff waits until a kubelet does not try at once any more. The status need not say why: of a sidecar that ended with code 0, kubelets say for as
// long as the next one cannot be pulled that it has (convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go).
func (s *stage) backsOff() {
	s.Helper()
	s.reported("Pod", "BackOff")
}

// sidecarBrokenTogether: the container restarts beside a sidecar that does not, and goes back with it.
func sidecarBrokenTogether(t *testing.T, on progress) {
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

// sidecarPulledFirst: where images are pulled before containers stop, one that is not there stops nothing.
func sidecarPulledFirst(t *testing.T, on progress) {
	if minor := serverMinor(t); minor < 35 {
		t.Skipf("Kubernetes 1.%d has no image volumes (1.35 has): images are not pulled before containers stop", minor)
	}
	s, name := on(t, labelled)
	before, tag := s.pods(name), s.unique()
	s.begin("missing", spared)
	s.setImage(name, sidecar+"="+tag)
	s.tells(name, appImage(tag), "not found")
	s.kept(name, before, nil)
	s.begin("pushed", inPlace)
	s.publish("v2", tag)
	s.completes(name)
	s.kept(name, before, noSurge)
}

// sidecarBornBefore: pods without the readiness gate.
func sidecarBornBefore(t *testing.T, on progress) {
	s, name := on(t, unlabelled)
	s.label("stayput.dev/update=in-place")
	s.managed(name)
	s.inPlace(name, noSurge, func() { s.setImage(name, sidecar+"=v2") })
	s.runsIn(sidecar, name, "v2")
}

func sidecarBornBeforeUndone(t *testing.T, on progress) {
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

// sidecarStarting: a kubelet compares the image of a sidecar with a startup probe only once that has succeeded. So it is native; an image of
// another container of the same pods is not.
func sidecarStarting(t *testing.T, on progress) {
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

// sidecarAdded: a pod's containers are those it was born with.
func sidecarAdded(t *testing.T, on progress) {
	s, name := on(t, labelled)
	s.recreated(name, func() {
		s.kubectl("", "patch", ref(name), "--type=strategic", "-p", fmt.Sprintf(
			`{"spec":{"template":{"spec":{"initContainers":[{"name":"more","image":%q,"restartPolicy":"Always","env":[{"name":"PORT","value":"8083"}]}]}}}}`,
			appImage("v1")))
	})
	s.inPlace(name, noSurge, func() { s.setImage(name, sidecar+"=v2") })
}
