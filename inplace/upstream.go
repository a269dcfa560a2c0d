package inplace

import appsv1 "k8s.io/api/apps/v1"

// Labels by which native controllers tell the revision of a pod.
const (
	// LabelTemplateHash is on pods of ReplicaSets.
	LabelTemplateHash = appsv1.DefaultDeploymentUniqueLabelKey
	// LabelRevisionHash is on pods of DaemonSets.
	LabelRevisionHash = appsv1.DefaultDaemonSetUniqueLabelKey
	// LabelTemplateGeneration is on pods of DaemonSets, too; their controller takes a match of either for an updated pod.
	LabelTemplateGeneration = "pod-template-generation"
)

// Annotations the Deployment controller keeps on ReplicaSets; pkg/controller/deployment/util/deployment_util.go.
const (
	AnnotationDesired  = "deployment.kubernetes.io/desired-replicas"
	AnnotationMax      = "deployment.kubernetes.io/max-replicas"
	AnnotationRevision = "deployment.kubernetes.io/revision"
)
