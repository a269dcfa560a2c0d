package e2e

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// story is a small update as events: Deployment d, ReplicaSets old and new, pods p1 and p2. Each test spoils one thing.
type story struct {
	events []event
	later  time.Duration // of the next event after the first
}

func (s *story) tell(what watch.EventType, object metav1.Object) {
	s.events = append(s.events, event{version: uint64(len(s.events) + 1), at: time.Unix(1000, 0).Add(s.later), what: what, object: object})
}

func template(version string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "d"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: version}}},
	}
}

// aDeployment returns a Deployment with 2 replicas, of which one may be unavailable. Its status says that this many replicas are updated
// and available.
func aDeployment(version string, generation int64, updated int32) *appsv1.Deployment {
	replicas, one := int32(2), intstr.FromInt32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d", Generation: generation},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: template(version), Selector: selecting("d"),
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &one},
			}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: generation, Replicas: 2, UpdatedReplicas: updated, AvailableReplicas: updated},
	}
}

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func aSet(name, version string) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{hashLabel: name},
			Annotations: map[string]string{revisionAnnotation: strings.TrimPrefix(version, "v")}, OwnerReferences: ownedBy("d")},
		Spec: appsv1.ReplicaSetSpec{Template: template(version)},
	}
	set.Spec.Template.Labels[hashLabel] = name
	return set
}

func aPod(name, set, version string, isReady bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if isReady {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), OwnerReferences: ownedBy(set),
			Labels: map[string]string{"app": "d", hashLabel: set}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: version}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}
}

// takesOut takes the pod out of service.
func takesOut(pod *corev1.Pod) *corev1.Pod {
	*conditionOf(pod, corev1.PodReady) = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: outReason}
	return pod
}

// marked gives the pod the mark of a move.
func marked(pod *corev1.Pod, mark string) *corev1.Pod {
	pod.Annotations = map[string]string{moveAnnotation: mark}
	return pod
}

func ownedBy(uid string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{UID: types.UID(uid), Name: uid, Controller: &yes}}
}

// begun returns a completed rollout of v1, followed by an edit to v2.
func begun() *story {
	s := &story{}
	s.tell(watch.Added, aDeployment("v1", 1, 0))
	s.tell(watch.Added, aSet("old", "v1"))
	s.tell(watch.Added, aPod("p1", "old", "v1", true))
	s.tell(watch.Added, aPod("p2", "old", "v1", true))
	s.tell(watch.Modified, aDeployment("v1", 1, 2))
	edited := aDeployment("v2", 2, 2)
	edited.Status.ObservedGeneration = 1
	s.tell(watch.Modified, edited)
	s.tell(watch.Added, aSet("new", "v2"))
	s.tell(watch.Modified, aDeployment("v2", 2, 0))
	return s
}

// moves adds events in which a pod is drained, patched and ready.
func (s *story) moves(pod string) {
	s.tell(watch.Modified, takesOut(aPod(pod, "old", "v1", false)))
	s.tell(watch.Modified, takesOut(aPod(pod, "new", "v2", false)))
	s.tell(watch.Modified, aPod(pod, "new", "v2", false))
	s.tell(watch.Modified, aPod(pod, "new", "v2", true))
}

func (s *story) decision() string { return s.verdictUnder(inPlace) }

func (s *story) verdictUnder(rules Rules) string {
	_, violations := decided(s.events, []phase{
		{name: "creation", rules: Rules{Created: anyNumber, Deleted: anyNumber}},
		{name: "edit", rules: rules, from: 5},
	})
	return strings.Join(violations, "\n")
}

func TestJudgeAcceptsAnUpdateInPlace(t *testing.T) {
	s := begun()
	s.moves("p1")
	s.tell(watch.Modified, aDeployment("v2", 2, 1))
	s.moves("p2")
	s.tell(watch.Modified, aDeployment("v2", 2, 2))
	if decision := s.decision(); decision != "" {
		t.Error(decision)
	}
}

