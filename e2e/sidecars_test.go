//go:build e2e

package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// sidecars tests init containers with restartPolicy Always, whose images change as those of other containers do. kept checks that no other
// container restarts with them.
func sidecars(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"image and undo": sidecarImage,
	})
	nightly(t, map[string]func(*testing.T){
		"undo of a crashing image, DaemonSet": sidecarBroken,
	})
}

// sidecar is the name of the sidecar in these scenarios.
const sidecar = "mesh"

// withMesh adds a sidecar after an init container that ends.
func withMesh(d *appsv1.Deployment) {
	prepared(d)
	side := container(sidecar, 8082)
	side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	d.Spec.Template.Spec.InitContainers = append(d.Spec.Template.Spec.InitContainers, side)
}

// sidecarOnce expects that only the sidecar restarts, once.
var sidecarOnce = restarts{sidecar: exactly(1)}

func sidecarImage(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, withMesh))
	s.inPlace("web", sidecarOnce, func() {
		s.expectIn(s.setImage("web", sidecar+"=v2"), "Warning:", "in place: restarts "+sidecar)
	})
	s.runsIn(sidecar, "web", "v2")
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.inPlace("web", once, func() { s.rollout("undo", "web") })
	s.inPlace("web", sidecarOnce, func() { s.rollout("undo", "web", "--to-revision=1") })
	s.runsIn(sidecar, "web", "v1")
	s.runs("web", "v1")
}

// sidecarBroken checks that a bad image makes as many pods unavailable as may be, and that an undo repairs them. Their other containers
// keep running.
func sidecarBroken(t *testing.T) {
	s := newDaemonScenario(t, unpulled)
	s.install(agent(templated(withMesh)))
	s.inPlace(agents, restarts{sidecar: anyNumber}, func() {
		s.setImage(agents, sidecar+"=crash")
		s.backsOff()
		s.rollout("undo", agents)
	})
	s.runsIn(sidecar, agents, "v1")
	s.someNeverRestarted(agents)
}

// backsOff waits until a kubelet delays its attempts. The status need not give the reason: of a sidecar that ended with code 0, kubelets
// report that it has ended for as long as the new image cannot be pulled (convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go).
func (s *scenario) backsOff() {
	s.Helper()
	s.reported("Pod", "BackOff")
}
