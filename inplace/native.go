package inplace

import (
	appsv1 "k8s.io/api/apps/v1"
)

// Labels by which the native controllers recognise the pods of a revision.
const (
	// LabelTemplateHash is on a ReplicaSet and its pods.
	LabelTemplateHash = appsv1.DefaultDeploymentUniqueLabelKey
	// LabelRevisionHash is on a ControllerRevision and the pods of its DaemonSet.
	LabelRevisionHash = appsv1.DefaultDaemonSetUniqueLabelKey
	// LabelTemplateGeneration is an older label of a DaemonSet's pods, which the native controller treats as equal to the hash.
	LabelTemplateGeneration = "pod-template-generation"
)

// Annotations that the Deployment controller writes on ReplicaSets; pkg/controller/deployment/util/deployment_util.go.
const (
	AnnotationDesired  = "deployment.kubernetes.io/desired-replicas"
	AnnotationMax      = "deployment.kubernetes.io/max-replicas"
	AnnotationRevision = "deployment.kubernetes.io/revision"
)
