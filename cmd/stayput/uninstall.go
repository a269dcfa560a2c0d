package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/controller/shutdown"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/check"
)

var managerPods = client.MatchingLabels{"app.kubernetes.io/name": "stayput", "app.kubernetes.io/component": "manager"}

// uninstallPatience bounds how long the managers may take to end, their 30 s and what a busy node adds, and then how long other clients may
// keep changing the objects of the updates that fall back.
const uninstallPatience = 2 * time.Minute

// uninstall makes the cluster work without Stayput. What is left of Stayput after it may be deleted in any order. First the managers end,
// as they do when a node is drained: while one leads, native writes must be held, or the leader and a native controller would both take
// pods out of service. Then the webhooks and policies are deleted: from then on kubelets put back what is out of service. And then all
// updates in progress fall back. Each step skips what is already gone, so uninstall may be run again.
func uninstall(ctx context.Context, o options) error {
	config, err := connection()
	if err != nil {
		return err
	}
	direct, err := clientOver(config)
	if err != nil {
		return err
	}
	return uninstallWith(ctx, direct, o)
}

func uninstallWith(ctx context.Context, c client.Client, o options) error {
	if err := scaleToZero(ctx, c, o.namespace); err != nil {
		return err
	}
	if err := deleteAdmission(ctx, c); err != nil {
		return err
	}
	// No manager may run meanwhile: it would take up the updates again.
	ctx, cancel := context.WithTimeout(ctx, uninstallPatience)
	defer cancel()
	return shutdown.Uninstall(ctx, c, o.reader(c))
}

// scaleToZero scales the managers' Deployment to 0 and waits until no manager is left. It also waits if the Deployment is already gone.
func scaleToZero(ctx context.Context, c client.Client, namespace string) error {
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	err := c.SubResource("scale").Patch(ctx, deploymentOf(namespace), none)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("scale Deployment %s/%s to 0: %w", namespace, check.Deployment, err)
	}
	var left []string
	err = polling.PollUntilContextTimeout(ctx, inplace.LookAgain, uninstallPatience, true, func(ctx context.Context) (bool, error) {
		left, err = namesOf(ctx, c, namespace)
		return len(left) == 0, err
	})
	if len(left) > 0 {
		return fmt.Errorf("after %s managers are still there: %s; delete them, by force if their node is down, and run this again: %w",
			uninstallPatience, strings.Join(left, ", "), err)
	}
	return err
}

// deploymentOf returns the managers' Deployment. It is unstructured, because a patch of its scale returns a Scale.
func deploymentOf(namespace string) client.Object {
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	deployment.SetNamespace(namespace)
	deployment.SetName(check.Deployment)
	return deployment
}

// namesOf returns the names of the managers' pods.
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

// deleteAdmission deletes the webhook configurations, and the policies that would refuse the writes of updates that fall back.
func deleteAdmission(ctx context.Context, c client.Client) error {
	for _, object := range admissionObjects() {
		if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
		}
	}
	return nil
}

// admissionObjects returns Stayput's webhook configurations, and its policies with their bindings.
func admissionObjects() []client.Object {
	all := []client.Object{
		admissionObject("MutatingWebhookConfiguration", inplace.WebhookConfigurations),
		admissionObject("ValidatingWebhookConfiguration", inplace.WebhookConfigurations),
	}
	for _, policy := range check.Policies {
		all = append(all, admissionObject("ValidatingAdmissionPolicyBinding", policy), admissionObject("ValidatingAdmissionPolicy", policy))
	}
	return all
}

func admissionObject(kind, name string) client.Object {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
	return object
}
