//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// agents is the DaemonSet of each scenario, with a pod on each of the three nodes.
const agents = daemonSetPrefix + "agent"

// daemonSets runs the scenarios of DaemonSets that can run in parallel.
func daemonSets(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"image and at once environment":     daemonsOvertaken,
		"OnDelete":                          daemonsOnDelete,
		"OnDelete, in place":                daemonsOnDeleteInPlace,
		"deleted without its pods half-way": daemonsLeftBehind,
		"canary node that fails":            canaryNodeFails,
		"zone after zone":                   zoneAfterZone,
	})
	nightly(t, map[string]func(*testing.T){
		"revisionHistoryLimit 0": daemonHistory,
		"evicted half-way":       daemonEvicted,
		"node unlabelled":        nodeUnlabelled,
	})
}

func (s *scenario) bumpChart(name string) {
	s.patch(name, `{"spec":{"template":{"metadata":{"labels":{"helm.sh/chart":"web-1.0.1"}}}}}`)
}

// newDaemonScenario is newScenario for DaemonSets. It also checks that the native controller logs no errors.
func newDaemonScenario(t *testing.T, labels map[string]string) *scenario {
	t.Helper()
	s := newScenario(t, labels)
	t.Cleanup(s.nativeIsCalm)
	return s
}

// nativeIsCalm checks that the DaemonSet controller treats a held write as an ordinary conflict.
func (s *scenario) nativeIsCalm() {
	found, err := clients.CoreV1().Events(s.namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		s.Error(err)
		return
	}
	failed := ever(s.recorder, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	for _, e := range found.Items {
		if reporterOf(e) == "daemonset-controller" && !(failed && e.Reason == "FailedDaemonPod") {
			s.Errorf("the DaemonSet controller warns: %s: %s", e.Reason, e.Message)
		}
	}
	s.nativeLogsNothing()
}

// usual are errors that kube-controller-manager logs also without Stayput: its cache is older than its own last write, or older than the
// object that it meets, and it retries. With a short history it deletes a revision twice for the same reason (cleanupHistory in
// pkg/controller/daemon/update.go).
var usual = []string{"the object has been modified", "is not as new as written version",
	"failed to clean up revisions of DaemonSet: controllerrevisions.apps"}

// nativeLogsNothing checks the log of the test cluster's kube-controller-manager for errors about DaemonSets of the namespace.
func (s *scenario) nativeLogsNothing() {
	log, err := os.Open(filepath.Join(repository, ".cluster", "log", "kube-controller-manager.log"))
	if errors.Is(err, fs.ErrNotExist) {
		s.Log("kube-controller-manager's log is not here: this is not the test cluster")
		return
	}
	if err != nil {
		s.Error(err)
		return
	}
	defer func() { _ = log.Close() }()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if line := lines.Text(); s.isComplaint(line) {
			s.Errorf("kube-controller-manager logs: %s", line)
		}
	}
	if err := lines.Err(); err != nil {
		s.Error(err)
	}
}

func (s *scenario) isComplaint(line string) bool {
	if !strings.HasPrefix(line, "E") || !strings.Contains(line, s.namespace+"/") || !strings.Contains(line, "agent failed with") {
		return false
	}
	for _, text := range usual {
		if strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// install creates the DaemonSet and waits until it is rolled out.
func (s *scenario) install(ds *appsv1.DaemonSet) {
	s.Helper()
	s.submitDaemonSet(ds)
	if ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		s.ends(daemonSetPrefix + ds.Name) // kubectl rollout status does not support OnDelete
		return
	}
	s.completes(daemonSetPrefix + ds.Name)
}

// submitDaemonSet creates the DaemonSet.
func (s *scenario) submitDaemonSet(ds *appsv1.DaemonSet) {
	s.Helper()
	if _, err := clients.AppsV1().DaemonSets(s.namespace).Create(s.Context(), ds, metav1.CreateOptions{}); err != nil {
		s.Fatalf("creating DaemonSet %s: %v", ds.Name, err)
	}
}

// daemonSetOption changes a DaemonSet before it is created.
type daemonSetOption func(*appsv1.DaemonSet)

// agent returns a DaemonSet of the test application at v1, with the defaults otherwise: maxUnavailable 1.
func agent(options ...daemonSetOption) *appsv1.DaemonSet {
	like := web(1, named("agent"))
	ds := &appsv1.DaemonSet{
		ObjectMeta: like.ObjectMeta,
		Spec:       appsv1.DaemonSetSpec{Selector: like.Spec.Selector, Template: like.Spec.Template},
	}
	for _, set := range options {
		set(ds)
	}
	return ds
}

// templated applies an option for Deployments to a DaemonSet: to its name, labels, annotations, selector and template.
func templated(set option) daemonSetOption {
	return func(ds *appsv1.DaemonSet) {
		like := &appsv1.Deployment{ObjectMeta: ds.ObjectMeta, Spec: appsv1.DeploymentSpec{Selector: ds.Spec.Selector, Template: ds.Spec.Template}}
		set(like)
		ds.ObjectMeta, ds.Spec.Selector, ds.Spec.Template = like.ObjectMeta, like.Spec.Selector, like.Spec.Template
	}
}

func allTemplated(options []option) []daemonSetOption {
	var all []daemonSetOption
	for _, set := range options {
		all = append(all, templated(set))
	}
	return all
}

// lasting makes every pod take seconds to become ready, so that states in the middle of an update last.
var lasting = templated(slow)

func budget(maxUnavailable, maxSurge string) daemonSetOption {
	unavailable, surge := intstr.Parse(maxUnavailable), intstr.Parse(maxSurge)
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
			Type:          appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable, MaxSurge: &surge},
		}
	}
}

