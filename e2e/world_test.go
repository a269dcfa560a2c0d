package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/stayput/stayput/e2e/changes"
)

// Names that users and pods see. The suite is black-box, so it does not take them from the product.
const (
	updateLabel        = "stayput.dev/update"
	drainSetting       = "stayput.dev/drain"
	updatingLabel      = "stayput.dev/updating"
	renewedLabel       = "stayput.dev/renewed"
	currentLabel       = "stayput.dev/current"
	decisionAnnotation = "stayput.dev/decision"
	moveAnnotation     = "stayput.dev/move"
	parallelismSetting = "stayput.dev/pre-pull-parallelism"
	surgeSetting       = "stayput.dev/surge"
	auxiliaryList      = "stayput.dev/auxiliary"
	restartSetting     = "stayput.dev/restart-annotations"
	resizeSetting      = "stayput.dev/resize"
	prePullLabel       = "stayput.dev/pre-pull" // its value is the workload's UID
)

// user is the field manager of the suite's own writes.
const user = "e2e"

// ownName is the name of Stayput's own objects in the manifests, and its field manager.
const ownName = "stayput"

// registry serves every test image.
const registry = changes.Registry

// mirror is another name of the same registry.
const mirror = "localhost:5000/"

const (
	hashLabel          = appsv1.DefaultDeploymentUniqueLabelKey
	revisionAnnotation = "deployment.kubernetes.io/revision"
)

// event is one watch event. Each kind has its own watch, so the arrival order between kinds is arbitrary. All are in one etcd, so their
// resource versions give the order in which they happened.
type event struct {
	version uint64
	at      time.Time // of arrival
	what    watch.EventType
	object  metav1.Object
}

// world is one namespace at one moment. Pre-pull pods, which only pull images, are no pods of any workload: they are in a map of their own,
// so that they are not counted.
type world struct {
	deployments  map[types.UID]*appsv1.Deployment
	sets         map[types.UID]*appsv1.ReplicaSet
	daemonSets   map[types.UID]*appsv1.DaemonSet
	statefulSets map[types.UID]*appsv1.StatefulSet
	revisions    map[types.UID]*appsv1.ControllerRevision
	pods         map[types.UID]*corev1.Pod
	prePullPods  map[types.UID]*corev1.Pod
	slices       map[types.UID]*discoveryv1.EndpointSlice
}

func newWorld() world {
	return world{
		deployments:  map[types.UID]*appsv1.Deployment{},
		sets:         map[types.UID]*appsv1.ReplicaSet{},
		daemonSets:   map[types.UID]*appsv1.DaemonSet{},
		statefulSets: map[types.UID]*appsv1.StatefulSet{},
		revisions:    map[types.UID]*appsv1.ControllerRevision{},
		pods:         map[types.UID]*corev1.Pod{},
		prePullPods:  map[types.UID]*corev1.Pod{},
		slices:       map[types.UID]*discoveryv1.EndpointSlice{},
	}
}

func (w world) apply(e event) {
	switch object := e.object.(type) {
	case *appsv1.Deployment:
		keep(w.deployments, object.UID, object, e.what)
	case *appsv1.ReplicaSet:
		keep(w.sets, object.UID, object, e.what)
	case *appsv1.DaemonSet:
		keep(w.daemonSets, object.UID, object, e.what)
	case *appsv1.StatefulSet:
		keep(w.statefulSets, object.UID, object, e.what)
	case *appsv1.ControllerRevision:
		keep(w.revisions, object.UID, object, e.what)
	case *discoveryv1.EndpointSlice:
		keep(w.slices, object.UID, object, e.what)
	case *corev1.Pod:
		if pulls(object) {
			keep(w.prePullPods, object.UID, object, e.what)
			return
		}
		keep(w.pods, object.UID, object, e.what)
	}
}

func keep[T any](objects map[types.UID]T, uid types.UID, object T, what watch.EventType) {
	if what == watch.Deleted {
		delete(objects, uid)
		return
	}
	objects[uid] = object
}

