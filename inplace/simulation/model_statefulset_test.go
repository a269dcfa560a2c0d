package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// statefulSetController is what the StatefulSet controller does in one go: updateStatefulSet of
// pkg/controller/statefulset/stateful_set_control.go. It uses no rule of the product, so that it cannot share a mistake with it.
// TestModelOfTheStatefulSetController compares it with the real one.
type statefulSetController struct {
	set *apps.StatefulSet
	// pods are those in its cache.
	pods []*corev1.Pod
	// current and update are the names of revisions.
	current, update string
	now             time.Time
	// several is the feature MaxUnavailableStatefulSet, as in Kubernetes 1.37.
	several bool
	// create creates a pod, remove deletes one. A deletion that is refused is an error, which ends the round.
	create func(ordinal int, revision string)
	remove func(pod *corev1.Pod, forUpdate bool) (refused bool)

	replicas, condemned []*corev1.Pod // replicas are by index, which is the ordinal without the first ordinal
	status              appsv1.StatefulSetStatus
}

// run returns the status that it writes.
func (c *statefulSetController) run() appsv1.StatefulSetStatus {
	c.sort()
	more := c.eachReplica() && c.eachCondemned() && c.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
	c.count()
	switch {
	case !more:
	case !c.several:
		c.replaceOne()
	case c.ordered():
		c.replace(c.most()-c.unavailables(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil })
	default: // with policy Parallel, pods that are unavailable go first, and cost nothing
		unavailable := c.unavailables()
		if c.replace(len(c.replicas), func(pod *corev1.Pod) bool { return !c.available(pod) && pod.DeletionTimestamp == nil }) {
			c.replace(c.most()-unavailable, func(pod *corev1.Pod) bool { return !c.unavailable(pod) })
		}
	}
	c.complete()
	return c.status
}

func (c *statefulSetController) wants() int    { return int(*c.set.Spec.Replicas) }
func (c *statefulSetController) ordered() bool { return c.set.Spec.PodManagementPolicy != "Parallel" }

func (c *statefulSetController) first() int {
	if c.set.Spec.Ordinals == nil {
		return 0
	}
	return int(c.set.Spec.Ordinals.Start)
}

// partition is an index.
func (c *statefulSetController) partition() int {
	if rolling := c.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		return int(*rolling.Partition)
	}
	return 0
}

func (c *statefulSetController) most() int {
	most := intstr.FromInt32(1)
	if rolling := c.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		most = *rolling.MaxUnavailable
	}
	scaled, _ := intstr.GetScaledValueFromIntOrPercent(&most, c.wants(), false)
	return max(1, scaled)
}

// sort puts a pod that is to be created in place of each that is missing.
func (c *statefulSetController) sort() {
	c.replicas = make([]*corev1.Pod, c.wants())
	for _, pod := range c.pods {
		if index := c.ordinal(pod) - c.first(); index >= 0 && index < c.wants() {
			c.replicas[index] = pod
		} else {
			c.condemned = append(c.condemned, pod)
		}
	}
	slices.SortFunc(c.condemned, func(a, b *corev1.Pod) int { return cmp.Compare(c.ordinal(b), c.ordinal(a)) })
	for index, pod := range c.replicas {
		if pod == nil {
			c.replicas[index] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(c.set.Name, "-", c.first()+index)}}
			c.replicas[index].Labels = map[string]string{inplace.LabelRevisionHash: c.born(index)}
		}
	}
}

func (c *statefulSetController) ordinal(pod *corev1.Pod) int {
	ordinal, err := strconv.Atoi(pod.Name[strings.LastIndex(pod.Name, "-")+1:])
	if err != nil {
		panic(err)
	}
	return ordinal
}

// born is newVersionedStatefulSetPod: the revision with which a pod is created.
func (c *statefulSetController) born(index int) string {
	strategy, old := c.set.Spec.UpdateStrategy, c.partition()
	if strategy.RollingUpdate == nil && strategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		old = int(c.set.Status.CurrentReplicas)
	}
	if index < old {
		return c.current
	}
	return c.update
}