// A pod that was out of service when a Deployment was scaled up does not count as available.
func TestJudgeGrantsWhatWasOutBefore(t *testing.T) {
	for name, c := range map[string]struct {
		second *corev1.Pod
		found  string
	}{
		"out of service": {takesOut(aPod("p2", "old", "v1", true)), ""},
		"in service":     {aPod("p2", "old", "v1", true), "2 of 3 pods are unavailable, 1 may be"},
	} {
		t.Run(name, func(t *testing.T) {
			s, scaled := begun(), aDeployment("v2", 3, 0)
			*scaled.Spec.Replicas = 3
			s.tell(watch.Modified, c.second)
			s.tell(watch.Added, aPod("p3", "new", "v2", true))
			s.tell(watch.Modified, scaled)
			s.later += wavering
			s.tell(watch.Modified, aPod("p1", "old", "v1", false))
			s.tell(watch.Modified, aPod("p2", "old", "v1", false))
			if decision := s.verdictUnder(anyChurn); !strings.Contains(decision, c.found) || (c.found == "") != (decision == "") {
				t.Error(decision)
			}
		})
	}
}

// An undo of a native rollout that has just begun is complete natively as soon as the status of the unwanted ReplicaSet counts no pod.
func TestJudgeGrantsWhatIsNotCountedYet(t *testing.T) {
	for counted, found := range []string{"", "rolled out before pod p3"} {
		s := begun()
		s.tell(watch.Added, aPod("p3", "new", "v2", false))
		unwanted, wanted := aSet("new", "v2"), int32(0)
		unwanted.Spec.Replicas, unwanted.Status.Replicas = &wanted, int32(counted)
		s.tell(watch.Modified, unwanted)
		s.tell(watch.Modified, aDeployment("v1", 3, 2))
		if decision := s.verdictUnder(anyChurn); !strings.Contains(decision, found) || (found == "") != (decision == "") {
			t.Errorf("%d counted: %q instead of %q", counted, decision, found)
		}
	}
}

// A pod has been Ready even if its kubelet takes that back in its next report, unless the container restarted in between.
func TestJudgeGrantsWhatHasServed(t *testing.T) {
	for restarts, found := range []string{"", "rolled out before pod p2"} {
		s := begun()
		s.moves("p1")
		s.moves("p2")
		again := aPod("p2", "new", "v2", false)
		if restarts > 0 {
			again.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", RestartCount: int32(restarts)}}
		}
		s.tell(watch.Modified, again)
		s.tell(watch.Modified, aDeployment("v2", 2, 2))
		if decision := s.decision(); !strings.Contains(decision, found) || (found == "") != (decision == "") {
			t.Errorf("%d restarts: %q instead of %q", restarts, decision, found)
		}
	}
}

// A label may be ahead of the owner only if the mark says that variables have read it.
func TestJudgeGrantsWhatWasReadEarly(t *testing.T) {
	const found = "its label app is"
	for mark, granted := range map[string]bool{
		"": false,
		`{"hash":"new","back":{"app":"v1"},"read":{"labels":["tier"],"annotations":["app"]}}`: false,
		`{"hash":"new","back":{"app":"v1"},"read":{"labels":["app","tier"]}}`:                 true,
	} {
		s := begun()
		pod := marked(aPod("p1", "old", "v1", true), mark)
		pod.Labels["app"] = "e"
		s.tell(watch.Modified, pod)
		if decision := s.decision(); strings.Contains(decision, found) == granted {
			t.Errorf("marked %s: %q", mark, decision)
		}
	}
}

// backToV1 is the mark of a pod that was patched while it served.
const backToV1 = `{"hash":"new","back":{"app":"v1"}}`

