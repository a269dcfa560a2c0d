package check

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/compat"
)

func judgeKubernetes(f Facts, v *verdict) string {
	if !compat.Supported(f.Version) {
		v.wrong(fmt.Sprintf("the API server is Kubernetes %s, and Stayput needs %s", f.Version, compat.Least),
			fmt.Sprintf("upgrade the cluster to Kubernetes %s or newer", compat.Least))
	}
	return f.Version
}

// credentials is the flag by which native controllers get user names of their own.
const credentials = "--use-service-account-credentials"

// everyNative ends each finding about the native controllers.
const everyNative = "Stayput knows the native controllers by their user names, so every update is native"

func judgeControllers(f Facts, v *verdict) string {
	var missing []string
	for _, name := range nativeControllers {
		if !slices.Contains(f.Accounts, name) {
			missing = append(missing, name)
		}
	}
	set := "run kube-controller-manager with " + credentials + "=true"
	if len(missing) > 0 {
		v.wrong(fmt.Sprintf("kube-system has no service account %s: kube-controller-manager runs without %s. %s",
			listed(missing), credentials, everyNative), set)
		return ""
	}
	for _, pod := range f.ControllerManagers {
		if command := commandOf(pod, "kube-controller-manager"); len(command) > 0 && !credentialsIn(command) {
			v.wrong(fmt.Sprintf("pod kube-system/%s runs kube-controller-manager without %s. %s", pod.Name, credentials, everyNative), set)
		}
	}
	if len(f.ControllerManagers) > 0 {
		return "they have user names of their own: kube-controller-manager runs with " + credentials
	}
	return "they have service accounts. Whether they use them, the first update shows: without " + credentials + " it is native"
}

// commandOf returns the command line of the pod's container that runs the program.
func commandOf(pod corev1.Pod, program string) []string {
	for _, container := range pod.Spec.Containers {
		command := slices.Concat(container.Command, container.Args)
		if len(command) > 0 && strings.HasSuffix(command[0], program) {
			return command
		}
	}
	return nil
}

// credentialsIn reports whether the command line sets the flag. As with every flag of Kubernetes, the last one counts.
func credentialsIn(command []string) bool {
	set := false
	for _, word := range command {
		name, value, valued := strings.Cut(word, "=")
		if name == credentials {
			set = !valued || value == "true"
		}
	}
	return set
}

// judgeImages asks which nodes can pull an image before a container stops.
func judgeImages(f Facts, v *verdict) string {
	const then = "containers stop before their new image is pulled"
	if f.VolumesRefused != "" {
		v.less("the API server refuses pods that mount an image, so "+then+": "+f.VolumesRefused,
			"switch the feature gate ImageVolume on, or let the policy that this names admit such pods")
		return ""
	}
	var cannot []string
	why := ""
	for i := range f.Nodes {
		if reason := compat.CannotMount(&f.Nodes[i]); reason != "" {
			cannot, why = append(cannot, f.Nodes[i].Name), reason
		}
	}
	if len(cannot) > 0 {
		v.less(fmt.Sprintf("on %d of %d nodes %s: %s (%s)", len(cannot), len(f.Nodes), then, why, listed(cannot)),
			"upgrade these nodes to Kubernetes 1.35 with containerd 2.1 or CRI-O 1.31, or newer")
		return ""
	}
	return fmt.Sprintf("%s can mount images", counted(len(f.Nodes), "node"))
}
