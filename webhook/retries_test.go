package webhook

import (
	"fmt"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/revisions"
)

// triesAgain reports whether the Deployment controller retries by itself after the answer to its scaling of the ReplicaSet: handleErr in
// pkg/controller/deployment/deployment_controller.go.
func triesAgain(t *testing.T, h Handlers, before *apps.ReplicaSet) bool {
	t.Helper()
	now := revision(t, before.Name, v1Template, "2")
	response := h.handle(t.Context(), request(t, deploymentController, admissionv1.Update, now, before), h.at("/validate-replicaset"))
	expectDenied(t, response, 409)
	return !apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: *response.Result}, corev1.NamespaceTerminatingCause)
}

// movingSince returns the objects of moving. The update began so long ago, and the hold is renewed; 0 if it has not begun. That many of the
// three pods of web-1 are available.
func movingSince(t *testing.T, begun time.Duration, available int32) []client.Object {
	t.Helper()
	web1, web2 := withPods(revision(t, "web-1", v1Template, "3"), available), revision(t, "web-2", v2Template, "0")
	if begun > 0 {
		for _, rs := range []*apps.ReplicaSet{web1, web2} {
			rs.Labels[inplace.LabelUpdating] = inplace.FormatTime(time.Now().Add(-begun))
			rs.Labels[inplace.LabelRenewed] = inplace.FormatTime(time.Now())
		}
	}
	return []client.Object{namespace(inplace.ModeInPlace), deployment(t, v2Template), web1, web2}
}

// withPods gives the ReplicaSet three pods, of which so many are available.
func withPods(rs *apps.ReplicaSet, available int32) *apps.ReplicaSet {
	rs.Status.Replicas, rs.Status.AvailableReplicas = 3, available
	return rs
}

// TestRefusalsAreTriedAgain: if all managers were killed now, something would still make the Deployment controller look again.
func TestRefusalsAreTriedAgain(t *testing.T) {
	scaled, unseen := withPods(revision(t, "web-1", v1Template, "3"), 3), withPods(revision(t, "web-1", v1Template, "3"), 3)
	unseen.Generation = 2
	lacking := withPods(revision(t, "web-1", v1Template, "3"), 2)
	web2, lacks := revision(t, "web-2", v2Template, "0"), reader(t, movingSince(t, 0, 2)...)
	undone := []client.Object{namespace(inplace.ModeInPlace), deployment(t, v1Template), lacking}
	const seconds, minutes = 10 * time.Second, 10 * time.Minute
	long := func(available int32) client.Reader { return reader(t, movingSince(t, minutes, available)...) }
	for name, test := range map[string]struct {
		cached, live client.Reader
		scaled       *apps.ReplicaSet
		again        bool
	}{
		"not begun":                                            {reader(t, moving(t)...), reader(t, movingSince(t, 0, 3)...), scaled, true},
		"not begun, a pod is unavailable":                      {reader(t, moving(t)...), broken(t), lacking, false},
		"its status is yet to be written":                      {reader(t, moving(t)...), broken(t), unseen, false},
		"a pod of the other is unavailable":                    {lacks, lacks, web2, false},
		"a pod of the other has become available":              {lacks, reader(t, movingSince(t, 0, 3)...), web2, true},
		"a pod of the other is unavailable, it is undone":      {lacks, reader(t, undone...), web2, false},
		"the other is gone":                                    {lacks, reader(t, moving(t)[:2]...), web2, true},
		"the other cannot be read":                             {lacks, broken(t), web2, true},
		"the cache knows of no event to come":                  {reader(t, moving(t)...), lacks, web2, true},
		"all pods are available":                               {reader(t, moving(t)...), reader(t, movingSince(t, seconds, 3)...), scaled, true},
		"it waits for long":                                    {long(3), long(3), scaled, true},
		"it waits for long with a pod that is never available": {long(2), long(2), lacking, true},
		"it was undone, unknown to the cache":                  {reader(t, moving(t)...), reader(t, editedTo(t, v1Template)...), scaled, true},
		"the API server cannot be read":                        {reader(t, moving(t)...), broken(t), scaled, true},
	} {
		t.Run(name, func(t *testing.T) {
			if again := triesAgain(t, handlers(t, test.cached, test.live), test.scaled); again != test.again {
				t.Errorf("it tries again: %t", again)
			}
		})
	}
}

