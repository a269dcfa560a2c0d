package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
	proofPatience = 12 * time.Second // for the policy, and then for the answers
	proofPause    = 300 * time.Millisecond
	// proofName is the name of the workloads, and the value of a label by which everything can be found that a killed proof has left.
	proofName  = "stayput-prove"
	proofLabel = "app.kubernetes.io/name"
)

// created finds the user in what the policy says.
var created = regexp.MustCompile(`created by "([^"]+)"`)

// prove has the native controllers say who they are. Each gets a workload in a namespace of its own, where a policy refuses what a
// controller creates and names the user, which the controller's event repeats. So no pod is created, and no image is needed.
func (r *run) prove(ctx context.Context) (says string, err error) {
	p := newProof(proofName + "-" + rand.String(5))
	defer func() {
		if left := p.clean(ctx, r); left != nil {
			says, err = "", left
		}
	}()
	if err = p.create(ctx, r, &p.namespace, &p.policy, &p.binding); err == nil {
		err = p.inForce(ctx, r)
	}
	if err == nil {
		err = p.create(ctx, r, p.workloads...)
	}
	if err == nil {
		err = p.answers(ctx, r)
	}
	if err != nil {
		return "", fmt.Errorf("the proof: %w", err)
	}
	return r.verdict(p)
}

// proof is what prove creates, and what the controllers have said.
type proof struct {
	namespace corev1.Namespace
	policy    admissionv1.ValidatingAdmissionPolicy
	binding   admissionv1.ValidatingAdmissionPolicyBinding
	workloads []client.Object // of nativeControllers, in that order
	made      []client.Object // that need to be deleted
	said      map[string]string
}

func newProof(name string) *proof {
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{proofLabel: proofName}}
	}
	rule := func(group, resource string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}}}}
	}
	return &proof{
		namespace: corev1.Namespace{ObjectMeta: meta()},
		policy: admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta(), Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Ignore),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}},
				ResourceRules:     []admissionv1.NamedRuleWithOperations{rule("", "pods"), rule("apps", "replicasets")}},
			Validations: []admissionv1.Validation{{Expression: "!has(object.metadata.ownerReferences)",
				MessageExpression: `'created by "' + request.userInfo.username + '"'`}}}},
		binding: admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta(), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}},
		workloads: probes(name),
		said:      map[string]string{},
	}
}

// probes returns a workload for each native controller. A Deployment has its own controller create a ReplicaSet, so the controller of
// ReplicaSets gets one without a Deployment. Each selects pods of its own: otherwise one would adopt what is another's.
func probes(namespace string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: proofName}
	of := func(kind string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
		labels := map[string]string{"proof": kind}
		return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: gated()}
	}
	deployment, replicaSet := appsv1.Deployment{ObjectMeta: meta}, appsv1.ReplicaSet{ObjectMeta: meta}
	daemonSet, statefulSet := appsv1.DaemonSet{ObjectMeta: meta}, appsv1.StatefulSet{ObjectMeta: meta}
	deployment.Spec.Selector, deployment.Spec.Template = of("Deployment")
	replicaSet.Spec.Selector, replicaSet.Spec.Template = of("ReplicaSet")
	daemonSet.Spec.Selector, daemonSet.Spec.Template = of("DaemonSet")
	statefulSet.Spec.Selector, statefulSet.Spec.Template = of("StatefulSet")
	return []client.Object{&deployment, &replicaSet, &daemonSet, &statefulSet}
}

// gated returns a pod that satisfies Pod Security restricted, which is asked before the policy, and that no node runs, should an API server
// not know the policy yet.
func gated() corev1.PodSpec {
	return corev1.PodSpec{
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "stayput.dev/proof"}},
		Tolerations:     []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "proof", Image: "none.invalid/none:1", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
	}
}

// create creates the objects, and notes which ones may exist then.
func (p *proof) create(ctx context.Context, r *run, objects ...client.Object) error {
	for _, object := range objects {
		err := r.Create(ctx, object)
		if !apierrors.IsForbidden(err) {
			p.made = append(p.made, object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inForce waits until the policy refuses a pod in a dry run, and a moment longer for further API servers.
func (p *proof) inForce(ctx context.Context, r *run) error {
	var last error
	err := polling.PollUntilContextTimeout(ctx, proofPause, proofPatience, true, func(ctx context.Context) (bool, error) {
		last = r.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace.Name, Name: proofName,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: proofName, UID: "proof"}}},
			Spec: gated()}, client.DryRunAll)
		return last != nil && created.MatchString(last.Error()), nil
	})
	if err != nil {
		return fmt.Errorf("the policy refuses no pod, and the last one got this answer: %w", errors.Join(last, err))
	}
	time.Sleep(4 * proofPause)
	return nil
}

// answers reads what the controllers' events say, until all have answered or patience is over.
func (p *proof) answers(ctx context.Context, r *run) error {
	err := polling.PollUntilContextTimeout(ctx, proofPause, proofPatience, true, func(ctx context.Context) (bool, error) {
		var events corev1.EventList
		if err := r.List(ctx, &events, client.InNamespace(p.namespace.Name)); err != nil {
			return false, err
		}
		for _, event := range events.Items {
			if kind := event.InvolvedObject.Kind; p.user(kind) == "" {
				p.said[kind] = event.Message
			}
		}
		return !slices.ContainsFunc(provenKinds, func(kind string) bool { return p.user(kind) == "" }), nil
	})
	if polling.Interrupted(err) {
		return ctx.Err() // without it, who has not answered is the verdict
	}
	return err
}

// user returns the user that the controller of that kind is; empty if it has not answered.
func (p *proof) user(kind string) string {
	if match := created.FindStringSubmatch(p.said[kind]); match != nil {
		return match[1]
	}
	return ""
}

// provenKinds are the kinds of the workloads of nativeControllers.
var provenKinds = []string{"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"}

// verdict judges the answers.
func (r *run) verdict(p *proof) (string, error) {
	var all, wrong, silent []string
	for i, account := range nativeControllers() {
		controller := account.Name
		all = append(all, controller)
		switch user := p.user(provenKinds[i]); user {
		case inplace.NativeController(controller):
		case "":
			silent = append(silent, fmt.Sprintf("%s (its event: %s)", controller, cmp.Or(p.said[provenKinds[i]], "none")))
		default:
			wrong = append(wrong, fmt.Sprintf("%s is %s", controller, user))
		}
	}
	if len(wrong) > 0 {
		r.add(Error, "proved that the native controllers have no user names of their own: "+strings.Join(wrong, ", ")+
			". Stayput knows them by these names, so every update on this platform is native", "run "+controllerManager+" with "+
			credentials+"=true. Where a provider runs it, only the provider can do that; without it, Stayput is of no use there")
	}
	if len(silent) > 0 {
		r.add(Unchecked, "the proof got no answer of "+strings.Join(silent, ", "),
			"mend what the event says and prove it again; a DaemonSet needs a node")
	}
	return fmt.Sprintf("proved: %s are users of their own, so Kubernetes %s on this platform is right for updates in place",
		strings.Join(all, ", "), r.version), nil
}

// clean deletes what was created, also after an interrupt: first the namespace, so that nothing is created without the policy.
func (p *proof) clean(ctx context.Context, r *run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
	defer cancel()
	for _, object := range p.made {
		if object.GetNamespace() != "" {
			continue // goes with its namespace
		}
		if err := r.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the proof has left %s behind (%w): kubectl delete -l %s=%s "+
				"namespaces,validatingadmissionpolicies,validatingadmissionpolicybindings", object.GetName(), err, proofLabel, proofName)
		}
	}
	return nil
}
