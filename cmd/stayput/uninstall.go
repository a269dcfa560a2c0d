package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What manifests calls the Deployment, both webhook configurations and the policies (with their bindings) that judge writes.
const (
	ownDeployment    = "stayput"
	ownConfiguration = "stayput"
	readyRule        = "stayput-ready"           // the policy, its binding, and the webhook configuration of older clusters
	ownAdvice        = "stayput-auxiliary-names" // the policy that warns; all others deny
)

var (
	managerPods = client.MatchingLabels{"app.kubernetes.io/name": "stayput", "app.kubernetes.io/component": "manager"}
	ownPolicies = []string{"stayput-namespaces", "stayput-workloads", "stayput-settings", "stayput-priority",
		"stayput-auxiliary", "stayput-marks", ownAdvice,
		"stayput-own-namespaces", "stayput-own-pre-pull-pods", "stayput-own-pods", "stayput-own-gates", "stayput-own-resizes", "stayput-own-replicasets",
		"stayput-own-scaling", "stayput-own-revisions", "stayput-own-status"}
)

const (
	// scaleToZeroTimeout bounds how long the managers may take to leave: 30 s, and what a busy node adds.
	scaleToZeroTimeout = 2 * time.Minute
	lookEvery          = 500 * time.Millisecond
)

// uninstall takes Stayput out of everybody's way; what is left of it then may be deleted in any order. The managers leave first, as they do when
// a node is drained: while one leads, native writes must be held, or two would take pods out of service. Then nothing is asked any
// more, and then what is under way is given back. Each step passes over what is gone, so that it may be run again.
func uninstall(ctx context.Context, o options) error {
	c, err := directClient()
	if err != nil {
		return err
	}
	return uninstallWith(ctx, c, o)
}

func uninstallWith(ctx context.Context, c client.Client, o options) error {
	if err := scaleToZero(ctx, c, o.namespace); err != nil {
		return err
	}
	if err := deleteAdmission(ctx, c); err != nil {
		return err
	}
	return fallBackAll(ctx, c, o)
}

// scaleToZero has the managers go and waits until none is left, whether or not their Deployment is still there.
func scaleToZero(ctx context.Context, c client.Client, namespace string) error {
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	err := c.SubResource("scale").Patch(ctx, deploymentOf(namespace), none)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("scale Deployment %s/%s to 0: %w", namespace, ownDeployment, err)
	}
	var left []string
	err = polling.PollUntilContextTimeout(ctx, lookEvery, scaleToZeroTimeout, true, func(ctx context.Context) (bool, error) {
		left, err = namesOf(ctx, c, namespace)
		return len(left) == 0, err
	})
	if len(left) > 0 {
		return fmt.Errorf("after %s managers are still there: %s; delete them, by force if their node is down, and run this again: %w",
			scaleToZeroTimeout, strings.Join(left, ", "), err)
	}
	return err
}

// deploymentOf is unstructured, because what a patch of its scale returns is no Deployment.
func deploymentOf(namespace string) client.Object {
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	deployment.SetNamespace(namespace)
	deployment.SetName(ownDeployment)
	return deployment
}

// namesOf are the managers' pods.
func namesOf(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), managerPods); err != nil {
		return nil, fmt.Errorf("list the managers: %w", err)
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names, nil
}

// deleteAdmission deletes what has API servers ask Stayput, and what they would refuse while updates are given back.
func deleteAdmission(ctx context.Context, c client.Client) error {
	for _, object := range admissionObjects() {
		if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
		}
	}
	return nil
}

// admissionObjects are Stayput's webhook configurations, and its policies with their bindings. Older clusters do not serve MutatingAdmissionPolicies, and
// have a webhook instead. What says what is Ready goes before gates are opened whatever has become of a pod: one whose node is down would be Ready.
func admissionObjects() []client.Object {
	all := []client.Object{
		admissionObject("MutatingWebhookConfiguration", ownConfiguration),
		admissionObject("ValidatingWebhookConfiguration", ownConfiguration),
		admissionObject("MutatingWebhookConfiguration", readyRule),
		admissionObject("MutatingAdmissionPolicyBinding", readyRule),
		admissionObject("MutatingAdmissionPolicy", readyRule),
	}
	for _, policy := range ownPolicies {
		all = append(all, admissionObject("ValidatingAdmissionPolicyBinding", policy), admissionObject("ValidatingAdmissionPolicy", policy))
	}
	return all
}

func admissionObject(kind, name string) client.Object {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
	return object
}