// deployment finds a Deployment by name, or returns nil.
func (w world) deployment(name string) *appsv1.Deployment {
	for _, d := range w.deployments {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// setsOf returns the ReplicaSets of d, oldest first, as the Deployment controller sorts them.
func (w world) setsOf(d *appsv1.Deployment) []*appsv1.ReplicaSet {
	var owned []*appsv1.ReplicaSet
	for _, set := range w.sets {
		if metav1.IsControlledBy(set, d) {
			owned = append(owned, set)
		}
	}
	slices.SortFunc(owned, func(a, b *appsv1.ReplicaSet) int {
		if byAge := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return strings.Compare(a.Name, b.Name)
	})
	return owned
}

// updateReplicaSet returns the ReplicaSet with d's template, or nil: pkg/controller/deployment/util FindNewReplicaSet.
func (w world) updateReplicaSet(d *appsv1.Deployment) *appsv1.ReplicaSet {
	for _, set := range w.setsOf(d) {
		if sameTemplate(set.Spec.Template, d.Spec.Template) {
			return set
		}
	}
	return nil
}

func sameTemplate(a, b corev1.PodTemplateSpec) bool {
	a, b = *a.DeepCopy(), *b.DeepCopy()
	delete(a.Labels, hashLabel)
	delete(b.Labels, hashLabel)
	return equality.Semantic.DeepEqual(a, b)
}

// ownerOf returns the ReplicaSet that controls the pod, or nil.
func (w world) ownerOf(pod *corev1.Pod) *appsv1.ReplicaSet {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil
	}
	return w.sets[owner.UID]
}

// deploymentOf returns the Deployment whose ReplicaSet controls the pod, or nil.
func (w world) deploymentOf(pod *corev1.Pod) *appsv1.Deployment {
	set := w.ownerOf(pod)
	if set == nil {
		return nil
	}
	owner := metav1.GetControllerOf(set)
	if owner == nil {
		return nil
	}
	return w.deployments[owner.UID]
}

// podsOf returns the live pods of d, by name.
func (w world) podsOf(d *appsv1.Deployment) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range w.pods {
		if of := w.deploymentOf(pod); alive(pod) && of != nil && of.UID == d.UID {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// livePods counts the live pods in a place as the ReplicaSet controller does: controller.FilterActivePods.
func (w world) livePods(place types.UID) int {
	count := 0
	for _, pod := range w.pods {
		if alive(pod) && placeOf(pod) == place {
			count++
		}
	}
	return count
}

// placeOf returns the place of a pod, which an update changes: the ReplicaSet that controls it, or the revision of its DaemonSet or
// StatefulSet. It is empty if the pod has no controller.
func placeOf(pod *corev1.Pod) types.UID {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return ""
	case owner.Kind == "DaemonSet" || owner.Kind == "StatefulSet":
		return daemonPlace(owner.UID, pod.Labels[daemonHashLabel])
	}
	return owner.UID
}

func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	condition := conditionOf(pod, corev1.PodReady)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// available reports whether the pod has been Ready for minReadySeconds at the given time. Transition times are whole seconds, so a second
// is granted.
func available(pod *corev1.Pod, minReadySeconds int32, at time.Time) bool {
	if !ready(pod) || minReadySeconds == 0 {
		return ready(pod)
	}
	since := conditionOf(pod, corev1.PodReady).LastTransitionTime.Time
	return at.Sub(since) >= time.Duration(minReadySeconds-1)*time.Second
}

// outReason is the reason of the condition Ready of a pod that Stayput has taken out of service.
const outReason = "UpdatingInPlace"

// isOut reports whether Stayput has taken the pod out of service. It has not if the pod is not Ready by itself.
func isOut(pod *corev1.Pod) bool {
	condition := conditionOf(pod, corev1.PodReady)
	return condition != nil && condition.Status == corev1.ConditionFalse && condition.Reason == outReason
}

// offers reports whether a Service of the namespace sends clients to the pod.
func (w world) offers(pod *corev1.Pod) bool {
	for _, slice := range w.slices {
		if slices.Contains(offeredBy(slice), pod.Name) {
			return true
		}
	}
	return false
}

// offeredBy returns the names of the pods to which a slice sends clients.
func offeredBy(slice *discoveryv1.EndpointSlice) []string {
	var pods []string
	for _, endpoint := range slice.Endpoints {
		if ready := endpoint.Conditions.Ready; endpoint.TargetRef != nil && (ready == nil || *ready) {
			pods = append(pods, endpoint.TargetRef.Name)
		}
	}
	return pods
}

// imagesOf returns the images of the containers that run side by side: the ordinary ones and sidecars.
func imagesOf(spec corev1.PodSpec) map[string]string {
	images := map[string]string{}
	for _, container := range spec.Containers {
		images[container.Name] = container.Image
	}
	for _, container := range spec.InitContainers {
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			images[container.Name] = container.Image
		}
	}
	return images
}

// statusesOf returns the kubelet's statuses of the containers, including init containers.
func statusesOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
}

