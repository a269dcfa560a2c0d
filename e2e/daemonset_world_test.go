package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const daemonHashLabel = appsv1.DefaultDaemonSetUniqueLabelKey

// daemonSetPrefix begins the names of DaemonSets, in kubectl's form. A name without a kind is that of a Deployment.
const daemonSetPrefix = "daemonset/"

func isDaemonSet(name string) bool { return strings.HasPrefix(name, daemonSetPrefix) }

// ref returns the name with its kind, for kubectl.
func ref(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return "deployment/" + name
}

// called returns the name of a workload in this form.
func called(workload metav1.Object) string {
	switch workload.(type) {
	case *appsv1.DaemonSet:
		return daemonSetPrefix + workload.GetName()
	case *appsv1.StatefulSet:
		return statefulSetPrefix + workload.GetName()
	}
	return workload.GetName()
}

// workloadOf returns the name of the workload that controls the pod, directly or through a ReplicaSet. It is empty if there is none.
func (w world) workloadOf(pod *corev1.Pod) string {
	if d := w.deploymentOf(pod); d != nil {
		return called(d)
	}
	if ds := w.daemonSetOf(pod); ds != nil {
		return called(ds)
	}
	if sts := w.statefulSetOf(pod); sts != nil {
		return called(sts)
	}
	return ""
}

// isNamed reports whether an object is the workload of this name.
func isNamed(object metav1.Object, name string) bool {
	switch object.(type) {
	case *appsv1.Deployment, *appsv1.DaemonSet, *appsv1.StatefulSet:
		return called(object) == name
	}
	return false
}

// workload is a workload at one moment, with what scenarios need to know of all kinds.
type workload struct {
	metav1.Object
	selector *metav1.LabelSelector
	pods     []*corev1.Pod          // live pods, by name
	updated  func(*corev1.Pod) bool // whether a pod belongs to the newest template
	complete func() error           // nil once the update is complete, else what is missing
	unmarked func() error           // nil if the revisions have no marks of Stayput
}

// workload finds a workload by its name.
func (w world) workload(name string) (workload, error) {
	if short, ok := strings.CutPrefix(name, daemonSetPrefix); ok {
		if ds := w.daemonSet(short); ds != nil {
			return w.ofDaemonSet(ds), nil
		}
	} else if short, ok := strings.CutPrefix(name, statefulSetPrefix); ok {
		if sts := w.statefulSet(short); sts != nil {
			return w.ofStatefulSet(sts), nil
		}
	} else if d := w.deployment(name); d != nil {
		return w.ofDeployment(d), nil
	}
	return workload{}, fmt.Errorf("there is no %s", ref(name))
}

// workloads returns all workloads.
func (w world) workloads() []workload {
	all := make([]workload, 0, len(w.deployments)+len(w.daemonSets)+len(w.statefulSets))
	for _, d := range w.deployments {
		all = append(all, w.ofDeployment(d))
	}
	for _, ds := range w.daemonSets {
		all = append(all, w.ofDaemonSet(ds))
	}
	for _, sts := range w.statefulSets {
		all = append(all, w.ofStatefulSet(sts))
	}
	return all
}