// eachReplica is processReplica of all. With policy OrderedReady it stops at the first that is not available.
func (c *statefulSetController) eachReplica() bool {
	for index, pod := range c.replicas {
		waits := false
		switch {
		case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
			waits = true
			if pod.DeletionTimestamp == nil && c.remove(pod, false) {
				return false
			}
		case pod.Status.Phase == "":
			waits = true
			c.create(c.first()+index, pod.Labels[inplace.LabelRevisionHash])
		case pod.DeletionTimestamp != nil, !ready(pod), !c.available(pod):
			waits = true
		}
		if waits && c.ordered() {
			return false
		}
	}
	return true
}

// eachCondemned is processCondemned of all. With policy OrderedReady it deletes one in a round, and waits for each to be gone.
func (c *statefulSetController) eachCondemned() bool {
	for _, pod := range c.condemned {
		waits := !(ready(pod) && c.available(pod)) && pod != c.firstUnavailable()
		switch {
		case c.ordered() && (pod.DeletionTimestamp != nil || waits):
			return false
		case pod.DeletionTimestamp != nil:
		case c.remove(pod, false), c.ordered():
			return false
		}
	}
	return true
}

func (c *statefulSetController) firstUnavailable() *corev1.Pod {
	upwards := slices.Clone(c.condemned)
	slices.Reverse(upwards)
	for _, pod := range slices.Concat(c.replicas, upwards) {
		if c.unavailable(pod) {
			return pod
		}
	}
	return nil
}

// replaceOne deletes one pod for the update, and waits for it to come back.
func (c *statefulSetController) replaceOne() {
	for index := c.wants() - 1; index >= c.partition(); index-- {
		pod := c.replicas[index]
		if pod.Labels[inplace.LabelRevisionHash] != c.update && pod.DeletionTimestamp == nil {
			c.delete(pod)
			return
		}
		if c.unavailable(pod) {
			return
		}
	}
}

// replace deletes at most so many of those pods for the update, and reports whether it may go on.
func (c *statefulSetController) replace(most int, those func(*corev1.Pod) bool) bool {
	for index := c.wants() - 1; index >= c.partition() && most > 0; index-- {
		if pod := c.replicas[index]; pod.Labels[inplace.LabelRevisionHash] != c.update && those(pod) {
			if !c.delete(pod) {
				return false
			}
			most--
		}
	}
	return true
}

// delete deletes a pod for the update, and reports whether it may go on.
func (c *statefulSetController) delete(pod *corev1.Pod) bool {
	if c.remove(pod, true) {
		return false
	}
	c.status.CurrentReplicas--
	return true
}

// unavailables counts all, those below the partition, too.
func (c *statefulSetController) unavailables() int {
	return len(slices.DeleteFunc(slices.Clone(c.replicas), func(pod *corev1.Pod) bool { return !c.unavailable(pod) }))
}

func (c *statefulSetController) unavailable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || !c.available(pod)
}

// available is IsPodAvailable.
func (c *statefulSetController) available(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			after := time.Duration(c.set.Spec.MinReadySeconds) * time.Second
			return after == 0 || !condition.LastTransitionTime.IsZero() && condition.LastTransitionTime.Add(after).Before(c.now)
		}
	}
	return false
}

// ready is isRunningAndReady.
func ready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && apps.IsTrue(pod, corev1.PodReady)
}

// count is updateStatus.
func (c *statefulSetController) count() {
	c.status.ObservedGeneration, c.status.CurrentRevision, c.status.UpdateRevision = c.set.Generation, c.current, c.update
	for _, pod := range slices.Concat(c.replicas, c.condemned) {
		if pod.Status.Phase == "" {
			continue
		}
		c.status.Replicas++
		if ready(pod) {
			c.status.ReadyReplicas++
		}
		if ready(pod) && c.available(pod) {
			c.status.AvailableReplicas++
		}
		if pod.DeletionTimestamp == nil && pod.Labels[inplace.LabelRevisionHash] == c.current {
			c.status.CurrentReplicas++
		}
		if pod.DeletionTimestamp == nil && pod.Labels[inplace.LabelRevisionHash] == c.update {
			c.status.UpdatedReplicas++
		}
	}
}

// complete is completeRollingUpdate, and completeUpdate of 1.37.
func (c *statefulSetController) complete() {
	s, wants := &c.status, *c.set.Spec.Replicas
	if !c.several && c.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return
	}
	if s.UpdatedReplicas == wants && s.ReadyReplicas == wants && s.Replicas == wants {
		s.CurrentReplicas, s.CurrentRevision = s.UpdatedReplicas, c.update
	}
}