// A pod restarts while it serves only where it may be the last endpoint of a Service. It is patched first, and moves when its container has
// restarted.
func TestJudgeOfTheLastEndpoint(t *testing.T) {
	ofService, runs := aSlice("p1"), func(pod *corev1.Pod, image string) *corev1.Pod {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: image}}
		return pod
	}
	for name, c := range map[string]struct {
		events []metav1.Object
		found  string
	}{
		"it serves until its container stops": {[]metav1.Object{ofService, marked(aPod("p1", "old", "v2", true), backToV1),
			marked(aPod("p1", "old", "v2", false), backToV1), runs(aPod("p1", "new", "v2", true), "v2")}, ""},
		"it goes back": {[]metav1.Object{ofService, marked(aPod("p1", "old", "v2", true), backToV1), aPod("p1", "old", "v1", true)}, ""},
		"no Service has it": {[]metav1.Object{aSlice("p2"), marked(aPod("p1", "old", "v2", true), backToV1)},
			"has images map[app:v2] instead of map[app:v1], and was in service"},
		"it moves in service": {[]metav1.Object{ofService, runs(aPod("p1", "new", "v2", true), "v1")}, "while app still runs v1"},
		"nothing leads back":  {[]metav1.Object{ofService, aPod("p1", "old", "v2", true)}, "is under old, but has images"},
		"it was out of service": {[]metav1.Object{ofService, takesOut(aPod("p1", "old", "v1", true)),
			marked(takesOut(aPod("p1", "old", "v2", true)), backToV1)}, "is under old, but has images"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun()
			for _, object := range c.events {
				s.tell(watch.Modified, object)
			}
			if decision := s.decision(); !strings.Contains(decision, c.found) || (c.found == "") != (decision == "") {
				t.Errorf("%q instead of %q", decision, c.found)
			}
		})
	}
}

// aSlice returns a slice of a Service that sends clients to the pod.
func aSlice(pod string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"},
		Endpoints: []discoveryv1.Endpoint{{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod}}}}
}

// A pod whose kubelet takes its Ready back for a moment counts as available, unless that lasts or its container has stopped.
func TestJudgeGrantsThatAKubeletWavers(t *testing.T) {
	stopped := aPod("p1", "new", "v2", false)
	stopped.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}}
	for name, c := range map[string]struct {
		first *corev1.Pod
		later time.Duration
		found string
	}{
		"for a moment":    {aPod("p1", "new", "v2", false), time.Second, ""},
		"for longer":      {aPod("p1", "new", "v2", false), wavering, "2 of 2 pods are unavailable, 1 may be"},
		"it was taken":    {takesOut(aPod("p1", "new", "v2", false)), time.Second, "2 of 2 pods are unavailable, 1 may be"},
		"it has stopped":  {stopped, time.Second, "2 of 2 pods are unavailable, 1 may be"},
		"it runs another": {aPod("p1", "old", "v1", false), time.Second, "2 of 2 pods are unavailable, 1 may be"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun()
			s.moves("p1")
			s.tell(watch.Modified, c.first)
			s.later += c.later
			s.tell(watch.Modified, takesOut(aPod("p2", "old", "v1", false)))
			if decision := s.decision(); !strings.Contains(decision, c.found) || (c.found == "") != (decision == "") {
				t.Errorf("%q instead of %q", decision, c.found)
			}
		})
	}
}

// Where managers end, so many more pods may be unavailable as the rules say.
func TestJudgeGrantsWhatIsSpare(t *testing.T) {
	for spare, found := range []string{"2 of 2 pods are unavailable, 1 may be", ""} {
		s := begun()
		bothDrained(s)
		if decision := s.verdictUnder(Rules{Spare: spare}); decision != found && !strings.HasSuffix(decision, found) {
			t.Errorf("%d spare: %q instead of %q", spare, decision, found)
		}
	}
}

