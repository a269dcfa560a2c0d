package inplace

import (
	appsv1 "k8s.io/api/apps/v1"
)

// Labels by which the native controllers recognise the pods of a revision.
const (
	// LabelTemplateHash is on a ReplicaSet and its pods.
	LabelTemplateHash = appsv1.DefaultDeploymentUniqueLabelKey
	// LabelRevisionHash is on a ControllerRevision and the pods of its DaemonSet. On the pods of a StatefulSet it has the name of their
	// ControllerRevision.
	LabelRevisionHash = appsv1.ControllerRevisionHashLabelKey
	// LabelTemplateGeneration is an older label of a DaemonSet's pods, which the native controller treats as equal to the hash.
	LabelTemplateGeneration = "pod-template-generation"
	// LabelPodName and LabelPodIndex are on the pods of a StatefulSet from their creation on.
	LabelPodName  = appsv1.StatefulSetPodNameLabel
	LabelPodIndex = appsv1.PodIndexLabel
)

// Annotations that the Deployment controller writes on ReplicaSets; pkg/controller/deployment/util/deployment_util.go.
const (
	AnnotationDesired  = "deployment.kubernetes.io/desired-replicas"
	AnnotationMax      = "deployment.kubernetes.io/max-replicas"
	AnnotationRevision = "deployment.kubernetes.io/revision"
)

// NativeController returns the user that the native controller of that name has.
func NativeController(name string) string { return "system:serviceaccount:kube-system:" + name }
