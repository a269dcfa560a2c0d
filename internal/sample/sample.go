package sample

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// NativeEqual is EqualIgnoreHash of pkg/controller/deployment/util/deployment_util.go.
func NativeEqual(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// Template is a pod template with a field of every kind that Stayput compares.
const Template = `{
  "metadata": {"creationTimestamp": null, "labels": {"app": "web", "version": "1"}, "annotations": {"note": "a"}},
  "spec": {
    "containers": [
      {"name": "app", "image": "app:1", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80, "protocol": "TCP"}],
       "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, "imagePullPolicy": "IfNotPresent"},
      {"name": "proxy", "image": "proxy:1", "resources": {}}
    ],
    "initContainers": [
      {"name": "setup", "image": "setup:1", "resources": {}},
      {"name": "side", "image": "side:1", "restartPolicy": "Always", "resources": {}}
    ],
    "restartPolicy": "Always", "securityContext": {}, "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
    "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "conf", "defaultMode": 420}}]
  }
}`

// Digests are two digests of images.
var Digests = []string{"@sha256:" + strings.Repeat("a", 64), "@sha256:" + strings.Repeat("b", 64)}