// A phase of one workload does not count what happens to another, and does not end the other's phase.
func TestJudgeCountsEachWorkload(t *testing.T) {
	for name, c := range map[string]struct {
		edited string
		found  string
	}{
		"the Deployment": {"d", "phase \"edit\" of d created 1 pods, not 0: p3"},
		"the DaemonSet":  {daemonSetPrefix + "d", ""},
		"all":            {"", "phase \"edit\" created 1 pods, not 0: p3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun()
			s.tell(watch.Added, aPod("p3", "new", "v2", true))
			_, violations := decided(s.events, []phase{
				{name: "creation", rules: Rules{Created: anyNumber, Deleted: anyNumber}},
				{name: "edit", rules: inPlace.of(c.edited), from: 5},
			})
			if decision := strings.Join(violations, "\n"); decision != c.found {
				t.Errorf("%q instead of %q", decision, c.found)
			}
		})
	}
}

func TestJudgeFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*story)
		found string
	}{
		"created":             {func(s *story) { s.tell(watch.Added, aPod("p3", "new", "v2", true)) }, "created 1 pods"},
		"deleted":             {func(s *story) { s.tell(watch.Deleted, aPod("p1", "old", "v1", true)) }, "deleted 1 pods"},
		"image ahead":         {func(s *story) { s.tell(watch.Modified, aPod("p1", "old", "v2", true)) }, "has images"},
		"image behind":        {func(s *story) { s.tell(watch.Modified, aPod("p1", "new", "v1", true)) }, "has images"},
		"hash of another":     {func(s *story) { s.tell(watch.Modified, wrongHash()) }, "label pod-template-hash"},
		"orphan":              {func(s *story) { s.tell(watch.Modified, orphan()) }, "has no owner"},
		"too many at a time":  {bothDrained, "2 of 2 pods are unavailable, 1 may be"},
		"early success":       {func(s *story) { s.moves("p1"); s.tell(watch.Modified, aDeployment("v2", 2, 2)) }, "rolled out before pod p2"},
		"invented count":      {func(s *story) { s.tell(watch.Modified, aDeployment("v2", 2, 1)) }, "which has never been true"},
		"template rewritten":  {func(s *story) { s.tell(watch.Modified, aSet("old", "v2")) }, "another template"},
		"revision not native": {func(s *story) { s.tell(watch.Modified, renumbered()) }, "went from revision 1 to 2"},
		"spec written":        {func(s *story) { s.tell(watch.Modified, written()) }, "stayput wrote its spec"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun()
			c.spoil(s)
			if decision := s.decision(); !strings.Contains(decision, c.found) {
				t.Errorf("%q is not in %q", c.found, decision)
			}
		})
	}
}

func bothDrained(s *story) {
	s.tell(watch.Modified, takesOut(aPod("p1", "old", "v1", false)))
	s.tell(watch.Modified, takesOut(aPod("p2", "old", "v1", false)))
}

func wrongHash() *corev1.Pod {
	pod := aPod("p1", "new", "v2", true)
	pod.Labels[hashLabel] = "old"
	return pod
}

func orphan() *corev1.Pod {
	pod := aPod("p1", "new", "v2", true)
	pod.OwnerReferences = nil
	return pod
}

func renumbered() *appsv1.ReplicaSet {
	set := aSet("old", "v1")
	set.Annotations[revisionAnnotation] = "2"
	return set
}

func written() *appsv1.Deployment {
	d := aDeployment("v2", 2, 0)
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "stayput", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	return d
}

// TestJudgeLooksAtSidecars checks that of a pod's init containers only the sidecars' images count.
func TestJudgeLooksAtSidecars(t *testing.T) {
	spec := func(setup, mesh string) corev1.PodSpec {
		return corev1.PodSpec{InitContainers: []corev1.Container{{Name: "setup", Image: setup},
			{Name: "mesh", Image: mesh, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}}
	}
	for name, test := range map[string]struct {
		pod  corev1.PodSpec
		same bool
	}{
		"the template's":                    {spec("v1", "v1"), true},
		"another init container, which ran": {spec("v2", "v1"), true},
		"another sidecar":                   {spec("v1", "v2"), false},
	} {
		if got := hasImages(&corev1.Pod{Spec: test.pod}, spec("v1", "v1")); got != test.same {
			t.Errorf("%s: has the template's images: %t", name, got)
		}
	}
}
