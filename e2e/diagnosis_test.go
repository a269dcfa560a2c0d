//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventsOf lists the Kubernetes events of a namespace, oldest first.
func eventsOf(ctx context.Context, namespace string) string {
	found, err := clients.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, e := range found.Items {
		lines = append(lines, fmt.Sprintf("%s %s/%s %s %s (%s): %s", e.CreationTimestamp.Format(time.TimeOnly),
			e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Type, e.Reason, reporterOf(e), e.Message))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func reporterOf(e corev1.Event) string {
	if e.ReportingController != "" {
		return e.ReportingController
	}
	return e.Source.Component
}

// logsOf returns the last lines that the managers logged about a namespace.
func logsOf(ctx context.Context, namespace string) string {
	out, _, err := kubectl(ctx, "", "logs", "-n", ownNamespace, "-l", "app.kubernetes.io/name="+ownName, "--prefix", "--tail=2000")
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, namespace) {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(lines[max(0, len(lines)-80):], "\n")
}
