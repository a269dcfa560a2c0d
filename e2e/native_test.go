//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// native tests edits that no running pod can take, and workloads without the label. They are ordinary rollouts, no worse than without
// Stayput, and the next edit is in place again.
func native(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"environment":          byEnvironment,
		"no label, no Stayput": notAsked,
		"refused by a policy":  refusedByPolicy,
	})
	nightly(t, map[string]func(*testing.T){
		"native rollout already in progress": updating,
	})
}

func byEnvironment(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3, prepared))
	s.recreated("web", func() { s.setEnv("web", "COLOUR=green") })
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
}

// prepared adds an init container that prints its version and ends.
func prepared(d *appsv1.Deployment) {
	d.Spec.Template.Spec.InitContainers = []corev1.Container{
		{Name: "prepare", Image: appImage("v1"), Args: []string{"version"}},
	}
}

func notAsked(t *testing.T) {
	s := newScenario(t, unlabelled)
	s.create(web(3))
	s.recreated("web", func() { s.setImage("web", "app=v2") })
	d := s.deployment("web")
	if _, persistedFallback := d.Annotations[decisionAnnotation]; persistedFallback {
		t.Error("a Deployment in an unlabelled namespace carries a decision")
	}
	s.neverOut("web")
}

// refusedByPolicy checks that a cluster that forbids patches of images gets an ordinary rollout.
func refusedByPolicy(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3))
	s.decree(fmt.Sprintf(noImagePatches, s.namespace))
	s.eventually("the policy to be in force", func(ctx context.Context) error {
		_, _, err := kubectl(ctx, "", "-n", s.namespace, "set", "image", "pods", "--all", "app="+appImage("v9"), "--dry-run=server")
		if err == nil {
			return errors.New("a pod takes another image")
		}
		return nil
	})
	s.begin("refused", recreated)
	s.setImage("web", "app=v2")
	s.completes("web")
	s.runs("web", "v2")
	s.reported("Deployment", "InPlaceUpdateFellBack")
}

const noImagePatches = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: %[1]s
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}
  validations:
    - expression: object.spec.containers.all(c, oldObject.spec.containers.exists(o, o.image == c.image))
      message: images of running pods stay as they are here
` + deniesHere

// deniesHere binds a ValidatingAdmissionPolicy to the namespace of that name.
const deniesHere = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: %[1]s
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources:
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: %[1]s
`

// updating labels the namespace in the middle of a native rollout. The rollout may end either way, but it must complete.
func updating(t *testing.T) {
	s := newScenario(t, unlabelled)
	s.create(web(3, slow))
	s.begin("native, then labelled", Rules{Created: some, Deleted: some})
	s.setImage("web", "app=v2")
	s.reaches("web", partly)
	s.label("stayput.dev/update=in-place")
	s.reported("Deployment", "UpdateRecreatesPods")
	s.completes("web")
	s.managed("web")
	s.inPlace("web", once, func() { s.setImage("web", "app=v3") })
}
