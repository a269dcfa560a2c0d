package disruption

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// model is a namespace in which several workers take pods of one PodDisruptionBudget, users evict pods, and the disruption controller
// counts them. Each reads the pods through a cache that lags by its own delay.
type model struct {
	rng    *rand.Rand
	budget *policyv1.PodDisruptionBudget
	// log has all versions of all pods. Version n of the store is the state after n entries.
	log []*corev1.Pod
	// seen is how much of the log Stayput's cache has, counted how much the disruption controller's has.
	seen, counted int
	// given are pods with an allowance that is not written yet, at the version on which that was decided. written are the versions that such
	// pods have reached.
	given, written map[types.UID]int
	made           int
	trace          []string
	failed         string
}

func newModel(seed int64) *model {
	m := &model{rng: rand.New(rand.NewSource(seed)), given: map[types.UID]int{}, written: map[types.UID]int{}}
	count := 2 + m.rng.Intn(6)
	for range count {
		m.create(corev1.ConditionTrue)
	}
	m.seen, m.counted = len(m.log), len(m.log)
	m.budget = requiring(int32(m.rng.Intn(count+1)), 0)
	m.sync()
	return m
}

func (m *model) create(ready corev1.ConditionStatus) {
	m.made++
	pod := pods(1)[0]
	pod.Name = fmt.Sprint("web-", m.made)
	pod.UID, pod.Status.Conditions[0].Status = types.UID(pod.Name), ready
	m.log = append(m.log, pod)
}

// at returns the pods after so many entries of the log, with the entry of each.
func (m *model) at(entries int) (all []*corev1.Pod, version map[types.UID]int) {
	version = map[types.UID]int{}
	for i, pod := range m.log[:entries] {
		version[pod.UID] = i
	}
	for i, pod := range m.log[:entries] {
		if version[pod.UID] == i && pod.Status.Phase != corev1.PodFailed {
			all = append(all, pod)
		}
	}
	return all, version
}

func (m *model) store(pod *corev1.Pod, change func(*corev1.Pod)) {
	next := pod.DeepCopy()
	change(next)
	m.log = append(m.log, next)
	m.logf("%s: serves %t, proved %t, deleted %t", next.Name, serves(next), len(next.Spec.Containers) == 0, next.DeletionTimestamp != nil)
}

// sync is trySync of pkg/controller/disruption.
func (m *model) sync() {
	all, _ := m.at(m.counted)
	disrupted, healthy := map[string]metav1.Time{}, int32(0)
	for _, pod := range all {
		at, evicted := m.budget.Status.DisruptedPods[pod.Name]
		switch {
		case pod.DeletionTimestamp != nil:
		case evicted:
			disrupted[pod.Name] = at
		case pod.Status.Conditions[0].Status == corev1.ConditionTrue:
			healthy++
		}
	}
	status := &m.budget.Status
	status.CurrentHealthy, status.DisruptedPods, status.ExpectedPods = healthy, disrupted, int32(len(all))
	status.DisruptionsAllowed = max(0, healthy-status.DesiredHealthy)
	m.logf("counted %d, allowed %d", healthy, status.DisruptionsAllowed)
}

// evict is checkAndDecrement of pkg/registry/core/pod/storage/eviction.go. The pod is deleted later. Between the answer about an allowance
// and the write of Ready, no eviction is granted here: that moment is a known limit. Nor is a pod evicted of which the disruption
// controller does not know yet: it would forget the eviction (buildDisruptedPodMap).
func (m *model) evict() {
	pod := m.any()
	_, known := m.at(m.counted)
	if _, is := known[pod.UID]; !is {
		return
	}
	_, evicted := m.budget.Status.DisruptedPods[pod.Name]
	if pod.DeletionTimestamp != nil || evicted || m.budget.Status.DisruptionsAllowed == 0 || len(m.given) > 0 {
		return
	}
	m.budget = m.budget.DeepCopy()
	m.budget.Status.DisruptionsAllowed--
	m.budget.Status.DisruptedPods[pod.Name] = metav1.NewTime(now)
	m.logf("evicted %s", pod.Name)
	if m.rng.Intn(2) == 0 {
		m.store(pod, func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} })
	}
}

func (m *model) any() *corev1.Pod {
	all, _ := m.at(len(m.log))
	return all[m.rng.Intn(len(all))]
}

