package webhook

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

// TestCompletionHeld has a Deployment whose last pod is still moving: both ReplicaSets look as if the rollout were done.
func TestCompletionHeld(t *testing.T) {
	done := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}
	before, old := done, done
	before.ObservedGeneration, old.Replicas = 1, 4
	updateRevision := func() *apps.ReplicaSet { return revision(t, "web-2", v2Template, "3") }
	web := deployment(t, v2Template)
	live := func(updateRevision *apps.ReplicaSet) client.Reader {
		return reader(t, namespace(inplace.ModeInPlace), web, revision(t, "web-1", v1Template, "0"), updateRevision)
	}
	surge := updateRevision()
	surge.Labels[inplace.LabelSurgeReplicas] = "1"
	for name, test := range map[string]struct {
		live   client.Reader
		status appsv1.DeploymentStatus
		user   string
		age    time.Duration
		code   int32
	}{
		"updating":                   {live(markUpdating(updateRevision())), done, deploymentController, 0, 409},
		"surge pods are still there": {live(surge), done, deploymentController, 0, 409},
		"all done":                   {live(updateRevision()), done, deploymentController, 0, 0},
		"of the previous generation": {broken(t), before, deploymentController, 0, 0},
		"does not say done":          {broken(t), old, deploymentController, 0, 0},
		"another client":             {broken(t), done, "jane", 0, 0},
		"no living leader":           {broken(t), done, deploymentController, inplace.LeaderPatience + time.Second, 0},
		"reading fails":              {broken(t), done, deploymentController, 0, 0},
		"the namespace is no longer managed": {
			reader(t, namespace(""), web, markUpdating(updateRevision())), done, deploymentController, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlers(t, broken(t), test.live)
			h.Hold.Reader = reader(t, lease(test.age))
			now := deployment(t, v2Template)
			now.Generation, now.Status = 2, test.status
			req := request(t, test.user, admissionv1.Update, now, deployment(t, v2Template))
			req.SubResource = "status"
			expectDenied(t, h.handle(context.Background(), req, h.at("/validate-status")), test.code)
		})
	}
}
