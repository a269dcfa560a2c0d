//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dryRuns checks that policies that look only at the creation of pods take effect on updates in place as well.
func dryRuns(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"refused image":    refusedAtCreation,
		"rewritten images": rewrittenAtBirth,
		"injected sidecar": injectedAtBirth,
	})
	nightly(t, map[string]func(*testing.T){
		"injected sidecar of a DaemonSet, undo": injectedUndone,
		"rewritten in each write":               rewrittenAgain,
	})
}

// refusedAtCreation checks that the running pods stay untouched, that the native controller's pods are refused as well, and that an undo
// succeeds.
func refusedAtCreation(t *testing.T) {
	s := newScenario(t, labelled)
	s.create(web(3))
	s.decree(fmt.Sprintf(noV3, s.namespace))
	s.refusesV3()
	before := s.pods("web")
	s.begin("refused", noUpdates)
	s.setImage("web", "app=v3")
	s.reported("ReplicaSet", "FailedCreate")
	s.reported("Deployment", "UpdateRecreatesPods")
	s.begin("undone", noUpdates)
	s.rollout("undo", "web")
	s.completes("web")
	s.kept("web", before, nil)
	s.neverOut("web")
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
}

// rewrittenAtBirth checks that running pods get the image that new ones would get.
func rewrittenAtBirth(t *testing.T) {
	mutates(t)
	s := newScenario(t, labelled)
	s.decree(fmt.Sprintf(throughMirror, s.namespace))
	s.admits(mirror + "app:v1")
	s.create(web(2, withSide))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.inPlace("web", once, func() { s.rollout("undo", "web") })
	s.inPlace("web", nil, func() { s.bumpChart("web") })
	s.inPlace("web", once, func() { s.setImage("web", "app=v3") })
	for _, pod := range s.pods("web") {
		if images := imagesOf(pod.Spec); images["app"] != mirror+"app:v3" || images["side"] != mirror+"app:v1" {
			s.Errorf("pod %s has images %v", pod.Name, images)
		}
	}
}

// rewrittenAgain checks that no pod is patched if a policy would change the patch once more: the update falls back.
func rewrittenAgain(t *testing.T) {
	mutates(t)
	s := newScenario(t, labelled)
	s.create(web(4))
	s.decree(fmt.Sprintf(oneFurther, s.namespace))
	s.eventually("the policy to be in force", func(ctx context.Context) error {
		output, err := s.admitted(ctx, "v2")
		if err == nil && output != appImage("v3") {
			return errors.New("a new pod would have " + output)
		}
		return err
	})
	before := s.pods("web")
	s.begin("native", recreated)
	s.setImage("web", "app=v2")
	s.reported("Deployment", "InPlaceUpdateFellBack")
	s.rollout("status", "web", "--timeout=1m")
	s.replaced("web", before)
	for _, pod := range s.pods("web") {
		if image := imagesOf(pod.Spec)["app"]; image != appImage("v3") {
			s.Errorf("pod %s has image %s", pod.Name, image)
		}
	}
}

// injectedAtBirth checks that a sidecar stays if new pods would have the same one. If new pods would have it with another image, it gets
// that in the same pods. If more of it would differ, the pods are recreated.
func injectedAtBirth(t *testing.T) {
	mutates(t)
	s := newScenario(t, labelled)
	s.injects("v1", "8083")
	s.create(web(2))
	s.inPlace("web", once, func() { s.setImage("web", "app=v2") })
	s.injects("v2", "8083")
	s.inPlace("web", restarts{"app": exactly(1), "mesh": exactly(1)}, func() { s.setImage("web", "app=v3") })
	s.runsIn("mesh", "web", "v2")
	s.inPlace("web", once, func() { s.rollout("undo", "web") })
	s.injects("v3", "8084")
	s.recreated("web", func() { s.setImage("web", "app=v4") })
	s.reported("Deployment", "UpdateRecreatesPods")
	s.inPlace("web", once, func() { s.setImage("web", "app=v5") })
}

