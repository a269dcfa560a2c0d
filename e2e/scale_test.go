//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// scale changes replicas while an update is in progress. Only the pods that scaling asks for are created and deleted.
func scale(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"3 to 6 to 2 half-way": upAndDown,
	})
	nightly(t, map[string]func(*testing.T){
		"by CPU": scaledByCPU,
	})
}

func upAndDown(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, slow))
	s.begin("scaling", Rules{Created: exactly(3), Deleted: exactly(4)})
	s.setImage("web", "app=v2")
	s.reaches("web", partly)
	s.kubectl("", "scale", "deployment", "web", "--replicas=6")
	s.has("web", 6)
	s.kubectl("", "scale", "deployment", "web", "--replicas=2")
	s.completes("web")
	s.runs("web", "v2")
}

// has waits for so many live pods.
func (s *scenario) has(name string, pods int) {
	s.Helper()
	s.wait(fmt.Sprintf("%d pods", pods), on(name, func(w world, d *appsv1.Deployment) error {
		if n := len(w.podsOf(d)); n != pods {
			return fmt.Errorf("%d pods are there", n)
		}
		return nil
	}))
}

// scaledByCPU checks that kubectl and the plugin warn of an autoscaler that takes starts of containers for load, until it has a
// stabilization window for scaling up.
func scaledByCPU(t *testing.T) {
	s := newScenario(t, labelled)
	s.kubectl(manifest(t, web(2)), "apply", "-f", "-")
	s.completes("web")
	s.managed("web")
	s.begin("warned", noUpdates)
	edit := []string{"set", "image", "deployment/web", "app=" + appImage("v2"), "--dry-run=server"}
	s.kubectl(scalerByCPU, "apply", "-f", "-")
	s.expectIn(s.kubectl("", edit...), "Warning: stayput: in place: restarts app", "Warning: stayput: "+saidByCPU)
	s.answers(manifest(t, web(2, image("v2"))), 0, []string{"deployment/web in place restarts app in 2 pods, 1 at a time", saidByCPU},
		"plan", "-f", "-", s.editor())
	s.kubectl("", "patch", "hpa", "by-cpu", "--type=merge", "-p", `{"spec":{"behavior":{"scaleUp":{"stabilizationWindowSeconds":300}}}}`)
	if again := s.kubectl("", edit...); strings.Contains(again, "HorizontalPodAutoscaler") {
		s.Errorf("it waits for five minutes, and is warned of all the same: %s", again)
	}
}

const saidByCPU = "HorizontalPodAutoscaler by-cpu scales by cpu: what restarted containers use to start counts as load."

// scalerByCPU is an autoscaler of the Deployment. It never scales here, because the cluster has no metrics.
const scalerByCPU = `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"by-cpu"},"spec":{"maxReplicas":5,
	"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
	"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":70}}}]}}`
