//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
)

// inPlaceChange is a kind of change that running pods take. A change without a restart takes only a moment, so it is combined with an image
// here.
type inPlaceChange struct {
	// has prepares a workload for the change.
	has option
	// container is the container that restarts.
	container string
	edit      func(s *scenario, name string) string
	// taken reports whether a pod has the change.
	taken func(*corev1.Pod) bool
}

// inPlaceChanges are all kinds of changes except images alone, which the other scenarios test. A new kind is a new row.
var inPlaceChanges = map[string]inPlaceChange{
	"restart": {
		has: func(*appsv1.Deployment) {}, container: "app",
		edit:  func(s *scenario, name string) string { return s.rollout("restart", name) },
		taken: func(pod *corev1.Pod) bool { return pod.Annotations[restartedAt] != "" },
	},
	"one container": {
		has: withSide, container: "side",
		edit: func(s *scenario, name string) string {
			said, _ := s.ask("", "restart", ref(name), "--container=side", "--wait=false")
			return said
		},
		taken: func(pod *corev1.Pod) bool { return pod.Annotations[inplace.AnnotationRestartPrefix+"side"] != "" },
	},
	"sidecar": {
		has: withMesh, container: sidecar,
		edit:  func(s *scenario, name string) string { return s.setImage(name, sidecar+"=v2") },
		taken: func(pod *corev1.Pod) bool { return imagesOf(pod.Spec)[sidecar] == appImage("v2") },
	},
	"auxiliary": {
		has: withAuxiliarySide, container: "side",
		edit:  func(s *scenario, name string) string { return s.setImage(name, "side=v2") },
		taken: func(pod *corev1.Pod) bool { return imagesOf(pod.Spec)["side"] == appImage("v2") },
	},
	"hook": {
		has: hooked, container: "app",
		edit:  func(s *scenario, name string) string { return s.setImageOfTargets(name, "app=v2") },
		taken: func(pod *corev1.Pod) bool { return imagesOf(pod.Spec)["app"] == appImage("v2") },
	},
	"annotation": {
		has:       func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, listAnnotation, note) },
		container: "app",
		edit:      func(s *scenario, name string) string { return s.annotateTemplate(name, `"1"`, toImage("v2")) },
		taken:     func(pod *corev1.Pod) bool { return pod.Annotations[note] == "1" },
	},
	"variable": {
		has: readsTier, container: "app",
		edit:  func(s *scenario, name string) string { return s.setTier(name, `"back"`) },
		taken: func(pod *corev1.Pod) bool { return pod.Labels[tierLabel] == "back" },
	},
	"resize": {
		has: sizedToResize, container: "app",
		edit: func(s *scenario, name string) string {
			return s.patchApp(name, `"image":"`+appImage("v2")+`","resources":{"requests":{"cpu":"20m"}}`)
		},
		taken: func(pod *corev1.Pod) bool { return imagesOf(pod.Spec)["app"] == appImage("v2") && asks(pod, "20m") },
	},
	"resize with a restart": {
		has: func(d *appsv1.Deployment) { sizedToResize(d); restartsForCPU(d) }, container: "app",
		edit:  func(s *scenario, name string) string { return s.setResources(name, "--requests=cpu=20m") },
		taken: func(pod *corev1.Pod) bool { return asks(pod, "20m") },
	},
	"toleration": {
		has: func(*appsv1.Deployment) {}, container: "app",
		edit: func(s *scenario, name string) string { return s.tolerates(name, tolerated, toImage("v2")) },
		taken: func(pod *corev1.Pod) bool {
			return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == noTaint })
		},
	},
}

// meanwhile tests events in the middle of an update, for kinds of changes of which a real kubelet may show more than the simulation.
func meanwhile(t *testing.T) {
	scenarios, atNight := map[string]func(*testing.T){}, map[string]func(*testing.T){}
	for what, of := range map[string]struct {
		kind      string
		scenarios map[string]func(*testing.T)
	}{
		"one container":         {"Deployment", scenarios},
		"sidecar":               {"DaemonSet", scenarios},
		"hook":                  {"Deployment", atNight},
		"resize with a restart": {"Deployment", atNight},
		"resize":                {"StatefulSet", atNight},
	} {
		change, kind := inPlaceChanges[what], kindsOfWorkloads[of.kind]
		of.scenarios[what+" of a "+of.kind+", undo"] = func(t *testing.T) { change.undone(t, kind) }
	}
	together(t, scenarios)
	nightly(t, atNight)
}

// lasting returns an option that prepares a workload for the change, and makes each pod take so long.
func (c inPlaceChange) lasting(delay string) option {
	return func(d *appsv1.Deployment) {
		c.has(d)
		readyAfter(c.container, delay)(d)
	}
}

// begin makes the change and waits until the update is in the middle.
func (c inPlaceChange) begin(s *scenario, name string) {
	s.Helper()
	s.begin("half-way", inPlace)
	c.edit(s, name)
	s.wait(name+" to be in the middle of its update", of(name, c.partial))
}

