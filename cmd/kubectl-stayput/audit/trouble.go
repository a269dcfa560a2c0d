package audit

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/deployments"
)

// What a cluster tells of native rollouts that do not get through, in the words of the table. Of a rollout that is over it keeps no
// condition, and events for an hour only, unless the API server has another --event-ttl.
const (
	pastDeadline = "past progressDeadlineSeconds now"
	withoutRoom  = "no room for pods, by events of the last hour"
	overQuota    = "no quota for pods, by events of the last hour"
)

// troubles are messages by the trouble that they tell of.
type troubles map[string]string

// troublesByName are those that events tell of, by the controller of the pods.
type troublesByName map[types.NamespacedName]troubles

// readEvents reads events of pods that were not created or not scheduled. A user who may not read them gets an audit that says so.
func (a *audit) readEvents(ctx context.Context) error {
	for _, reason := range []string{"FailedScheduling", "FailedCreate"} {
		which := client.ListOptions{FieldSelector: fields.OneTermEqualSelector("reason", reason)}
		err := a.each(ctx, func() client.ObjectList { return &corev1.EventList{} }, which, func(object runtime.Object) {
			if event, is := object.(*corev1.Event); is {
				a.events.add(event)
			}
		})
		if apierrors.IsForbidden(err) {
			a.tally.eventsUnread = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t troublesByName) add(event *corev1.Event) {
	trouble, controller := troubleIn(event)
	if trouble == "" {
		return
	}
	of := types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: controller}
	if t[of] == nil {
		t[of] = troubles{}
	}
	t[of][trouble] = max(t[of][trouble], event.Message) // one of them, whatever the order of events
}

// noRoom are the scheduler's words for a node that is full (noderesources and nodeports in pkg/scheduler/framework/plugins). It also
// reports pods that no node may run, and those that wait for a volume.
var noRoom = []string{"Insufficient ", "Too many pods", "free ports"}

// troubleIn returns the trouble that the event tells of, and the name of the pods' controller; empty if it is about something else. A
// pod has the name of its controller, and a suffix.
func troubleIn(event *corev1.Event) (trouble, controller string) {
	name := event.InvolvedObject.Name
	says := func(text string) bool { return strings.Contains(event.Message, text) }
	switch {
	case event.Reason == "FailedCreate" && says("exceeded quota"):
		return overQuota, name
	case event.Reason == "FailedScheduling" && slices.ContainsFunc(noRoom, says):
		return withoutRoom, name[:max(0, strings.LastIndex(name, "-"))]
	}
	return "", ""
}

// deadlineOf returns what the status of a Deployment tells.
func deadlineOf(of apps.Workload) troubles {
	met := troubles{}
	if d, is := of.(*apps.Deployment); is {
		for _, condition := range d.Status.Conditions {
			if condition.Type == appsv1.DeploymentProgressing && condition.Reason == deployments.ReasonTimedOut {
				met[pastDeadline] = condition.Message
			}
		}
	}
	return met
}

// Trouble is what rollouts met, and how many workloads did.
type Trouble struct {
	Trouble   string `json:"trouble"`
	Workloads int    `json:"workloads"`
	// LastInPlace is of how many of them the last rollout would have been in place.
	LastInPlace int `json:"lastInPlace"`
	// Example is one of the workloads, and Message what was said of it.
	Example string `json:"example"`
	Message string `json:"message"`
}

// note counts what the workload met. The example is the first by name.
func (t *tally) note(w workload, rollouts []verdict) {
	for what, message := range w.met {
		known := t.troubles[what]
		if known == nil {
			known = &Trouble{Trouble: what, Example: w.String()}
			t.troubles[what] = known
		}
		if known.Workloads++; w.String() <= known.Example {
			known.Example, known.Message = w.String(), message
		}
		if last := len(rollouts) - 1; last >= 0 && len(rollouts[last].reasons) == 0 {
			known.LastInPlace++
		}
	}
}
