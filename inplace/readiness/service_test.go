package readiness_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/internal/fixture"
	"github.com/stayput/stayput/inplace/readiness"
)

func TestOut(t *testing.T) {
	ready := func(status corev1.ConditionStatus, reason string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: status, Reason: reason}}
	}
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		want       bool
	}{
		"no report yet":            {nil, false},
		"serves":                   {ready(corev1.ConditionTrue, ""), false},
		"taken out":                {ready(corev1.ConditionFalse, "UpdatingInPlace"), true},
		"not ready":                {ready(corev1.ConditionFalse, "ContainersNotReady"), false},
		"not ready, and no reason": {ready(corev1.ConditionFalse, ""), false},
		"another client's words":   {ready(corev1.ConditionTrue, "UpdatingInPlace"), false},
		"its node is lost":         {ready(corev1.ConditionUnknown, "UpdatingInPlace"), false},
		"of another condition":     {[]corev1.PodCondition{{Type: "other", Status: corev1.ConditionFalse, Reason: "UpdatingInPlace"}}, false},
	} {
		if got := readiness.Out(&corev1.Pod{Status: corev1.PodStatus{Conditions: c.conditions}}); got != c.want {
			t.Errorf("%s: out is %t", name, got)
		}
	}
}

// TestTakenOutUntil: users and other controllers see this condition.
func TestTakenOutUntil(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.FixedZone("", 3600))
	got := readiness.TakenOutUntil(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 7}}, at.Add(time.Minute), at)
	want := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "UpdatingInPlace",
		Message:            "Stayput keeps the pod out of service before its containers restart, at most until 2026-01-02T02:05:05Z",
		LastTransitionTime: metav1.NewTime(at), ObservedGeneration: 7}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{got}}}
	if !readiness.Out(pod) || !readiness.OutAt(pod).Equal(at) {
		t.Errorf("out is %t since %s", readiness.Out(pod), readiness.OutAt(pod))
	}
}

// TestPutBack: the kubelet writes the same, so it finds nothing to correct.
func TestPutBack(t *testing.T) {
	type conditions []corev1.PodCondition
	containers := func(status corev1.ConditionStatus, reason, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.ContainersReady, Status: status, Reason: reason, Message: message}
	}
	gate := func(name corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: name, Status: status}
	}
	ready := containers(corev1.ConditionTrue, "", "")
	for name, c := range map[string]struct {
		conditions conditions
		gates      []corev1.PodConditionType
		status     corev1.ConditionStatus
		reason     string
		message    string
	}{
		"its containers are ready": {conditions{ready}, nil, corev1.ConditionTrue, "", ""},
		"a container is not": {conditions{containers(corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [app]")},
			[]corev1.PodConditionType{"lb"}, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [app]"},
		"it is not known":    {conditions{containers(corev1.ConditionUnknown, "Why", "m")}, nil, corev1.ConditionUnknown, "Why", "m"},
		"there is no report": {nil, nil, corev1.ConditionFalse, "", ""},
		"a user's gate is open": {conditions{ready, gate("lb", corev1.ConditionTrue)}, []corev1.PodConditionType{"lb"},
			corev1.ConditionTrue, "", ""},
		"a user's gate is not there": {conditions{ready}, []corev1.PodConditionType{"lb"}, corev1.ConditionFalse, "ReadinessGatesNotReady",
			`corresponding condition of pod readiness gate "lb" does not exist.`},
		"a user's gate is closed": {conditions{ready, gate("lb", corev1.ConditionFalse)}, []corev1.PodConditionType{"lb"}, corev1.ConditionFalse,
			"ReadinessGatesNotReady", `the status of pod readiness gate "lb" is not "True", but False`},
		"two are, and one is open": {conditions{ready, gate("lb", corev1.ConditionUnknown), gate("ok", corev1.ConditionTrue)},
			[]corev1.PodConditionType{"lb", "ok", "mesh"}, corev1.ConditionFalse, "ReadinessGatesNotReady",
			`the status of pod readiness gate "lb" is not "True", but Unknown, ` +
				`corresponding condition of pod readiness gate "mesh" does not exist.`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 3},
				Status: corev1.PodStatus{ObservedGeneration: 2, Conditions: c.conditions}}
			for _, kind := range c.gates {
				pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: kind})
			}
			want := corev1.PodCondition{Type: corev1.PodReady, Status: c.status, Reason: c.reason, Message: c.message,
				LastTransitionTime: metav1.NewTime(fixture.Start), ObservedGeneration: 2}
			if got := readiness.PutBack(pod, fixture.Start); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// reports are the changes to a pod that was patched while it was out of service, and whose kubelet reports its new container. It was taken
// out at fixture.Start for a minute, and patched 10 s later.
type reports []func(*corev1.Pod)

// its changes the container that was patched.
func its(change func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { change(&pod.Status.ContainerStatuses[0]) }
}

// marked changes what the mark of the pod says of the container.
func marked(change func(*readiness.MovedContainer)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		move := readiness.MoveOf(pod)
		app := move.Containers["app"]
		change(&app)
		move.Containers = map[string]readiness.MovedContainer{"app": app}
		pod.Annotations[inplace.AnnotationMove] = move.String()
	}
}