// rolledOut returns nil if all workloads with these names are rolled out, and bear no mark of Stayput where none is allowed.
func (w world) rolledOut(names []string, unmarked bool) error {
	for _, name := range names {
		of, err := w.workload(name)
		if err == nil {
			err = of.complete()
		}
		if err == nil && unmarked {
			err = of.unmarked()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (w world) ofDeployment(d *appsv1.Deployment) workload {
	target := w.updateReplicaSet(d)
	return workload{
		Object:   d,
		selector: d.Spec.Selector,
		pods:     w.podsOf(d),
		updated:  func(pod *corev1.Pod) bool { return target != nil && metav1.IsControlledBy(pod, target) },
		complete: func() error { return w.complete(d) },
		unmarked: func() error { return w.unmarked(d) },
	}
}

func (w world) ofDaemonSet(ds *appsv1.DaemonSet) workload {
	target := w.updateRevision(ds)
	return workload{
		Object:   ds,
		selector: ds.Spec.Selector,
		pods:     w.daemonPods(ds),
		updated:  func(pod *corev1.Pod) bool { return isOf(pod, target) },
		complete: func() error { return w.daemonComplete(ds) },
		unmarked: func() error { return w.daemonUnmarked(ds) },
	}
}

func (w world) daemonSet(name string) *appsv1.DaemonSet {
	for _, ds := range w.daemonSets {
		if ds.Name == name {
			return ds
		}
	}
	return nil
}

// daemonSetOf returns the DaemonSet that controls the pod, or nil.
func (w world) daemonSetOf(pod *corev1.Pod) *appsv1.DaemonSet {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil
	}
	return w.daemonSets[owner.UID]
}

// daemonPods returns the live pods of ds, by name.
func (w world) daemonPods(ds *appsv1.DaemonSet) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range w.pods {
		if alive(pod) && metav1.IsControlledBy(pod, ds) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// daemonPlace returns the place of the pods of one revision (see placeOf).
func daemonPlace(ds types.UID, hash string) types.UID { return ds + "/" + types.UID(hash) }

func isDaemonPlace(place types.UID) bool { return strings.Contains(string(place), "/") }

// scheduledPods counts the pods of a revision as the DaemonSet controller does in updateDaemonSetStatus. Unlike the ReplicaSet controller,
// it counts terminating pods.
func (w world) scheduledPods(place types.UID) int {
	pods := 0
	for _, pod := range w.pods {
		if placeOf(pod) == place && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			pods++
		}
	}
	return pods
}

// updateRevision returns the newest ControllerRevision with ds's template (pkg/controller/daemon/update.go, Match), or nil.
func (w world) updateRevision(ds *appsv1.DaemonSet) *appsv1.ControllerRevision {
	var newest *appsv1.ControllerRevision
	for _, revision := range w.revisions {
		owned := metav1.IsControlledBy(revision, ds) && sameTemplate(templateIn(revision), ds.Spec.Template)
		if owned && (newest == nil || revision.Revision > newest.Revision) {
			newest = revision
		}
	}
	return newest
}

// templateIn decodes the data of a DaemonSet's ControllerRevision, which is a patch of its template.
func templateIn(revision *appsv1.ControllerRevision) corev1.PodTemplateSpec {
	var patch struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(revision.Data.Raw, &patch); err != nil {
		panic(fmt.Sprintf("ControllerRevision %s holds no DaemonSet's template: %v", revision.Name, err))
	}
	return patch.Spec.Template
}

// isOf reports whether the pod has the hash label of the revision.
func isOf(pod *corev1.Pod, revision *appsv1.ControllerRevision) bool {
	return revision != nil && pod.Labels[daemonHashLabel] == revision.Labels[daemonHashLabel]
}

// mayBeUnavailableDaemons returns how many pods of ds may be unavailable at a time: pkg/controller/daemon/update.go,
// updatedDesiredNodeCounts.
func mayBeUnavailableDaemons(ds *appsv1.DaemonSet) int {
	desired, rolling := int(ds.Status.DesiredNumberScheduled), ds.Spec.UpdateStrategy.RollingUpdate
	if ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || rolling == nil {
		return desired
	}
	missing, surge := scaledUp(rolling.MaxUnavailable, desired), scaledUp(rolling.MaxSurge, desired)
	if missing == 0 && surge == 0 {
		return 1
	}
	return missing
}

func scaledUp(budget *intstr.IntOrString, of int) int {
	if budget == nil {
		return 0
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(budget, of, true)
	if err != nil {
		panic(fmt.Sprintf("budget %s got past the API server: %v", budget.String(), err))
	}
	return scaled
}

// daemonsRolledOut returns what `kubectl rollout status` says: k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go.
func daemonsRolledOut(ds *appsv1.DaemonSet) (bool, string) {
	status := ds.Status
	switch {
	case ds.Generation > status.ObservedGeneration:
		return false, fmt.Sprintf("generation %d is not observed, but %d", ds.Generation, status.ObservedGeneration)
	case status.UpdatedNumberScheduled < status.DesiredNumberScheduled:
		return false, fmt.Sprintf("%d of %d pods updated", status.UpdatedNumberScheduled, status.DesiredNumberScheduled)
	case status.NumberAvailable < status.DesiredNumberScheduled:
		return false, fmt.Sprintf("%d of %d pods available", status.NumberAvailable, status.DesiredNumberScheduled)
	}
	return true, "rolled out"
}

// daemonComplete returns nil once the update of ds is complete, else what is missing.
func (w world) daemonComplete(ds *appsv1.DaemonSet) error {
	target := w.updateRevision(ds)
	if target == nil {
		return fmt.Errorf("no ControllerRevision has the template of generation %d", ds.Generation)
	}
	if done, why := daemonsRolledOut(ds); !done {
		return fmt.Errorf("status: %s; pods: %s", why, w.ofDaemonSet(ds).podCounts())
	}
	for _, pod := range w.pods {
		if metav1.IsControlledBy(pod, ds) && !alive(pod) {
			return fmt.Errorf("pod %s is still leaving", pod.Name)
		}
	}
	pods := w.daemonPods(ds)
	if len(pods) == 0 || len(pods) != int(ds.Status.DesiredNumberScheduled) {
		return fmt.Errorf("%d live pods instead of %d", len(pods), ds.Status.DesiredNumberScheduled)
	}
	for _, pod := range pods {
		if !isOf(pod, target) {
			return fmt.Errorf("pod %s is not of revision %s", pod.Name, target.Name)
		}
		if err := follows(pod, ds.Spec.Template); err != nil {
			return fmt.Errorf("pod %s %w", pod.Name, err)
		}
	}
	return nil
}

// daemonUnmarked returns nil if Stayput's marks are gone from the ControllerRevisions, and its own pods are gone.
func (w world) daemonUnmarked(ds *appsv1.DaemonSet) error {
	if err := w.pulled(ds); err != nil {
		return err
	}
	for _, revision := range w.revisions {
		if _, marked := revision.Labels[updatingLabel]; marked && metav1.IsControlledBy(revision, ds) {
			return fmt.Errorf("ControllerRevision %s is still marked as settling", revision.Name)
		}
	}
	return nil
}

func describeDaemonSet(ds *appsv1.DaemonSet) string {
	status := ds.Status
	return fmt.Sprintf("gen=%d/%d desired=%d current=%d updated=%d ready=%d available=%d misscheduled=%d %s %s",
		ds.Generation, status.ObservedGeneration, status.DesiredNumberScheduled, status.CurrentNumberScheduled,
		status.UpdatedNumberScheduled, status.NumberReady, status.NumberAvailable, status.NumberMisscheduled,
		ds.Spec.UpdateStrategy.Type, shortImages(ds.Spec.Template.Spec))
}
