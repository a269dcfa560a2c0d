package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/deployments"
	"github.com/stayput/stayput/inplace/readiness"
)

// adviceOnEvents says what users do about an event.
var adviceOnEvents = map[string]string{
	"InPlaceUpdateStarted":      "`kubectl stayput status deploy/NAME` shows the progress",
	"InPlaceUpdateCompleted":    nothing,
	"InPlaceUpdateStalled":      "Correct what the event names, or undo",
	"InPlaceUpdateAwaitsHook":   "See whether the controller of the hook is at work: [hooks](../how-to/load-balancers.md#wait-for-another-controller)",
	"PreRestartHookTimedOut":    "Look at the controller of the hook, or set a longer `stayput.dev/pre-restart-timeout`",
	"InPlaceUpdateAtPartition":  "Look at the updated pods. Then lower the [partition](../how-to/staged-rollouts.md), or undo",
	"InPlaceUpdateAwaitsWindow": "Wait for the [window](../how-to/pace.md#only-in-a-maintenance-window), or annotate the workload with `stayput.dev/maintenance-window=always`",
	"InPlaceUpdateWaits":        "Correct what the event names, edit again, undo, or [wait](../how-to/pace.md#only-in-a-maintenance-window)",
	"InPlaceUpdateAwaitsBudget": "Look at the pods that the PodDisruptionBudget selects, or change it: [how](../how-to/pace.md#within-poddisruptionbudgets)",
	"InPlaceUpdateAwaitsLimit":  "It goes on when others are done. Or raise [the limit](../how-to/pace.md#at-most-so-many-pods-of-the-cluster)",
	"InPlaceUpdateFellBack":     "The native controller ends the update. The [reason](#reasons) says what to change",
	"UpdateRecreatesPods":       "See the [reason](#reasons)",
	"ImagePullFailed":           "Correct the image, the registry or the pull secret, or undo",
	"PrePullSkipped":            "Look at the reason: [images](../how-to/images.md)",
	"DryRunSkipped":             "Make room in the quota, or let the webhook support dry runs",
	"WebhookBypassed":           "See the alert [StayputWebhookBypassed](alerts.md#stayputwebhookbypassed)",
	"UpdatedInPlace":            nothing,
	"ContainerRestarts":         nothing,
	"ContainerRestartWaits":     nothing,
	"ContainerRestartRefused":   "Correct the request, or run `kubectl delete pod`: [one pod](../how-to/restarts.md#one-pod)",
}

const (
	nothing       = ""
	expectNewPods = ""
)

// adviceOnReasons says what users do about a reason why an update is native.
var adviceOnReasons = map[string]string{
	inplace.CodeTemplateField:   expectNewPods,
	inplace.CodeContainers:      expectNewPods,
	inplace.CodeInitContainer:   expectNewPods,
	inplace.CodeImage:           "Name an image",
	inplace.CodeAnnotation:      "If the annotation forces no restart, list it: [settings](settings.md#annotations)",
	inplace.CodeAnnotationList:  "Correct the list that the message names",
	inplace.CodeDownwardAPI:     "Let a variable of a container read the label: that container restarts",
	inplace.CodeSchedulingLabel: expectNewPods,
	inplace.CodeStartupProbe:    "Add a readiness probe to the container",
	inplace.CodeRestartPolicy:   expectNewPods,
	inplace.CodeRestart:         "See [restarts](../how-to/restarts.md)",
	inplace.CodeResources:       "See [CPU and memory](../how-to/resources.md)",
	inplace.CodeMode:            "Set the label `stayput.dev/update`",
	inplace.CodeDeleting:        nothing,
	inplace.CodeFellBack:        "Look for the event `InPlaceUpdateFellBack`. The next edit is made in place again",
	inplace.CodeStrategy:        "Use another strategy",
	inplace.CodeGroups:          "See [operators](../how-to/operators.md#leaderworkerset)",
	inplace.CodeOnDelete:        "Delete the pods when you want new ones",
	inplace.CodeMaxUnavailable:  "Allow one unavailable pod, or surge pods: [settings](settings.md#labels)",
	inplace.CodeRevisionGone:    expectNewPods,
	inplace.CodeClaim:           "Delete the pod. The StatefulSet controller cannot replace it either, and creates another with the volume",
	inplace.CodeHousekeeping:    nothing,
	inplace.CodeRewrittenImage:  "Let the webhook that rewrites images support dry runs",
	inplace.CodeCannotCreate:    "If the template has fields newer than Stayput, upgrade Stayput",
	inplace.CodeNativeRollout:   "Wait for that rollout. If it comes again, see [StayputWebhookBypassed](alerts.md#stayputwebhookbypassed)",
	inplace.CodeBypassed:        "See the alert [StayputWebhookBypassed](alerts.md#stayputwebhookbypassed)",
	inplace.CodeUnbalanced:      "Report it, with the manager's log",
	inplace.CodeTooLarge:        "Lower `revisionHistoryLimit`, or split the workload: [limits](../explanation/limits.md)",
	inplace.CodeNotAdmitted:     "Correct the template, or the policy that the message names",
	inplace.CodeRefused:         "See [policies](../how-to/policies.md)",
	inplace.CodeNotResized:      "Make room on the node, or ask for less: [CPU and memory](../how-to/resources.md)",
	inplace.CodeInjected:        "See [service meshes](../how-to/service-meshes.md)",
	inplace.CodeVirtualNode:     nothing,
	inplace.CodeFailing:         "Look at the manager's log and at the API server",
	inplace.CodeHoldExpired:     "Look at the managers: does one lead?",
	inplace.CodeUninstalled:     nothing,
	"Deleted":                   nothing,
	"Stalled":                   "Look for the event `InPlaceUpdateStalled`",
}

// advised is a constant with what users do about it.
type advised struct {
	constant
	Advice string
}

// withAdvice adds advice to constants. Each must have some.
func withAdvice(of []constant, advice map[string]string) ([]advised, error) {
	var all []advised
	for _, c := range of {
		what, has := advice[c.Value]
		if !has {
			return nil, fmt.Errorf("there is no advice about %s", c.Value)
		}
		all = append(all, advised{c, what})
	}
	return all, nil
}

// condition is a condition that Stayput writes.
type condition struct{ Of, Type, Status, Reason, Doc string }

// writtenConditions returns the conditions with the names that the code has for them.
func writtenConditions() []condition {
	progressing, unknown := "Progressing", string(corev1.ConditionUnknown)
	return []condition{
		{"pod", string(corev1.PodReady), string(corev1.ConditionFalse), readiness.ReasonUpdating,
			"The pod is out of service: its containers restart next, or it is removed as a surge pod"},
		{"Deployment", progressing, unknown, deployments.ReasonPartition, "Only the partition stops the rollout"},
		{"Deployment", progressing, unknown, deployments.ReasonWindow, "Only a closed maintenance window stops the rollout"},
	}
}
