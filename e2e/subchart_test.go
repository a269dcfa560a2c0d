//go:build e2e && chart

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSubchart installs the chart as a platform team would whose cluster has rules: as a dependency of their own chart, in a release with
// their name, with values of all kinds, where no pod may choose its user.
func TestSubchart(t *testing.T) {
	for _, version := range []string{"helm3", "helm4"} {
		t.Run(version, func(t *testing.T) { platformLives(t, newHelm(t, version)) })
	}
}

func platformLives(t *testing.T, h helm) {
	h.release = "platform"
	t.Cleanup(func() { h.clear(t) })
	applyFor(t, choosesUsers)
	applyFor(t, platformIssuer)
	applyFor(t, monitors)
	chart := platformChart(t, builtImage(t))
	parts := []struct {
		name string
		part func(*testing.T, helm)
	}{
		{"default user", func(_ *testing.T, h helm) { h.refused(chart) }},
		{"install", func(t *testing.T, h helm) {
			h.own("install", chart, "--create-namespace", "--wait", "--set", noUser)
			mended(t)
			managersRunAs(t, platformUser)
		}},
		{"test", h.tests},
		{"update in place", updateInPlace},
		{"uninstall half-way", uninstallHalfway},
	}
	for _, p := range parts {
		if !t.Run(p.name, func(t *testing.T) { p.part(t, h.in(t)) }) {
			t.FailNow()
		}
	}
}

// noUser is given with the command: Helm 4.2 ignores null in a parent chart's own values (helm/helm#32132).
const noUser = "stayput.podSecurityContext.runAsUser=null,stayput.podSecurityContext.runAsGroup=null"

