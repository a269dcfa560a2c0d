package check

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/compat"
)

func (r *run) kubernetes(context.Context) (string, error) {
	if !compat.Supported(r.version) {
		r.add(Error, fmt.Sprintf("the API server is Kubernetes %s, and Stayput needs %s", r.version, compat.Least),
			fmt.Sprintf("upgrade the cluster to Kubernetes %s or newer", compat.Least))
	}
	return r.version, nil
}

const kubeSystem = "kube-system"

// credentials is the flag that gives each native controller a user name of its own.
const credentials = "--use-service-account-credentials"

// controllers asks whether each native controller has a service account. Whether it uses that, only a proof shows.
func (r *run) controllers(ctx context.Context) (string, error) {
	if r.Prove {
		return r.prove(ctx)
	}
	var missing []string
	for _, name := range nativeControllers() {
		found, err := r.find(ctx, kubeSystem, name, &corev1.ServiceAccount{})
		if err != nil {
			return "", err
		}
		if !found {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		r.add(Error, fmt.Sprintf("kube-controller-manager runs without %s: %s has no service account %s. Stayput knows the native "+
			"controllers by their user names, so every update is native", credentials, kubeSystem, strings.Join(missing, ", ")),
			"run kube-controller-manager with "+credentials+"=true")
	}
	return "they have service accounts; --prove shows whether they use them", nil
}

// images asks whether nodes can pull an image before a container stops.
func (r *run) images(ctx context.Context) (string, error) {
	var nodes corev1.NodeList
	err := r.List(ctx, &nodes)
	for i := range nodes.Items {
		if why := compat.CannotMount(&nodes.Items[i]); why != "" {
			r.add(Warning, "on node "+nodes.Items[i].Name+" containers stop before their new image is pulled: "+why,
				"upgrade the node, and those like it, to Kubernetes 1.35 with containerd 2.1 or CRI-O 1.31, or newer")
			break
		}
	}
	return "all nodes can mount images", err
}

func (r *run) readNamespaces(ctx context.Context) (string, error) {
	var list corev1.NamespaceList
	err := r.List(ctx, &list, client.HasLabels{inplace.LabelUpdate})
	r.namespaces = list.Items
	return "", err
}

// labels asks for namespaces whose label does not do what it seems to. A policy refuses such a label when it is written, but not one that
// was there before.
func (r *run) labels(context.Context) (string, error) {
	for _, namespace := range r.namespaces {
		value := namespace.Labels[inplace.LabelUpdate]
		problem := fmt.Sprintf("namespace %s has the label %s=%s", namespace.Name, inplace.LabelUpdate, value)
		remove := fmt.Sprintf("kubectl label namespace %s %s-", namespace.Name, inplace.LabelUpdate)
		if r.excludes(namespace.Name) {
			r.add(Warning, problem+", and Stayput never manages that namespace", "remove the label: "+remove)
		} else if !inplace.NamespaceModes.Has(value) {
			r.add(Warning, problem+", which is no mode, so its updates are native",
				fmt.Sprintf("set it to %s, or remove it: %s", inplace.NamespaceModes, remove))
		}
	}
	return fmt.Sprintf("labelled namespaces: %d (kubectl get namespaces --selector %s)", len(r.namespaces), inplace.LabelUpdate), nil
}

// excludes reports whether the webhooks are never called for the namespace, whatever its label.
func (r *run) excludes(name string) bool { return name == kubeSystem || name == r.Namespace }