// hasImages reports whether the pod's containers have the images of the template, under any name of the registry, with or without a digest:
// a container that was restarted in its pod has its image by another name.
func hasImages(pod *corev1.Pod, template corev1.PodSpec) bool {
	images := imagesOf(pod.Spec)
	for name, image := range imagesOf(template) {
		has := strings.Replace(images[name], mirror, registry, 1)
		if unpinned, _, _ := strings.Cut(has, "@"); has != image && unpinned != image {
			return false
		}
	}
	return true
}

func restartsOf(pod *corev1.Pod) map[string]int32 {
	restarts := map[string]int32{}
	for _, status := range statusesOf(pod) {
		restarts[status.Name] = status.RestartCount
	}
	return restarts
}

func revisionOf(object metav1.Object) int64 {
	revision, err := strconv.ParseInt(object.GetAnnotations()[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// rolledOut returns what `kubectl rollout status` says: k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go.
func rolledOut(d *appsv1.Deployment) (bool, string) {
	status, replicas := d.Status, replicasOf(d)
	switch {
	case d.Generation > status.ObservedGeneration:
		return false, fmt.Sprintf("generation %d is not observed, but %d", d.Generation, status.ObservedGeneration)
	case progressing(d) != nil && progressing(d).Reason == "ProgressDeadlineExceeded":
		return false, "progress deadline exceeded"
	case status.UpdatedReplicas < replicas:
		return false, fmt.Sprintf("%d of %d replicas updated", status.UpdatedReplicas, replicas)
	case status.Replicas > status.UpdatedReplicas:
		return false, fmt.Sprintf("%d old replicas", status.Replicas-status.UpdatedReplicas)
	case status.AvailableReplicas < status.UpdatedReplicas:
		return false, fmt.Sprintf("%d of %d updated replicas available", status.AvailableReplicas, status.UpdatedReplicas)
	}
	return true, "rolled out"
}

func replicasOf(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func progressing(d *appsv1.Deployment) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == appsv1.DeploymentProgressing {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

// maxUnavailable returns how many pods of d may be unavailable at a time. It is the native number (deployment/util ResolveFenceposts),
// except that a percentage that rounds to 0 counts as 1: a pod that is updated in place is unavailable for a moment.
func maxUnavailable(d *appsv1.Deployment) int {
	replicas := int(replicasOf(d))
	rolling := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || rolling == nil || rolling.MaxUnavailable == nil {
		return replicas
	}
	budget := *rolling.MaxUnavailable
	missing, err := intstr.GetScaledValueFromIntOrPercent(&budget, replicas, false)
	if err != nil {
		panic(fmt.Sprintf("maxUnavailable %s got past the API server: %v", budget.String(), err))
	}
	if missing == 0 && budget.Type == intstr.String && budget.StrVal != "0%" {
		return 1
	}
	return missing
}

// podCounts counts the pods of a workload by their state.
type podCounts struct {
	done      int // of the update revision and Ready
	midway    int // of the update revision, not Ready by itself: the kubelet's turn
	moving    int // anything in between, also drained pods of an old ReplicaSet or revision
	untouched int // not of the update revision, Ready
}

func (w world) podCounts(d *appsv1.Deployment) podCounts { return w.ofDeployment(d).podCounts() }

func (of workload) podCounts() podCounts {
	var count podCounts
	for _, pod := range of.pods {
		switch updated := of.updated(pod); {
		case updated && ready(pod):
			count.done++
		case updated && !isOut(pod) && patchSeen(pod):
			count.midway++
		case !updated && ready(pod):
			count.untouched++
		default:
			count.moving++
		}
	}
	return count
}

// patchSeen reports whether the kubelet itself has reported the changed containers as not ready.
func patchSeen(pod *corev1.Pod) bool {
	condition := conditionOf(pod, corev1.ContainersReady)
	return condition != nil && condition.Status == corev1.ConditionFalse
}

func (t podCounts) String() string {
	return fmt.Sprintf("%d done, %d mid-way, %d moving, %d untouched", t.done, t.midway, t.moving, t.untouched)
}

// complete returns nil once the update of d is complete, else what is missing.
func (w world) complete(d *appsv1.Deployment) error {
	target := w.updateReplicaSet(d)
	if target == nil {
		return fmt.Errorf("no ReplicaSet has the template of generation %d", d.Generation)
	}
	if done, why := rolledOut(d); !done {
		return fmt.Errorf("status: %s; pods: %s", why, w.podCounts(d))
	}
	if condition := progressing(d); condition != nil && condition.Reason != "NewReplicaSetAvailable" {
		return fmt.Errorf("Progressing has reason %s", condition.Reason)
	}
	if err := w.podsComplete(d, target); err != nil {
		return err
	}
	return w.setsComplete(d, target)
}

func (w world) podsComplete(d *appsv1.Deployment, target *appsv1.ReplicaSet) error {
	for _, pod := range w.pods {
		if of := w.deploymentOf(pod); of != nil && of.UID == d.UID && !alive(pod) {
			return fmt.Errorf("pod %s is still terminating", pod.Name)
		}
	}
	pods := w.podsOf(d)
	if len(pods) != int(replicasOf(d)) {
		return fmt.Errorf("%d live pods instead of %d", len(pods), replicasOf(d))
	}
	for _, pod := range pods {
		if err := settled(pod, target); err != nil {
			return fmt.Errorf("pod %s %w", pod.Name, err)
		}
	}
	return nil
}

func settled(pod *corev1.Pod, target *appsv1.ReplicaSet) error {
	if !metav1.IsControlledBy(pod, target) {
		return fmt.Errorf("is not under %s", target.Name)
	}
	return follows(pod, target.Spec.Template)
}

// follows returns nil if the pod is Ready with the template's images.
func follows(pod *corev1.Pod, template corev1.PodTemplateSpec) error {
	switch {
	case !hasImages(pod, template.Spec):
		return fmt.Errorf("has images %v", imagesOf(pod.Spec))
	case isOut(pod):
		return fmt.Errorf("is out of service")
	case !ready(pod):
		return fmt.Errorf("is not Ready")
	}
	return nil
}

func (w world) setsComplete(d *appsv1.Deployment, target *appsv1.ReplicaSet) error {
	for _, set := range w.setsOf(d) {
		wanted := int32(0)
		if set.UID == target.UID {
			wanted = replicasOf(d)
		}
		if set.Spec.Replicas == nil || *set.Spec.Replicas != wanted || set.Status.Replicas != wanted {
			return fmt.Errorf("ReplicaSet %s does not have %d replicas", set.Name, wanted)
		}
	}
	return nil
}

// unmarked returns nil if Stayput's marks are gone from the ReplicaSets and the pods, and its own pods are gone.
func (w world) unmarked(d *appsv1.Deployment) error {
	if err := w.pulled(d); err != nil {
		return err
	}
	for _, pod := range w.podsOf(d) {
		if cost, marked := pod.Annotations[corev1.PodDeletionCost]; marked {
			return fmt.Errorf("pod %s still has deletion cost %s", pod.Name, cost)
		}
	}
	for _, set := range w.setsOf(d) {
		if _, marked := set.Labels[updatingLabel]; marked {
			return fmt.Errorf("ReplicaSet %s is still marked as settling", set.Name)
		}
	}
	return nil
}