// platformChart returns the folder of a chart that depends on Stayput's, and has values for it.
func platformChart(t *testing.T, image string) string {
	t.Helper()
	folder := t.TempDir()
	repository, tag := image[:strings.LastIndex(image, ":")], image[strings.LastIndex(image, ":")+1:]
	registry, path, _ := strings.Cut(repository, "/")
	filled := strings.NewReplacer("REGISTRY", registry, "PATH", path, "TAG", tag, "CHART", stayputChart)
	for name, text := range map[string]string{"Chart.yaml": platformDependency, "values.yaml": platformValues} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(filled.Replace(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const platformDependency = `
apiVersion: v2
name: platform
version: 1.0.0
dependencies: [{name: stayput, version: "*", repository: "file://CHART", condition: stayput.enabled}]
`

// platformValues sets every value that has another valid value here, and does not exclude one of the others. The API server shows the
// managers no client certificate, and reaches pods without the nodes' network. Generated certificates have a test of their own.
const platformValues = `
global: {imageRegistry: REGISTRY, team: platform}
stayput:
  enabled: true
  image: {repository: elsewhere.example.com/PATH, tag: TAG, pullPolicy: Always}
  imagePullSecrets: [{name: absent}]
  replicas: 3
  inPlaceAnnotations: [example.com/note]
  restartAnnotations: [example.com/configuration]
  excludedNamespaces: [vault]
  logLevel: debug
  logEncoder: console
  extraArgs: [--zap-stacktrace-level=panic]
  extraEnv: [{name: TZ, value: UTC}]
  extraVolumes: [{name: scratch, emptyDir: {}}]
  extraVolumeMounts: [{name: scratch, mountPath: /scratch}]
  certificates: {issuer: {name: platform, kind: ClusterIssuer, group: cert-manager.io}}
  webhook: {port: 10260}
  metrics: {port: 9090}
  health: {port: 9091}
  networkPolicy: {metricsNamespaces: [monitoring]}
  serviceAccount: {name: in-place-updates, annotations: {example.com/owner: platform}}
  resources: {limits: {memory: 512Mi, cpu: "1"}, requests: {cpu: 60m, memory: 80Mi}}
  goMemoryLimit: 400MiB
  securityContext: {privileged: false}
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: example.com/platform, operator: Exists}]
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 1
          podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app.kubernetes.io/name: stayput}}}
  topologySpreadConstraints: []
  priorityClassName: system-cluster-critical
  podDisruptionBudget: {minAvailable: "", maxUnavailable: 1}
  commonLabels: {example.com/team: platform}
  podLabels: {example.com/tier: platform}
  podAnnotations: {example.com/note: none}
  mutatingPolicies: auto
  podMonitor: {enabled: true, namespace: default, labels: {release: prometheus}, interval: 20s, scrapeTimeout: 5s,
    relabelings: [{action: labeldrop, regex: pod}], metricRelabelings: [{action: labeldrop, regex: le}]}
  serviceMonitor: {enabled: true, namespace: default, labels: {release: prometheus}, interval: 20s, scrapeTimeout: 5s,
    relabelings: [{action: labeldrop, regex: pod}], metricRelabelings: [{action: labeldrop, regex: le}]}
  prometheusRule: {enabled: true, labels: {release: prometheus}}
  dashboard: {enabled: true, labels: {dashboards: platform}}
`

// refused checks that the rule is in force: with its default values, a manager's pod is refused.
func (h helm) refused(chart string) {
	h.run("dependency", "build", chart)
	if err := poll(h.Context(), usersChosen); err != nil {
		h.Fatal(err)
	}
	defer func() { h.own("uninstall", "--wait", "--no-hooks") }()
	h.own("install", chart, "--create-namespace")
	if err := poll(h.Context(), podRefused); err != nil {
		h.Error(err)
	}
}

// usersChosen returns nil once the API server refuses a pod for its user.
func usersChosen(ctx context.Context) error {
	_, messages, err := kubectl(ctx, "", "run", "trial", "--namespace=default", "--dry-run=server", "--image=trial",
		`--overrides={"spec":{"securityContext":{"runAsUser":65532}}}`)
	if err != nil && strings.Contains(messages, refusesUsers) {
		return nil
	}
	return fmt.Errorf("the API server does not refuse users yet: %s", messages)
}

// podRefused returns nil once an event says that a pod of Stayput was refused for its user.
func podRefused(ctx context.Context) error {
	events, err := clients.CoreV1().Events(ownNamespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
	if err != nil {
		return err
	}
	for _, event := range events.Items {
		if strings.Contains(event.Message, refusesUsers) {
			return nil
		}
	}
	return errors.New("no event says that a pod was refused")
}

// managersRunAs checks which user the platform has given to the managers.
func managersRunAs(t *testing.T, user int64) {
	t.Helper()
	pods, err := clients.CoreV1().Pods(ownNamespace).List(t.Context(), managers)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if got := userOf(&pod); got == nil || *got != user {
			t.Errorf("manager %s runs as user %v instead of %d", pod.Name, got, user)
		}
	}
}

func userOf(pod *corev1.Pod) *int64 {
	if context := pod.Spec.Containers[0].SecurityContext; context != nil {
		return context.RunAsUser
	}
	return nil
}

// applyFor applies manifests for as long as the test lasts.
func applyFor(t *testing.T, manifests string) {
	t.Helper()
	t.Cleanup(func() {
		if _, _, err := kubectl(context.Background(), manifests, "delete", "--ignore-not-found", "-f", "-"); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := kubectl(t.Context(), manifests, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// platformUser is the first user of the range from which the platform chooses.
const platformUser = 1000650000

// refusesUsers is in the message of a pod that chooses its own user.
const refusesUsers = "must be in the ranges: [1000650000, 1000659999]"

// choosesUsers is what the security context constraint restricted-v2 of OpenShift does with users: sccmatching/provider.go of
// openshift/apiserver-library-go gives each container without a user the first of a range, and refuses all outside that range.
const choosesUsers = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: chooses-users}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
    namespaceSelector:
      matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, cert-manager]}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: >-
          Object{spec: Object.spec{
          securityContext: Object.spec.securityContext{fsGroup: 1000650000},
          containers: object.spec.containers.filter(c, !c.?securityContext.?runAsUser.hasValue()).map(c, Object.spec.containers{
          name: c.name, securityContext: Object.spec.containers.securityContext{runAsUser: 1000650000}})}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: chooses-users}
spec: {policyName: chooses-users}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: chooses-users}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
    namespaceSelector:
      matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, cert-manager]}]
  variables:
    - name: users
      expression: >-
        (object.spec.?securityContext.?runAsUser.hasValue() ? [object.spec.securityContext.runAsUser] : []) +
        object.spec.containers.map(c, c.?securityContext.?runAsUser.orValue(0))
  validations:
    - expression: variables.users.all(user, user >= 1000650000 && user <= 1000659999)
      message: "unable to validate against any security context constraint: runAsUser ` + refusesUsers + `"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: chooses-users}
spec: {policyName: chooses-users, validationActions: [Deny]}
`

// platformIssuer is an issuer of the whole cluster. Each certificate of a self-signed issuer is its own CA.
const platformIssuer = `
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: platform}
spec: {selfSigned: {}}
`

// monitors are the kinds of the Prometheus operator, as far as the API server needs them.
var monitors = crdOf("podmonitors", "PodMonitor") + crdOf("servicemonitors", "ServiceMonitor") + crdOf("prometheusrules", "PrometheusRule")

func crdOf(plural, kind string) string {
	return strings.NewReplacer("PLURAL", plural, "KIND", kind, "SINGULAR", strings.ToLower(kind)).Replace(`
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: PLURAL, singular: SINGULAR, kind: KIND}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)
}