// partial returns nil in the middle of the update: one pod has the change and is Ready, the kubelet of a second pod has reported it as not
// ready with the change, and a third is untouched. At one pod at a time Stayput begins with no other pod while the second pod's container
// becomes ready.
func (c inPlaceChange) partial(now workload) error {
	var done, begun, untouched int
	for _, pod := range now.pods {
		switch taken := c.taken(pod); {
		case taken && now.updated(pod) && ready(pod):
			done++
		case taken && patchSeen(pod):
			begun++
		case !taken && ready(pod):
			untouched++
		}
	}
	if done == 0 || begun == 0 || untouched == 0 {
		return fmt.Errorf("of %d pods %d are done, %d begun, %d untouched", len(now.pods), done, begun, untouched)
	}
	return nil
}

// everywhere checks that all pods have the change.
func (c inPlaceChange) everywhere(s *scenario, name string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		if !c.taken(pod) {
			s.Errorf("pod %s has not taken the change of %s", pod.Name, name)
		}
	}
}

// nowhere checks that no pod has the change any more.
func (c inPlaceChange) nowhere(s *scenario, name string) {
	s.Helper()
	for _, pod := range s.pods(name) {
		if c.taken(pod) {
			s.Errorf("pod %s still has the change of %s", pod.Name, name)
		}
	}
}

// undone checks that an undo reverts the pods that are done or in progress, and leaves the others untouched.
func (c inPlaceChange) undone(t *testing.T, kind kindOfWorkload) {
	s := kind.scenario(t, restarting)
	kind.create(s, c.lasting("6s"))
	before := s.pods(kind.name)
	c.begin(s, kind.name)
	s.begin("undo", inPlace)
	s.rollout("undo", kind.name)
	s.completes(kind.name)
	s.metWhen(kind.name, c.partial)
	c.nowhere(s, kind.name)
	s.kept(kind.name, before, restarts{c.container: {0, 2}})
	s.someNeverRestarted(kind.name)
}

// gathering is a meeting of workloads of both kinds, each with its own kind of change.
type gathering struct {
	meeting
	changes map[string]inPlaceChange // by workload
}

// gather creates a Deployment and a DaemonSet for each kind of change. A pod takes longer than all edits together. Images are not pulled
// first, because then some updates would begin later than others.
func gather(t *testing.T) gathering {
	t.Helper()
	c := gathering{meeting{scenario: newDaemonScenario(t, with(restarting, parallelismSetting, "0"))}, map[string]inPlaceChange{}}
	for _, what := range slices.Sorted(maps.Keys(inPlaceChanges)) {
		change, short := inPlaceChanges[what], strings.ReplaceAll(what, " ", "-")
		d := web(3, change.lasting("20s"), named(short))
		ds := agent(templated(change.lasting("20s")), templated(named(short+"-agent")))
		c.submit(d)
		c.submitDaemonSet(ds)
		for _, name := range []string{called(d), called(ds)} {
			c.names, c.changes[name] = append(c.names, name), change
		}
	}
	c.each(c.completes)
	return c
}

// partial makes all changes and waits until all updates are in the middle at the same time, and no pod waits for its patch.
func (c gathering) partial() {
	c.Helper()
	c.begin("half-way", inPlace)
	c.each(func(name string) { c.changes[name].edit(c.scenario, name) })
	c.wait("all to be in the middle of their updates", func(w world) error {
		var missing error
		for _, name := range c.names {
			if err := errors.Join(of(name, c.changes[name].partial)(w), of(name, noneOut)(w)); err != nil {
				missing = errors.Join(missing, fmt.Errorf("%s: %w", name, err))
			}
		}
		return missing
	})
}

// noneOut returns nil if no pod is out of service.
func noneOut(now workload) error {
	for _, pod := range now.pods {
		if isOut(pod) {
			return fmt.Errorf("%s is out of service", pod.Name)
		}
	}
	return nil
}

// end waits until all pods have the change of their workload.
func (c gathering) end() {
	c.Helper()
	c.each(c.completes)
	c.each(func(name string) { c.changes[name].everywhere(c.scenario, name) })
}

// changesWithoutLeader kills the leader, as managerKilled does. The next leader finishes every kind of change.
func changesWithoutLeader(t *testing.T) {
	long(t)
	c := gather(t)
	t.Cleanup(func() { mended(t) })
	leader := managerProcess(c.scenario, c.leader())
	if leader == 0 {
		t.Fatal("the leader is not on this machine")
	}
	c.partial()
	c.begin("killed", anyChurn)
	kill(c.scenario, leader)
	c.end()
}

// changesWithoutManagers removes every manager without a shutdown. The native controllers finish every kind of change.
func changesWithoutManagers(t *testing.T) {
	long(t)
	c := gather(t)
	t.Cleanup(func() { restoreManagers(t) })
	managing := c.managerProcesses()
	c.partial()
	c.each(func(name string) { c.begin("native", recreated.of(name)) })
	for _, process := range managing {
		kill(c.scenario, process)
	}
	removeManagers(c.scenario)
	c.each(c.rollsOut)
	restoreManagers(t)
	c.end()
}