// allow asks for an allowance, as controller/allowance does: of the API server's PodDisruptionBudget, and of the cache's pods.
func (m *model) allow() {
	cached, version := m.at(m.seen)
	if len(cached) == 0 {
		return
	}
	seen := Seen{Budgets: []*policyv1.PodDisruptionBudget{m.budget}, Pods: cached, Taken: map[types.UID]bool{}}
	for uid := range m.given {
		seen.Taken[uid] = true
	}
	for uid, reached := range m.written {
		seen.Taken[uid] = seen.Taken[uid] || version[uid] < reached
	}
	pod := cached[m.rng.Intn(len(cached))]
	if !serves(pod) || seen.Taken[pod.UID] {
		return
	}
	if take(seen.Of(cached, now), pod, now) == "" {
		m.given[pod.UID] = version[pod.UID]
		m.logf("allowed %s", pod.Name)
	}
}

// write takes a pod that has an allowance out of service, unless the pod has changed.
func (m *model) write() {
	_, version := m.at(len(m.log))
	for uid, on := range m.given {
		delete(m.given, uid)
		if version[uid] != on {
			m.logf("%s has changed", uid)
			return
		}
		m.store(m.log[on], out)
		m.written[uid] = len(m.log) - 1
		m.logf("took out %s, %d are healthy, %d required", uid, m.healthy(), m.budget.Status.DesiredHealthy)
		if m.healthy() < int(m.budget.Status.DesiredHealthy) {
			m.failed = fmt.Sprintf("%d are healthy after %s was taken, %d required", m.healthy(), uid, m.budget.Status.DesiredHealthy)
		}
		return
	}
}

// healthy counts the pods that are healthy now.
func (m *model) healthy() int {
	all, _ := m.at(len(m.log))
	healthy := 0
	for _, pod := range all {
		_, evicted := m.budget.Status.DisruptedPods[pod.Name]
		if serves(pod) && !evicted {
			healthy++
		}
	}
	return healthy
}

// serves reports whether the pod is Ready, as evictions count it.
func serves(pod *corev1.Pod) bool {
	return pod.Status.Conditions[0].Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
}

// kubelet moves a pod on: one that is out of service serves again; a new one becomes Ready; one that is deleted goes, and another one
// comes. A pod that serves again may be Ready before its startup probe answers. Here the probes confirm that.
func (m *model) kubelet() {
	pod := m.any()
	_, evicted := m.budget.Status.DisruptedPods[pod.Name]
	switch {
	case pod.DeletionTimestamp != nil:
		m.store(pod, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }) // gone
		m.create(corev1.ConditionFalse)
	case evicted:
		m.store(pod, func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} })
	default:
		before := m.rng.Intn(2) == 0 && pod.Status.Conditions[0].Status != corev1.ConditionTrue
		m.store(pod, func(pod *corev1.Pod) {
			pod.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
			pod.Spec.Containers, pod.Status.ContainerStatuses = nil, nil
			if before {
				unproved(pod)
			}
		})
	}
}

func (m *model) tick() {
	switch n := m.rng.Intn(20); {
	case n < 6:
		m.allow()
	case n < 11:
		m.write()
	case n < 13:
		m.seen = min(len(m.log), m.seen+1+m.rng.Intn(3))
		m.logf("the cache has %d of %d", m.seen, len(m.log))
	case n < 15:
		m.counted = min(len(m.log), m.counted+1+m.rng.Intn(3))
		m.logf("the disruption controller's cache has %d", m.counted)
		m.budget = m.budget.DeepCopy()
		m.sync()
	case n < 16:
		m.evict()
	default:
		m.kubelet()
	}
}

func (m *model) logf(format string, values ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, values...))
}

// TestNoStepTakesTooMany runs random interleavings. After each pod that is taken out as many pods are healthy as the PodDisruptionBudget
// requires, whatever cache lags. STAYPUT_SEEDS=n runs n seeds.
func TestNoStepTakesTooMany(t *testing.T) {
	seeds, taken := int64(2000), 0
	if n, err := strconv.ParseInt(os.Getenv("STAYPUT_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		m := newModel(seed)
		for range 150 {
			if m.tick(); m.failed != "" {
				t.Fatalf("seed %d: %s\n%s", seed, m.failed, strings.Join(m.trace, "\n"))
			}
		}
		taken += len(m.written)
	}
	if taken < int(seeds) {
		t.Errorf("only %d pods were taken in %d seeds", taken, seeds)
	}
}