// changed returns a pod that was patched while it was out of service, with those changes, and with the Ready of that status that its
// kubelet reports since that time.
func changed(status corev1.ConditionStatus, since time.Time, changes reports) *corev1.Pod {
	patched := marked(func(c *readiness.MovedContainer) { c.At = metav1.NewTime(fixture.Start.Add(10 * time.Second)) })
	pod := fixture.PatchedOut(append(reports{patched}, changes...)...)
	if status != "" {
		pod.Status.Conditions = readiness.WithCondition(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status,
			LastTransitionTime: metav1.NewTime(since)})
	}
	return pod
}

func TestStoredReady(t *testing.T) {
	at := func(seconds int) time.Time { return fixture.Start.Add(time.Duration(seconds) * time.Second) }
	old := its(func(c *corev1.ContainerStatus) { c.ContainerID, c.Image, c.ImageID = "old", "v1", "sha256:v1" })
	unchanged := its(func(c *corev1.ContainerStatus) {
		c.ContainerID, c.Image, c.ImageID, c.State = "another", "v1", "sha256:v1", fixture.RunningSince(at(15))
	})
	unready := its(func(c *corev1.ContainerStatus) { c.Ready = false })
	stopped := its(func(c *corev1.ContainerStatus) { c.State = corev1.ContainerState{} })
	unseen := func(pod *corev1.Pod) { pod.Status.ObservedGeneration = 1 }
	unpatched := func(pod *corev1.Pod) { pod.Annotations, pod.Generation, pod.Status.ObservedGeneration = nil, 1, 1 }
	moved := func(pod *corev1.Pod) { apps.Condition(pod, corev1.PodReady).ObservedGeneration = 2 }
	orphaned := func(pod *corev1.Pod) { pod.OwnerReferences = nil }
	owned := func(pod *corev1.Pod) { pod.OwnerReferences[0].Controller = nil }
	says := func(message string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { apps.Condition(pod, corev1.PodReady).Message = message }
	}
	restart := marked(func(c *readiness.MovedContainer) { c.Restart = true })
	wasUnready := marked(func(c *readiness.MovedContainer) { c.Unready = true })
	// restarted reports that the container was restarted at that second, and is ready since that other one.
	restarted := func(second, ready int) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].StartupProbe = &corev1.Probe{PeriodSeconds: 10}
			its(func(c *corev1.ContainerStatus) { c.RestartCount, c.State = 1, fixture.RunningSince(at(second)) })(pod)
			apps.Condition(pod, corev1.ContainersReady).LastTransitionTime = metav1.NewTime(at(ready))
		}
	}
	const until = "Stayput keeps the pod out of service before its containers restart, at most until "
	const staysOut, asSent, readyNow = "stays out", "as sent", "ready now"
	for name, c := range map[string]struct {
		// both changes what is stored and what is sent; old and sent only one of them.
		both, old, sent reports
		// The kubelet reports Ready as True since that second; now is when.
		since, now int
		want       string
	}{
		"it drains":                                {both: reports{unpatched, old}, now: 59, want: staysOut},
		"it drains, and its time is over":          {both: reports{unpatched, old}, since: -60, now: 60, want: readyNow},
		"it drains, with an old mark":              {both: reports{moved}, now: 59, want: staysOut},
		"the same, and its time is over":           {both: reports{moved}, since: -60, now: 60, want: readyNow},
		"the message was written by someone else":  {both: reports{unpatched, says("not now")}, since: -60, now: 1, want: readyNow},
		"the time in the message cannot be read":   {both: reports{unpatched, says(until + "noon")}, since: -60, now: 1, want: readyNow},
		"the message gives it more time":           {both: reports{unpatched, says(until + "2999-01-01T00:00:00Z")}, now: 600, want: staysOut},
		"no message":                               {both: reports{unpatched, says("")}, since: -60, now: 1, want: readyNow},
		"it drains without a controller":           {both: reports{unpatched, orphaned}, since: -60, now: 1, want: readyNow},
		"its owner does not control it":            {both: reports{unpatched, owned}, since: -60, now: 1, want: readyNow},
		"patched, without a controller":            {both: reports{orphaned, old}, since: -60, now: 20, want: readyNow},
		"patched, and the kubelet has not seen it": {both: reports{old, unseen}, now: 20, want: staysOut},
		"patched, and the old container runs":      {both: reports{old}, now: 20, want: staysOut},
		"the same, long after the time to drain":   {both: reports{old}, now: 600, want: staysOut},
		"seen with this report":                    {both: reports{old}, old: reports{unseen}, now: 20, want: staysOut},
		"unready since the patch":                  {both: reports{old}, sent: reports{unready}, since: 19, now: 20, want: asSent},
		"unready before the patch, too":            {both: reports{old, wasUnready}, sent: reports{unready}, now: 20, want: staysOut},
		"it does not run":                          {both: reports{old, wasUnready}, sent: reports{stopped}, since: 19, now: 20, want: asSent},
		"it runs what it was patched for":          {old: reports{old}, since: 20, now: 20, want: asSent},
		"it came again as it was":                  {both: reports{unchanged}, now: 16, want: staysOut},
		"it has run the same image for a while":    {both: reports{unchanged}, since: -60, now: 18, want: readyNow},
		"restarted, and the report before is of the old container": {both: reports{restart}, old: reports{old}, since: 20, now: 20,
			want: asSent},
		"restarted, and the report before had not seen the patch": {both: reports{restart}, old: reports{old, unseen}, since: 20, now: 20,
			want: staysOut},
		"restarted, and the report before was the same": {both: reports{restart}, since: 20, now: 20, want: staysOut},
		"restarted so long ago that none can be left":   {both: reports{restart}, since: 20, now: 50, want: asSent},
		"the startup probe has not answered":            {both: reports{restarted(20, 20)}, since: 20, now: 34, want: staysOut},
		"it has by now":                                 {both: reports{restarted(20, 20)}, since: 20, now: 35, want: asSent},
		"ready since before the restart":                {both: reports{restarted(20, -60)}, since: 20, now: 34, want: staysOut},
		"the startup probe has answered":                {both: reports{restarted(20, 35)}, since: 35, now: 35, want: asSent},
		"its kubelet never saw it go":                   {old: reports{old}, since: -60, now: 20, want: readyNow},
		"Ready again in the second in which it went":    {old: reports{old}, since: 0, now: 20, want: asSent},
	} {
		t.Run(name, func(t *testing.T) {
			was := changed("", time.Time{}, append(c.both[:len(c.both):len(c.both)], c.old...))
			sent := changed(corev1.ConditionTrue, at(c.since), append(c.both[:len(c.both):len(c.both)], c.sent...))
			stored, now := readiness.StoredReady(was, sent, at(c.now)), metav1.NewTime(at(c.now))
			got := asSent
			switch {
			case stored == nil:
			case *stored == *apps.Condition(was, corev1.PodReady):
				got = staysOut
			case stored.Status == corev1.ConditionTrue && stored.Reason == "" && stored.LastTransitionTime.Equal(&now):
				got = readyNow
			}
			if got != c.want {
				t.Errorf("%s is stored, want %s: %+v", got, c.want, stored)
			}
		})
	}
}

