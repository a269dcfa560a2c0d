package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/internal/observe"
)

func judgeManagers(f Facts, v *verdict) string {
	if f.Manager == nil {
		v.wrong(fmt.Sprintf("there is no Deployment %s/%s: no manager runs, so every update is native", f.Namespace, Deployment),
			again+". If Stayput is in another namespace, name that with --stayput-namespace")
		return ""
	}
	wanted := int32(1)
	if f.Manager.Spec.Replicas != nil {
		wanted = *f.Manager.Spec.Replicas
	}
	if wanted == 0 {
		v.wrong(fmt.Sprintf("Deployment %s/%s is scaled to 0: no manager runs, so every update is native", f.Namespace, Deployment),
			fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=2", f.Namespace, Deployment))
		return ""
	}
	f.judgePods(v, wanted)
	if !f.managersRun() {
		return ""
	}
	if why := f.leaderless(); why != "" {
		v.wrong("no manager leads, so every update is native: "+why, fmt.Sprintf(
			"look at the managers' log: kubectl -n %s logs deployment/%s --all-pods. The clocks of nodes must not differ by more than %s",
			f.Namespace, Deployment, observe.HoldPatience))
	}
	return fmt.Sprintf("%d of %d are available, and one leads", f.Manager.Status.AvailableReplicas, wanted)
}

// judgePods finds what keeps managers from running.
func (f Facts) judgePods(v *verdict, wanted int32) {
	status := f.Manager.Status
	done := status.AvailableReplicas >= wanted && status.UpdatedReplicas >= wanted && status.ObservedGeneration >= f.Manager.Generation
	if done {
		return
	}
	level := Warning
	problem := fmt.Sprintf("%d of %s are available", status.AvailableReplicas, counted(int(wanted), "manager"))
	if status.AvailableReplicas == 0 {
		level, problem = Error, "no manager is available, so every update is native"
	} else if status.AvailableReplicas >= wanted {
		problem = "managers of another revision do not start"
	}
	why, remedy := f.whyNot()
	v.add(level, problem+": "+why, remedy)
}

// whyNot returns why a manager does not run, and what mends that.
func (f Facts) whyNot() (why, remedy string) {
	for _, condition := range f.Manager.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return condition.Message, "let the policy or quota that this names admit Stayput's pods"
		}
	}
	for _, pod := range f.Pods {
		if why, remedy = f.whyPod(pod); why != "" {
			return why, remedy
		}
	}
	return "their pods are starting, or are about to be created",
		fmt.Sprintf("wait a minute and check again; then look at kubectl -n %s describe deployment %s", f.Namespace, Deployment)
}

// whyPod returns why a pod does not run; empty if it runs.
func (f Facts) whyPod(pod corev1.Pod) (why, remedy string) {
	in := fmt.Sprintf("kubectl -n %s ", f.Namespace)
	if scheduled := apps.Condition(&pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return fmt.Sprintf("pod %s has no node: %s", pod.Name, scheduled.Message),
			"make room for the pod, or change the Deployment's nodeSelector, tolerations or requests"
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Waiting == nil {
			continue
		}
		switch reason := container.State.Waiting.Reason; reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			return fmt.Sprintf("pod %s cannot pull image %s (%s)", pod.Name, container.Image, reason),
				"set an image that the nodes can pull: image.repository and image.tag of the chart, or IMAGE of make install; or add pull secrets"
		case "ContainerCreating", "PodInitializing":
			return f.whyCreating(pod)
		default:
			return fmt.Sprintf("pod %s waits: %s", pod.Name, cmp.Or(container.State.Waiting.Message, reason)),
				"look at its log: " + in + "logs " + pod.Name + " --previous"
		}
	}
	if pod.DeletionTimestamp == nil && !apps.IsTrue(&pod, corev1.PodReady) {
		return fmt.Sprintf("pod %s runs and is not ready", pod.Name),
			"its log says what it waits for: " + in + "logs " + pod.Name
	}
	return "", ""
}

// whyCreating returns what a pod without containers waits for. Usually that is the Secret with the certificate.
func (f Facts) whyCreating(pod corev1.Pod) (why, remedy string) {
	return fmt.Sprintf("the containers of pod %s have not been created", pod.Name), fmt.Sprintf(
		"see that Secret %s/%s exists, which the pod mounts; its events say what else is missing: kubectl -n %s describe pod %s",
		f.Namespace, certificateIn(pod.Spec), f.Namespace, pod.Name)
}

// leaderless returns why no manager leads; empty if one does.
func (f Facts) leaderless() string {
	switch {
	case f.Lease == nil:
		return fmt.Sprintf("there is no Lease %s/%s", f.Namespace, inplace.Lease)
	case f.Lease.Spec.RenewTime == nil:
		return fmt.Sprintf("no manager has held Lease %s/%s yet", f.Namespace, inplace.Lease)
	}
	if age := f.Now.Sub(f.Lease.Spec.RenewTime.Time); age > observe.HoldPatience {
		return fmt.Sprintf("the Lease was renewed %s ago, more than %s", age.Round(time.Second), observe.HoldPatience)
	}
	return ""
}

func judgeRights(f Facts, v *verdict) string {
	if len(f.Denied) > 0 {
		v.wrong(fmt.Sprintf("the managers' service account may not %s", listed(f.Denied)),
			"restore Stayput's ClusterRole, Role and their bindings: "+again)
	}
	if !f.Fallbacks {
		v.wrong(fmt.Sprintf("there is no ConfigMap %s/%s, so an update that cannot go on in place is not handed over",
			f.Namespace, inplace.Fallbacks), again)
	}
	var missing []string
	for _, name := range flowSchemas {
		if !slices.Contains(f.Schemas, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		v.less(fmt.Sprintf("FlowSchema %s is missing, so under load the API server serves Stayput after the native controllers",
			listed(missing)), again)
	}
	return "the managers may do all that updates need"
}