// TestManyThatWaitForLong: those beyond a number wait for the next event, unless the cache is wrong about what they wait for.
func TestManyThatWaitForLong(t *testing.T) {
	long := reader(t, movingSince(t, 10*time.Minute, 3)...)
	for name, test := range map[string]struct {
		others int
		live   client.Reader
		again  bool
	}{
		"the last that gets retries":     {retriedAtATime - 1, broken(t), true},
		"one more":                       {retriedAtATime, long, false},
		"one more, undone":               {retriedAtATime, reader(t, editedTo(t, v1Template)...), true},
		"one more, edited anew":          {retriedAtATime, reader(t, movingSince(t, 0, 3)...), true},
		"one more, which cannot be read": {retriedAtATime, broken(t), true},
	} {
		h, rs := handlers(t, long, test.live), withPods(revision(t, "web-1", v1Template, "3"), 3)
		for i := range test.others {
			h.retries.allow(types.UID(fmt.Sprint(i)), time.Now())
		}
		if again := triesAgain(t, h, rs); again != test.again {
			t.Errorf("%s: it tries again: %t", name, again)
		}
	}
}

// TestRefusedScalingsReadLittle: refusals are many while many Deployments are updated. Each reads one ReplicaSet at most.
func TestRefusedScalingsReadLittle(t *testing.T) {
	web1, web2 := withPods(revision(t, "web-1", v1Template, "3"), 3), revision(t, "web-2", v2Template, "0")
	for name, test := range map[string]struct {
		available int32
		scaled    *apps.ReplicaSet
		gets      []string
	}{
		"all pods are available":            {3, web1, nil},
		"a pod of the other is unavailable": {2, web2, []string{"*apps.ReplicaSet shop/web-1"}},
	} {
		asked, objects := &reads{}, movingSince(t, time.Second, test.available)
		triesAgain(t, handlers(t, reader(t, objects...), asked.counting(t, objects...)), test.scaled)
		if !slices.Equal(asked.gets, test.gets) || len(asked.lists) > 0 {
			t.Errorf("%s: read were %q and %q, want %q", name, asked.gets, asked.lists, test.gets)
		}
	}
}

// native is the queue of the Deployment controller with one Deployment that waits (pkg/controller/deployment): delays of 5 ms to 1000 s,
// and maxRetries 15. An entry with a delay stays when the key is dropped or tried for another reason.
type native struct {
	failures int
	next     time.Time
}

// due reports whether the delay has passed.
func (n *native) due(now time.Time) bool {
	if n.next.IsZero() || now.Before(n.next) {
		return false
	}
	n.next = time.Time{}
	return true
}

// refused notes a futile try.
func (n *native) refused(now time.Time, again bool) {
	if !again || n.failures == 15 {
		n.failures = 0
		return
	}
	if at := now.Add(5 * time.Millisecond << n.failures); n.next.IsZero() || at.Before(n.next) {
		n.next = at
	}
	n.failures++
}

// TestWaitingDeploymentsAreTriedSeldom: each Deployment that waits for ten minutes has a renewal now and then. The tries beyond that are
// bounded, however many Deployments wait, and at nearly all moments some of them have a try to come.
func TestWaitingDeploymentsAreTriedSeldom(t *testing.T) {
	const minutes = 10
	for waiting, covered := range map[int]float64{1: 1, retriedAtATime: retriedAtATime, 300: retriedAtATime} {
		managers, begin := [2]*retries{newRetries(), newRetries()}, time.Unix(1_000_000, 0)
		queue := make([]native, waiting)
		tries, renewals, moments, toCome := 0, 0, 0, 0
		for now := begin; now.Before(begin.Add(minutes * time.Minute)); now = now.Add(5 * time.Millisecond) {
			for i := range queue {
				renewed := now.Sub(begin)%revisions.RenewEvery == time.Duration(i)*revisions.RenewEvery/time.Duration(waiting)/time.Second*time.Second
				if renewed {
					renewals++
				}
				if due := queue[i].due(now); due || renewed {
					tries++
					asked := managers[tries%2]
					queue[i].refused(now, asked.allow(types.UID(fmt.Sprint("uid-", i)), now))
				}
				if !queue[i].next.IsZero() {
					toCome++
				}
			}
			moments++
		}
		if most := renewals + min(waiting, retriedAtATime)*16*minutes*60/80; tries > most {
			t.Errorf("%d wait: %d tries for %d renewals, want at most %d", waiting, tries, renewals, most)
		}
		if mean := float64(toCome) / float64(moments); mean < 0.9*covered {
			t.Errorf("%d wait: a try of %.1f of them is to come, want %.1f", waiting, mean, covered)
		}
		t.Logf("%d wait: %.1f tries/s", waiting, float64(tries)/minutes/60)
	}
}