// TestStoredReadyOfOthers: what is not Ready=True of a pod that was out of service is the kubelet's own affair.
func TestStoredReadyOfOthers(t *testing.T) {
	old := its(func(c *corev1.ContainerStatus) { c.ContainerID, c.Image, c.ImageID = "old", "v1", "sha256:v1" })
	conditionless := changed("", time.Time{}, nil)
	conditionless.Status.Conditions = nil
	for name, c := range map[string]struct{ was, sent *corev1.Pod }{
		"it was in service": {changed(corev1.ConditionTrue, fixture.Start, reports{old}),
			changed(corev1.ConditionTrue, fixture.Start, reports{old})},
		"it was not ready": {changed(corev1.ConditionFalse, fixture.Start, reports{old}),
			changed(corev1.ConditionTrue, fixture.Start.Add(-time.Hour), reports{old})},
		"the report says nothing of Ready": {changed("", time.Time{}, reports{old}), conditionless},
		"it restarted, and is not ready": {changed("", time.Time{}, reports{old}),
			changed(corev1.ConditionFalse, fixture.Start.Add(-time.Hour), nil)},
	} {
		if stored := readiness.StoredReady(c.was, c.sent, fixture.Start.Add(20*time.Second)); stored != nil {
			t.Errorf("%s: %+v is stored", name, stored)
		}
	}
	was, sent := changed("", time.Time{}, reports{old}), changed(corev1.ConditionFalse, fixture.Start, reports{old})
	if stored := readiness.StoredReady(was, sent, fixture.Start.Add(20*time.Second)); stored == nil || !readiness.Out(was) {
		t.Errorf("a report of a neighbour that is not ready takes the reason away: %+v", stored)
	}
}

