package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	polling "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace"
)

const (
	proofPatience = 20 * time.Second // for the policy and the answer
	// proofName is what names begin with, and the value of a label by which everything can be found that a killed proof has left.
	proofName  = "stayput-prove"
	proofLabel = "app.kubernetes.io/name"
)

// created finds the user in what the policy says.
var created = regexp.MustCompile(`created by "([^"]+)"`)

// proof are Deployments in a namespace of their own, where a policy refuses their ReplicaSets and names the user who has created them. An
// event of the Deployment controller repeats that. They have no pods, so that no node is needed, and no image. One flag gives all native
// controllers users of their own, so one controller is enough.
type proof struct {
	*run
	name string
	made []client.Object // what may exist, and is not in the namespace
	last string          // what the last event says
}

// prove has the Deployment controller say who it is.
func (r *run) prove(ctx context.Context) (says string, err error) {
	p := &proof{run: r, name: proofName + "-" + rand.String(5)}
	defer func() { err = errors.Join(err, p.clean(ctx)) }()
	user, err := p.user(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("the proof: %w", err)
	case user == "":
		r.add(Unchecked, "the proof got no answer of the Deployment controller; the last event: "+cmp.Or(p.last, "none"),
			"mend what the event says and prove it again")
	case user != inplace.NativeController(deploymentController):
		r.add(Error, "proved that the native controllers have no user names of their own: "+deploymentController+" is "+user+
			". Stayput knows them by these names, so every update on this platform is native", "run kube-controller-manager with "+
			credentials+"=true. Where a provider runs it, only the provider can do that; without it, Stayput is of no use there")
	}
	return fmt.Sprintf("proved: they are users of their own, so Kubernetes %s on this platform is right for updates in place", r.version), nil
}

// user returns the user that the Deployment controller is; empty if it has not answered. It creates one Deployment after the other, because
// each API server takes a moment to know the policy.
func (p *proof) user(ctx context.Context) (user string, err error) {
	if err := p.create(ctx, p.cluster()...); err != nil {
		return "", err
	}
	err = polling.PollUntilContextTimeout(ctx, time.Second, proofPatience, true, func(ctx context.Context) (bool, error) {
		if err := p.Create(ctx, p.probe()); err != nil {
			return false, err
		}
		var events corev1.EventList
		err := p.List(ctx, &events, client.InNamespace(p.name))
		for _, event := range events.Items {
			p.last = event.Message
			if match := created.FindStringSubmatch(event.Message); match != nil {
				user = match[1]
			}
		}
		return user != "", err
	})
	if polling.Interrupted(err) {
		return "", ctx.Err()
	}
	return user, err
}

// probe returns a Deployment without pods.
func (p *proof) probe() *appsv1.Deployment {
	labels := map[string]string{proofLabel: proofName}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, GenerateName: proofName + "-"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proof", Image: "none.invalid/none:1"}}}}}}
}

// cluster returns the namespace, and the policy with its binding.
func (p *proof) cluster() []client.Object {
	meta := metav1.ObjectMeta{Name: p.name, Labels: map[string]string{proofLabel: proofName}}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: meta},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Ignore),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: p.name}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"replicasets"}}}}}},
			Validations: []admissionv1.Validation{{Expression: "false", MessageExpression: `'created by "' + request.userInfo.username + '"'`}}}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: p.name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}},
	}
}

// create creates the objects, and notes which ones may exist then.
func (p *proof) create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		err := p.Create(ctx, object)
		if !apierrors.IsForbidden(err) {
			p.made = append(p.made, object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clean deletes what was created, also after an interrupt: first the namespace, so that nothing is created without the policy.
func (p *proof) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
	defer cancel()
	for _, object := range p.made {
		if err := p.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the proof has left %s behind (%w): kubectl delete -l %s=%s "+
				"namespaces,validatingadmissionpolicies,validatingadmissionpolicybindings", object.GetName(), err, proofLabel, proofName)
		}
	}
	return nil
}
