package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

func (r *run) readManager(ctx context.Context) (string, error) {
	manager := &appsv1.Deployment{}
	found, err := r.find(ctx, r.Namespace, Deployment, manager)
	if found {
		r.manager = manager
	}
	return "", err
}

// managersRun reports whether a manager is available. Without one, nothing can answer.
func (r *run) managersRun() bool { return r.manager != nil && r.manager.Status.AvailableReplicas > 0 }

// managers asks whether managers run, and whether one leads.
func (r *run) managers(ctx context.Context) (string, error) {
	const native = ": no manager runs, so every update is native"
	if r.manager == nil {
		r.add(Error, fmt.Sprintf("there is no Deployment %s/%s", r.Namespace, Deployment)+native,
			again+". If Stayput is in another namespace, name that with --stayput-namespace")
		return "", nil
	}
	wanted := ptr.Deref(r.manager.Spec.Replicas, 1)
	if wanted == 0 {
		r.add(Error, fmt.Sprintf("Deployment %s/%s is scaled to 0", r.Namespace, Deployment)+native,
			fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=2", r.Namespace, Deployment))
		return "", nil
	}
	running := min(r.manager.Status.AvailableReplicas, r.manager.Status.UpdatedReplicas)
	if running < wanted {
		level, then := Warning, ""
		if !r.managersRun() {
			level, then = Error, ". Until one is, every update is native"
		}
		r.add(level, fmt.Sprintf("%d of %d managers are up to date and available: %s%s", running, wanted, r.whyUnavailable(ctx), then),
			"mend what this says, or what the pods' events say (kubectl -n "+r.Namespace+" describe pods), or wait a minute and check again")
	}
	if !r.managersRun() {
		return "", nil // without one, none can lead
	}
	return fmt.Sprintf("%d of %d are available, and one leads", running, wanted), r.leader(ctx)
}

// whyUnavailable returns what Kubernetes or the manager itself says.
func (r *run) whyUnavailable(ctx context.Context) string {
	for _, condition := range r.manager.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return condition.Message
		}
	}
	var pods corev1.PodList
	ours := client.MatchingLabels{"app.kubernetes.io/component": "manager"}
	if err := r.List(ctx, &pods, client.InNamespace(r.Namespace), ours); err != nil {
		return err.Error()
	}
	for _, pod := range pods.Items {
		if !apps.IsTrue(&pod, corev1.PodReady) {
			return "pod " + pod.Name + " is not ready" + r.failing(ctx, &pod)
		}
	}
	return "their pods have just started, or are about to be created"
}

// failing has the API server ask the manager which of its readiness checks fail. It returns an empty string if it is not answered: a
// NetworkPolicy may keep API servers out.
func (r *run) failing(ctx context.Context, pod *corev1.Pod) string {
	said := ""
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.Name != "health" {
			continue
		}
		body, _ := r.Raw.Get().Namespace(r.Namespace).Resource("pods").Name(fmt.Sprintf("%s:%d", pod.Name, port.ContainerPort)).
			SubResource("proxy").Suffix("readyz").Timeout(5 * time.Second).DoRaw(ctx) // if a check fails, there is an error and a body
		for line := range strings.Lines(string(body)) {
			if check, is := strings.CutPrefix(line, "[-]"); is {
				said += ", and its check " + strings.Fields(check)[0] + " fails"
			}
		}
	}
	return said
}

// leader asks whether a manager renews the Lease.
func (r *run) leader(ctx context.Context) error {
	var lease coordinationv1.Lease
	_, err := r.find(ctx, r.Namespace, inplace.Lease, &lease)
	if err == nil && (lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > inplace.LeaderPatience) {
		r.add(Error, fmt.Sprintf("no manager leads, so every update is native: Lease %s/%s was not renewed in the last %s",
			r.Namespace, inplace.Lease, inplace.LeaderPatience), fmt.Sprintf("look at the managers' log: kubectl -n %s logs deployment/%s "+
			"--all-pods. The clocks of nodes must not differ by more than that time", r.Namespace, Deployment))
	}
	return err
}