func onDelete(ds *appsv1.DaemonSet) {
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
}

// daemonsOvertaken replaces an update that is possible in place by one that is not, and checks that no write stays held.
func daemonsOvertaken(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	s.install(agent())
	s.recreatedUnder(recreatedDaemons, agents, func() {
		s.setImage(agents, "app=v2")
		s.setEnv(agents, "COLOUR=green")
	})
	s.runs(agents, "v2")
}

// recreatedDaemons is recreated, with an outage that is also possible natively. The DaemonSet controller waits until its cache shows the
// deletion of a pod, but it accepts any event of a terminating pod as that, also the end of the pod before (updatePod and deletePod in
// pkg/controller/daemon/daemon_controller.go). Then it may delete the next pod too soon: seen on 1.35.4.
var recreatedDaemons = Rules{Created: some, Deleted: some, Outage: true}

// daemonsOnDelete checks that with OnDelete only the user deletes pods, and that nothing else changes them.
func daemonsOnDelete(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	s.install(agent(onDelete))
	s.create(web(1, named("clock")))
	s.begin("edited", updatesOnly("clock"))
	s.setImage(agents, "app=v2")
	s.tick("v2")
	s.begin("deleted by hand", Rules{Created: exactly(3), Deleted: exactly(3)})
	s.kubectl("", "delete", "pods", "-l", "app=agent", "--timeout=2m")
	s.ends(agents)
	s.runs(agents, "v2")
}

func daemonsOnDeleteInPlace(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	s.install(agent(onDelete))
	s.inPlaceOnDelete(agents, "DaemonSet")
}

// daemonEvicted checks that the native controller replaces a pod that is evicted in the middle of an update, on the newest revision. The
// other pods stay.
func daemonEvicted(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	s.install(agent(lasting))
	before := s.pods(agents)
	s.begin("a pod is lost", Rules{Created: exactly(1), Deleted: exactly(1), Outage: true})
	s.setImage(agents, "app=v2")
	s.reaches(agents, threeway)
	lost := s.untouched(agents)
	evict(s, lost)
	s.gone(lost)
	s.completes(agents)
	s.runs(agents, "v2")
	delete(before, lost.UID)
	s.survived(agents, before)
}

// untouched returns a pod whose turn has not come.
func (s *scenario) untouched(name string) *corev1.Pod {
	s.Helper()
	now := s.workload(name)
	for _, pod := range now.pods {
		if !now.updated(pod) && ready(pod) {
			return pod
		}
	}
	s.Fatalf("no pod of %s is untouched: %s", name, now.podCounts())
	return nil
}

// gone waits until the pod no longer exists.
func (s *scenario) gone(lost *corev1.Pod) {
	s.Helper()
	s.wait(lost.Name+" to be gone", func(w world) error {
		if pod := w.pods[lost.UID]; pod != nil {
			return errors.New(describePod(pod))
		}
		return nil
	})
}

func deleteByHand(s *scenario, pod *corev1.Pod) {
	s.Helper()
	s.kubectl("", "delete", "pod", pod.Name, "--timeout=2m")
}

func evict(s *scenario, pod *corev1.Pod) {
	s.Helper()
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}
	if err := clients.PolicyV1().Evictions(pod.Namespace).Evict(s.Context(), eviction); err != nil {
		s.Fatalf("evicting pod %s: %v", pod.Name, err)
	}
}

// fail makes the kubelet find the pod beyond its deadline, so that its phase becomes Failed.
func fail(s *scenario, pod *corev1.Pod) {
	s.Helper()
	s.kubectl("", "patch", "pod", pod.Name, "--type=merge", "-p", `{"spec":{"activeDeadlineSeconds":1}}`)
}

// daemonHistory checks that no old revision is kept where the DaemonSet says so.
func daemonHistory(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	s.install(agent(func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = new(int32) }))
	s.inPlace(agents, once, func() { s.setImage(agents, "app=v2") })
	s.inPlace(agents, once, func() { s.setImage(agents, "app=v3") })
	s.wait("the older revisions to be cleaned up", func(w world) error {
		if len(w.revisions) != 1 {
			return fmt.Errorf("there are %d revisions", len(w.revisions))
		}
		return nil
	})
	s.history(agents, "3")
}

// survived checks that the pods of before still exist.
func (s *scenario) survived(name string, before map[types.UID]*corev1.Pod) {
	s.Helper()
	after := s.pods(name)
	for uid, pod := range before {
		if after[uid] == nil {
			s.Errorf("pod %s is gone", pod.Name)
		}
	}
}
