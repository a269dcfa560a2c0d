package inplace

import (
	appsv1 "k8s.io/api/apps/v1"
)

// Labels by which the native controllers know the pods of a revision.
const (
	// LabelTemplateHash is that of a ReplicaSet and its pods.
	LabelTemplateHash = appsv1.DefaultDeploymentUniqueLabelKey
	// LabelRevisionHash is that of a ControllerRevision and the pods of its DaemonSet.
	LabelRevisionHash = appsv1.DefaultDaemonSetUniqueLabelKey
	// LabelTemplateGeneration is the older one of those pods, which the native controller takes for the hash's equal.
	LabelTemplateGeneration = "pod-template-generation"
)

// Annotations the Deployment controller keeps on ReplicaSets; pkg/controller/deployment/util/deployment_util.go.
const (
	AnnotationDesired  = "deployment.kubernetes.io/desired-replicas"
	AnnotationMax      = "deployment.kubernetes.io/max-replicas"
	AnnotationRevision = "deployment.kubernetes.io/revision"
)