// injectedUndone checks an undo in the middle of an update that gives pods another injected sidecar. Pods that had begun keep the sidecar
// that a new pod would have. The others are untouched.
func injectedUndone(t *testing.T) {
	mutates(t)
	s := newDaemonScenario(t, labelled)
	s.injects("v1", "8083")
	change := inPlaceChange{
		has: func(*appsv1.Deployment) {}, container: "app",
		edit:  func(s *scenario, name string) string { return s.setImage(name, "app=v2") },
		taken: func(pod *corev1.Pod) bool { return imagesOf(pod.Spec)["app"] == appImage("v2") },
	}
	s.install(agent(templated(change.lasting("6s"))))
	before := s.pods(agents)
	s.injects("v2", "8083")
	change.begin(s, agents)
	s.begin("undo", inPlace)
	s.rollout("undo", agents)
	s.completes(agents)
	s.metWhen(agents, change.partial)
	change.nowhere(s, agents)
	s.kept(agents, before, restarts{"app": {0, 2}, "mesh": {0, 1}})
	s.someNeverRestarted(agents)
	for _, pod := range s.pods(agents) {
		expected := "v1"
		if restartsOf(pod)["app"] > 0 {
			expected = "v2"
		}
		if image := imagesOf(pod.Spec)["mesh"]; image != appImage(expected) {
			s.Errorf("pod %s has sidecar %s, and %s is expected", pod.Name, image, expected)
		}
	}
}

// injects has a policy add a container with that image and port to new pods.
func (s *scenario) injects(tag, port string) {
	s.Helper()
	s.decree(fmt.Sprintf(withSidecar, s.namespace, appImage(tag), port))
	s.admits(appImage("v1") + " " + appImage(tag))
}

// decree puts a policy in force until the scenario ends.
func (s *scenario) decree(policy string) {
	s.Helper()
	s.kubectl(policy, "apply", "-f", "-")
	s.Cleanup(func() {
		if _, _, err := kubectl(context.Background(), policy, "delete", "--ignore-not-found", "-f", "-"); err != nil {
			s.Error(err)
		}
	})
}

// refusesV3 waits until the API server refuses new pods with that image.
func (s *scenario) refusesV3() {
	s.Helper()
	s.eventually("the policy to be in force", func(ctx context.Context) error {
		if output, err := s.admitted(ctx, "v3"); err == nil {
			return errors.New("a pod is admitted with " + output)
		}
		return nil
	})
}

// admitted returns the images that a new pod with that image would have.
func (s *scenario) admitted(ctx context.Context, tag string) (string, error) {
	output, _, err := kubectl(ctx, "", "-n", s.namespace, "run", "probe", "--image="+appImage(tag), "--dry-run=server",
		"-o", "jsonpath={.spec.containers[*].image}")
	return output, err
}

// admits waits until a new pod of v1 would have these images.
func (s *scenario) admits(images string) {
	s.Helper()
	s.eventually("the policy to be in force", func(ctx context.Context) error {
		output, err := s.admitted(ctx, "v1")
		if err == nil && output != images {
			return errors.New("a new pod would have " + output)
		}
		return err
	})
}

// mutates skips a test that needs a MutatingAdmissionPolicy.
func mutates(t *testing.T) {
	t.Helper()
	served, err := clients.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" }) {
		t.Skip("this cluster serves no MutatingAdmissionPolicy, as Kubernetes 1.36 does")
	}
}

const noV3 = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: %[1]s
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
    - expression: "!object.spec.containers.exists(c, c.image.endsWith('app:v3'))"
      message: not signed
` + deniesHere

const throughMirror = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: %[1]s
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: >-
          Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{
          name: c.name, image: c.image.replace("127.0.0.1:5000/", "localhost:5000/")})}}
` + mutatesHere

// oneFurther makes v2 v3, and v3 v4, in every write of a pod.
const oneFurther = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: %[1]s
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: >-
          Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{
          name: c.name, image: c.image.replace(":v3", ":v4").replace(":v2", ":v3")})}}
` + mutatesHere

const withSidecar = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: %[1]s
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  matchConditions:
    - name: no-pre-pull-pod
      expression: '!object.metadata.?labels[?"stayput.dev/pre-pull"].hasValue()'
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: >-
          Object{spec: Object.spec{containers: [Object.spec.containers{
          name: "mesh", image: %[2]q, env: [Object.spec.containers.env{name: "PORT", value: %[3]q}]}]}}
` + mutatesHere

const mutatesHere = `
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: %[1]s
spec:
  policyName: %[1]s
  matchResources:
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: %[1]s
`