// TestAvailableAt: a pod that was patched while it served may be Ready since long before its container started.
func TestAvailableAt(t *testing.T) {
	before := func(seconds int) time.Time { return fixture.Start.Add(-time.Duration(seconds) * time.Second) }
	for name, c := range map[string]struct {
		ready        corev1.ConditionStatus
		since        int
		min          int32
		moved, other int // when the patched container and the other one started, 0 if it does not run
		available    bool
		wait         time.Duration
	}{
		"not Ready":                          {corev1.ConditionFalse, 60, 10, 60, 60, false, 0},
		"Ready for long":                     {corev1.ConditionTrue, 60, 10, 60, 60, true, 0},
		"Ready a moment ago":                 {corev1.ConditionTrue, 4, 10, 60, 60, false, 6 * time.Second},
		"Ready, and its container started":   {corev1.ConditionTrue, 60, 10, 3, 60, false, 7 * time.Second},
		"another container started":          {corev1.ConditionTrue, 60, 10, 60, 3, true, 0},
		"its container does not run":         {corev1.ConditionTrue, 60, 10, 0, 60, true, 0},
		"both a moment ago, and Ready later": {corev1.ConditionTrue, 2, 10, 4, 60, false, 8 * time.Second},
		"both a moment ago":                  {corev1.ConditionTrue, 4, 10, 2, 60, false, 8 * time.Second},
		"no minReadySeconds":                 {corev1.ConditionTrue, 0, 0, 1, 60, true, 0},
	} {
		pod := changed(c.ready, before(c.since), nil)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "other"})
		for i, started := range []int{c.moved, c.other} {
			pod.Status.ContainerStatuses[i].State = corev1.ContainerState{}
			if started > 0 {
				pod.Status.ContainerStatuses[i].State = fixture.RunningSince(before(started))
			}
		}
		available, wait := readiness.MoveOf(pod).AvailableAt(pod, c.min, fixture.Start)
		if available != c.available || wait != c.wait {
			t.Errorf("%s: available %t in %s, want %t in %s", name, available, wait, c.available, c.wait)
		}
	}
}

func TestByKubelet(t *testing.T) {
	nodes := []string{"system:nodes", "system:authenticated"}
	for _, c := range []struct {
		user   string
		groups []string
		node   string
		want   bool
	}{
		{"system:node:a", nodes, "a", true},
		{"system:node:a", nodes, "b", false},
		{"system:node:a", nil, "a", false},
		{"system:node:", nodes, "", false},
		{"system:serviceaccount:stayput-system:stayput", nil, "a", false},
	} {
		if got := readiness.ByKubelet(c.user, c.groups, c.node); got != c.want {
			t.Errorf("%s %v on %q: %t", c.user, c.groups, c.node, got)
		}
	}
}

func TestHasMarks(t *testing.T) {
	for key, want := range map[string]bool{inplace.AnnotationMove: true, inplace.AnnotationSurgePod: true, "note": false} {
		if got := readiness.HasMarks(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: "1"}}}); got != want {
			t.Errorf("with annotation %s: %t", key, got)
		}
	}
}

// TestRemoving: a surge pod that is to be deleted first is being removed. A user may give any other pod the same cost.
func TestRemoving(t *testing.T) {
	const surge, cost, lowest = inplace.AnnotationSurgePod, corev1.PodDeletionCost, readiness.LowestDeletionCost
	for name, test := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"a surge pod":                     {map[string]string{surge: "b"}, false},
		"a surge pod with the lowest":     {map[string]string{surge: "b", cost: lowest}, true},
		"a surge pod with another cost":   {map[string]string{surge: "b", cost: "-1"}, false},
		"an ordinary pod with the lowest": {map[string]string{cost: lowest}, false},
	} {
		if got := readiness.Removing(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRestarting: a pod that Stayput has patched counts against the limits until it is Ready again.
func TestRestarting(t *testing.T) {
	for name, test := range map[string]struct {
		marked bool
		ready  corev1.ConditionStatus
		want   bool
	}{
		"patched, and Ready":           {true, corev1.ConditionTrue, false},
		"patched, and not Ready":       {true, corev1.ConditionFalse, true},
		"never patched, and Ready":     {false, corev1.ConditionTrue, false},
		"never patched, and not Ready": {false, corev1.ConditionFalse, false},
	} {
		pod := &corev1.Pod{}
		fixture.ConditionIs(corev1.PodReady, test.ready)(pod)
		if test.marked {
			pod.Annotations = map[string]string{inplace.AnnotationMove: readiness.Move{Hash: "b"}.String()}
		}
		if got := readiness.Restarting(pod, fixture.Start); got != test.want {
			t.Errorf("%s: restarting %t", name, got)
		}
	}
}
