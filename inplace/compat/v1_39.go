package compat

import versions "k8s.io/apimachinery/pkg/util/version"

var sandboxKubelet = versions.MustParseGeneric("1.36")

// ReportsSandbox reports whether a kubelet of that version sets PodReadyToStartContainers as soon as the sandbox is ready
// (OnPodSandboxReady in pkg/kubelet/kubelet.go). Older kubelets leave the condition False while they pull.
func ReportsSandbox(kubelet string) bool { return !olderThan(sandboxKubelet, kubelet) }
