//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// ownUser is the user name of Stayput's service account.
const ownUser = "system:serviceaccount:" + ownNamespace + ":" + ownName

// stuck tests what happens when something blocks Stayput. Stayput never waits for ever: the native controllers continue.
func stuck(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"no ReplicaSet may be written": replicaSetsRefused,
	})
	nightly(t, map[string]func(*testing.T){
		"no ControllerRevision may be written": controllerRevisionsRefused,
		"a webhook that does not answer":       podsOutOfReach,
	})
}

// replicaSetsRefused refuses Stayput's writes of ReplicaSets. Without a mark no update begins, and no label can nudge
// the Deployment controller.
func replicaSetsRefused(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3))
	lift := s.forbid("replicasets")
	s.recreated("web", func() { s.setImage("web", "app=v2") })
	s.runs("web", "v2")
	s.tells("web", "Pods are recreated", asTheyAre)
	s.neverOut("web")
	lift()
	s.inPlace("web", once, func() { s.setImage("web", "app=v3") })
}

// controllerRevisionsRefused does the same for a DaemonSet.
func controllerRevisionsRefused(t *testing.T) {
	s := newDaemonScenario(t, labelled)
	s.install(agent())
	lift := s.forbid("controllerrevisions")
	s.recreatedUnder(recreatedDaemons, agents, func() { s.setImage(agents, "app=v2") })
	s.runs(agents, "v2")
	s.tells(agents, "Pods are recreated", asTheyAre)
	s.neverOut(agents)
	lift()
	s.inPlace(agents, once, func() { s.setImage(agents, "app=v3") })
}

// forbid keeps Stayput from changing objects of this kind, until lift is called.
func (s *scenario) forbid(resources string) (lift func()) {
	s.Helper()
	policy := fmt.Sprintf(keepAsTheyAre, s.namespace, resources, ownUser)
	s.decree(policy)
	s.eventually("the policy to be in force", func(ctx context.Context) error { return s.refusedToStayput(ctx, resources) })
	return func() {
		s.Helper()
		s.kubectl(policy, "delete", "-f", "-")
		s.eventually("the policy to be lifted", func(ctx context.Context) error { return s.grantedToStayput(ctx, resources) })
	}
}

// refusedToStayput returns nil if Stayput cannot mark the objects of these resources in the namespace.
func (s *scenario) refusedToStayput(ctx context.Context, resources string) error {
	if s.grantedToStayput(ctx, resources) == nil {
		return errors.New(ownUser + " may still change " + resources)
	}
	return nil
}

// grantedToStayput returns nil if Stayput can mark them.
func (s *scenario) grantedToStayput(ctx context.Context, resources string) error {
	_, _, err := kubectl(ctx, "", "-n", s.namespace, "label", resources, "--all", renewedLabel+"=1", "--overwrite", "--dry-run=server",
		"--as="+ownUser)
	return err
}

const asTheyAre = "stay as they are here"

const keepAsTheyAre = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: %[1]s
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [%[2]s]}
  validations:
    - expression: request.userInfo.username != "%[3]s"
      message: %[2]s ` + asTheyAre + `
` + deniesHere

// podsOutOfReach refuses all writes to pods from the middle of an update on. Stayput retries for a while, because that may be temporary.
func podsOutOfReach(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(4, slow))
	s.begin("in place", inPlace)
	s.setImage("web", "app=v2")
	s.reaches("web", threeway)
	s.begin("native", recreated)
	s.decree(fmt.Sprintf(nobodyAnswers, s.namespace, ownUser))
	s.tells("web", "Left to the Deployment controller", "failed calling webhook")
	s.completes("web")
	s.runs("web", "v2")
}

const nobodyAnswers = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: %[1]s
webhooks:
  - name: none.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig:
      service: {namespace: %[1]s, name: none}
    rules:
      - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods, pods/status]}
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: %[1]s
    matchConditions:
      - name: stayput
        expression: request.userInfo.username == "%[2]s"
`

// downWhileCrashing makes the webhooks unreachable for the API server while an image crashes that Stayput has begun with. Stayput and the
// Deployment controller must not scale against each other.
func downWhileCrashing(t *testing.T) {
	long(t)
	s := newScenario(t, labelled)
	s.create(web(4))
	s.begin("in place", inPlace)
	s.setImage("web", "app=crash")
	s.fails("web", "CrashLoopBackOff")
	t.Cleanup(func() { portWebhooks(t, 443) })
	s.begin("out of reach", anyChurn)
	portWebhooks(t, 9)
	s.tells("web", "was not held", "another client has scaled")
	s.tells("web", "Left to the Deployment controller", "does not reach")
	if lowered := s.lowered("web"); lowered > 3 {
		t.Errorf("the new ReplicaSet was lowered %d times", lowered)
	}
	portWebhooks(t, 443)
	s.managed("web")
	s.rollout("undo", "web")
	s.completes("web")
	s.runs("web", "v1")
}

// lowered returns how often the replicas of the Deployment's newest ReplicaSet have decreased.
func (s *scenario) lowered(name string) (times int) {
	s.Helper()
	var target *appsv1.ReplicaSet
	s.wait("the new ReplicaSet", on(name, func(w world, d *appsv1.Deployment) error {
		target = w.updateReplicaSet(d)
		return nil
	}))
	before := int32(0)
	for _, e := range s.recorder.inOrder() {
		if set, is := e.object.(*appsv1.ReplicaSet); is && set.UID == target.UID {
			if *set.Spec.Replicas < before {
				times++
			}
			before = *set.Spec.Replicas
		}
	}
	return times
}
