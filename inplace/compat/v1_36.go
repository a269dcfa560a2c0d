package compat

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	versions "k8s.io/apimachinery/pkg/util/version"
)

var policyAPIServer = versions.MustParseGeneric("1.36")

// MutatingPolicy is the kind of the policy by which the API server itself opens gates and says Ready (manifests/ready). Where it is not
// served, a webhook asks a manager (manifests/ready-webhook).
var MutatingPolicy = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"}

// ServesMutatingPolicies reports whether an API server of that version serves MutatingPolicy (MutatingAdmissionPolicy in
// pkg/features/kube_features.go).
func ServesMutatingPolicies(apiServer string) bool { return !olderThan(policyAPIServer, apiServer) }
