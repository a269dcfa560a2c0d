package check

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
)

// expected is a finding, by parts of its sentences.
type expected struct {
	level           Level
	about           Topic
	problem, remedy string
}

func (e expected) is(f Finding) bool {
	return f.Level == e.level && f.About == e.about && strings.Contains(f.Problem, e.problem) && strings.Contains(f.Remedy, e.remedy)
}

// TestJudge breaks one thing at a time. It expects this one finding, and no other.
func TestJudge(t *testing.T) {
	down := func(f *Facts) { f.Manager.Status = appsv1.DeploymentStatus{} }
	pending := cmapi.CertificateRequestCondition{Type: cmapi.CertificateRequestConditionReady,
		Reason: cmapi.CertificateRequestReasonPending}
	for name, test := range map[string]struct {
		broken func(*testing.T, *Facts)
		want   expected
	}{
		"an old cluster": {func(_ *testing.T, f *Facts) { f.Version = "v1.34.9" },
			expected{Error, Kubernetes, "Kubernetes v1.34.9", "upgrade the cluster"}},

		"no service accounts": {func(_ *testing.T, f *Facts) { f.Accounts = nativeControllers[:1] },
			expected{Error, Controllers, "no service account replicaset-controller, daemon-set-controller",
				"--use-service-account-credentials=true"}},
		"kube-controller-manager without the flag": {func(_ *testing.T, f *Facts) {
			f.ControllerManagers = []corev1.Pod{controllerManager("--leader-elect=true")}
		}, expected{Error, Controllers, "pod kube-system/kcm runs", "--use-service-account-credentials=true"}},
		"the flag is false": {func(_ *testing.T, f *Facts) {
			f.ControllerManagers = []corev1.Pod{controllerManager("--use-service-account-credentials=false")}
		}, expected{Error, Controllers, "pod kube-system/kcm runs", "--use-service-account-credentials=true"}},

		"a node with an old containerd": {func(_ *testing.T, f *Facts) {
			f.Nodes = append(f.Nodes, node("two", "v1.36.3", "containerd://1.7.27"))
		}, expected{Warning, Images, "on 1 of 2 nodes", "containerd 2.1"}},
		"no image volumes": {func(_ *testing.T, f *Facts) { f.VolumesRefused = "spec.volumes[0].image: Forbidden" },
			expected{Warning, Images, "Forbidden", "ImageVolume"}},

		"a webhook on pods that is gone": {func(_ *testing.T, f *Facts) {
			f.Hooks = []ForeignHook{foreign(pods(admissionv1.Update), nil)}
		}, expected{Error, Admission, "calls Service guard/guard, which has no ready endpoint", "delete the webhook configuration guard"}},
		"a webhook on what a running pod is given": {func(_ *testing.T, f *Facts) {
			rules := pods(admissionv1.OperationAll)
			rules[0].Resources = []string{"pods/*"}
			f.Hooks = []ForeignHook{foreign(rules, nil)}
		}, expected{Error, Admission, "guard", "guard"}},

		"an issuer that does not exist": {func(_ *testing.T, f *Facts) { f.Issuers = f.Issuers[:0]; f.Certificates = f.Certificates[:1] },
			expected{Warning, Certificate, "issuer not found: there is no Issuer", "create Issuer"}},
		"an issuer that does not exist, and no certificate": {func(_ *testing.T, f *Facts) {
			f.certificate("stayput-webhook").Spec.IssuerRef.Name = "gone"
			f.unissued(pending)
		}, expected{Error, Certificate, "issuer not found: there is no Issuer gone", "create Issuer gone"}},
		"an issuer that is not ready": {func(_ *testing.T, f *Facts) {
			f.unissued(pending)
			for i := range f.Issuers {
				if f.Issuers[i].Name == "stayput-ca" {
					f.Issuers[i].Status.Conditions[0] = cmapi.IssuerCondition{Type: cmapi.IssuerConditionReady, Status: cmmeta.ConditionFalse,
						Message: `secret "stayput-ca" not found`}
				}
			}
		}, expected{Error, Certificate, `Issuer stayput-ca is not ready: secret "stayput-ca" not found`, "correct Issuer stayput-ca"}},
		"a request that was denied": {func(_ *testing.T, f *Facts) {
			f.unissued(cmapi.CertificateRequestCondition{Type: cmapi.CertificateRequestConditionDenied, Status: cmmeta.ConditionTrue,
				Message: "no policy"})
		}, expected{Error, Certificate, "was denied by an approver: no policy", "delete certificaterequest stayput-webhook-1"}},
		"a request that is invalid": {func(_ *testing.T, f *Facts) {
			f.unissued(cmapi.CertificateRequestCondition{Type: cmapi.CertificateRequestConditionInvalidRequest, Status: cmmeta.ConditionTrue,
				Message: "no name"})
		}, expected{Error, Certificate, "is invalid: no name", "correct the Certificate"}},
		"a request that failed": {func(_ *testing.T, f *Facts) {
			f.unissued(cmapi.CertificateRequestCondition{Type: cmapi.CertificateRequestConditionReady, Reason: cmapi.CertificateRequestReasonFailed,
				Message: "403"})
		}, expected{Error, Certificate, "the issuer could not sign CertificateRequest stayput-webhook-1: 403", "correct the issuer"}},
		"a request without approval": {func(_ *testing.T, f *Facts) { f.unissued(cmapi.CertificateRequestCondition{}) },
			expected{Error, Certificate, "was not approved", "start the approver"}},
		"a request that the issuer is busy with": {func(_ *testing.T, f *Facts) {
			f.unissued(cmapi.CertificateRequestCondition{Type: cmapi.CertificateRequestConditionReady, Reason: cmapi.CertificateRequestReasonPending,
				Message: "the order is pending"})
		}, expected{Error, Certificate, "the order is pending", "describe certificaterequest stayput-webhook-1"}},
		"cert-manager does not run": {func(_ *testing.T, f *Facts) { f.unissued(cmapi.CertificateRequestCondition{}); f.Requests = nil },
			expected{Error, Certificate, "Secret does not exist", "cert-manager's controller runs"}},
		"a certificate that expired": {func(_ *testing.T, f *Facts) {
			f.certificate("stayput-webhook").Status.NotAfter = &metav1.Time{Time: f.Now.Add(-time.Hour)}
		}, expected{Error, Certificate, "expired at", "cert-manager's controller runs"}},
		"a Certificate that was deleted": {func(_ *testing.T, f *Facts) { f.Certificates = nil },
			expected{Error, Certificate, "takes its CA from Certificate stayput-system/stayput-webhook, which does not exist", again}},
		"a CA that is not injected": {func(_ *testing.T, f *Facts) { f.bundles(nil) },
			expected{Error, Certificate, "the CA has not been injected: mutating webhook edits.stayput.dev", "cainjector runs"}},
		"a CA that is not to be injected": {func(_ *testing.T, f *Facts) { f.bundles(nil); f.Mutating.Annotations = nil },
			expected{Error, Certificate, "has no caBundle, and its configuration no annotation", "certificates.caBundle"}},
		"a CA that the managers have not written": {func(_ *testing.T, f *Facts) {
			f.bundles(nil)
			f.Mutating.Annotations, f.Validating.Annotations = nil, nil
			f.Manager.Spec.Template.Spec.Containers[0].Args = []string{"manager", "--generate-certificates"}
		}, expected{Error, Certificate, "the managers have not written the CA", "logs deployment/stayput"}},
		"another CA": {func(t *testing.T, f *Facts) {
			_, other := certificateFor(t, ownHost, f.Now.Add(time.Hour))
			f.bundles(other)
		}, expected{Error, Certificate, "does not trust the certificate of mutating webhook edits.stayput.dev", "restart cert-manager's"}},
		"another CA, by hand": {func(t *testing.T, f *Facts) {
			_, other := certificateFor(t, ownHost, f.Now.Add(time.Hour))
			f.bundles(other)
			f.byHand(t, ownHost)
		}, expected{Error, Certificate, "unknown authority", "set certificates.caBundle"}},
		"a certificate for another host": {func(t *testing.T, f *Facts) { f.byHand(t, "other") },
			expected{Error, Certificate, "not " + ownHost, "renew the certificate"}},

		"no managers": {func(_ *testing.T, f *Facts) { f.Manager = nil },
			expected{Error, Managers, "there is no Deployment stayput-system/stayput", "--stayput-namespace"}},
		"managers scaled to 0": {func(_ *testing.T, f *Facts) { down(f); f.Manager.Spec.Replicas = ptr.To[int32](0) },
			expected{Error, Managers, "is scaled to 0", "scale deployment stayput --replicas=2"}},
		"managers that are refused": {func(_ *testing.T, f *Facts) {
			down(f)
			f.Manager.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "violates PodSecurity"}}
		}, expected{Error, Managers, "violates PodSecurity", "let the policy or quota"}},
		"an image that cannot be pulled": {func(_ *testing.T, f *Facts) { down(f); f.Pods = []corev1.Pod{waiting("ImagePullBackOff")} },
			expected{Error, Managers, "cannot pull image registry.example/stayput:v1", "image.repository"}},
		"the next image cannot be pulled": {func(_ *testing.T, f *Facts) {
			f.Manager.Status.UpdatedReplicas, f.Pods = 1, []corev1.Pod{waiting("ErrImagePull")}
		}, expected{Warning, Managers, "managers of another revision do not start", "image.repository"}},
		"no Secret": {func(_ *testing.T, f *Facts) { down(f); f.Pods = []corev1.Pod{waiting("ContainerCreating")} },
			expected{Error, Managers, "have not been created", "Secret stayput-system/stayput-webhook"}},
		"a manager that crashes": {func(_ *testing.T, f *Facts) {
			f.Manager.Status.AvailableReplicas = 1
			f.Pods = []corev1.Pod{waiting("CrashLoopBackOff")}
		},
			expected{Warning, Managers, "1 of 2 managers", "logs stayput-1 --previous"}},
		"no room": {func(_ *testing.T, f *Facts) {
			down(f)
			f.Pods = []corev1.Pod{{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes"}}}}}
		}, expected{Error, Managers, "0/3 nodes", "make room"}},
		"a manager that is not ready": {func(_ *testing.T, f *Facts) {
			down(f)
			f.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "stayput-1"}}}
		},
			expected{Error, Managers, "runs and is not ready", "logs stayput-1"}},
		"no pods yet": {func(_ *testing.T, f *Facts) { down(f) }, expected{Error, Managers, "are starting", "wait a minute"}},
		"no Lease": {func(_ *testing.T, f *Facts) { f.Lease = nil },
			expected{Error, Managers, "there is no Lease", "logs deployment/stayput"}},
		"no leader": {func(_ *testing.T, f *Facts) { f.Lease = lease(f.Now.Add(-2 * time.Minute)) },
			expected{Error, Managers, "renewed 2m0s ago", "clocks of nodes"}},

		"a right that was taken": {func(_ *testing.T, f *Facts) { f.Denied = []string{"patch pods"} },
			expected{Error, Rights, "may not patch pods", "ClusterRole"}},
		"no ConfigMap for fallbacks": {func(_ *testing.T, f *Facts) { f.Fallbacks = false },
			expected{Error, Rights, "no ConfigMap stayput-system/stayput-fallbacks", again}},
		"no FlowSchema": {func(_ *testing.T, f *Facts) { f.Schemas = f.Schemas[:1] },
			expected{Warning, Rights, "FlowSchema stayput-leader-election is missing", again}},

		"no mutating webhooks": {func(_ *testing.T, f *Facts) { f.Mutating = nil },
			expected{Error, Webhooks, "there is no MutatingWebhookConfiguration stayput", again}},
		"no validating webhooks": {func(_ *testing.T, f *Facts) { f.Validating = nil },
			expected{Error, Webhooks, "there is no ValidatingWebhookConfiguration stayput", again}},
		"one webhook is missing": {func(_ *testing.T, f *Facts) { f.Validating.Webhooks = f.Validating.Webhooks[1:] },
			expected{Error, Webhooks, "lacks edits.stayput.dev", again}},
		"webhooks of another namespace": {func(_ *testing.T, f *Facts) {
			f.Unread[Certificate] = nil
			f.Mutating.Webhooks[2].ClientConfig.Service.Namespace = "other"
			_, bundle := certificateFor(t, "stayput-webhook.other.svc", f.Now.Add(time.Hour))
			f.Mutating.Webhooks[2].ClientConfig.CABundle = bundle
			f.Requests = nil
		}, expected{Error, Webhooks, "mutating webhook kubelet-reports.stayput.dev calls no Service of namespace stayput-system", again}},
		"no Service": {func(_ *testing.T, f *Facts) { f.Service = nil },
			expected{Error, Webhooks, "Service that does not exist, so every update is native: stayput-system/stayput-webhook", again}},
		"a Service that selects nothing": {func(_ *testing.T, f *Facts) { f.Endpoints = false },
			expected{Error, Webhooks, "has no ready endpoint", "select the managers' pods"}},
		"a firewall": {func(_ *testing.T, f *Facts) { f.Answers[3].Err = errors.New("i/o timeout") },
			expected{Error, Webhooks, "i/o timeout", "firewalls"}},
		"a manager that ends": {func(_ *testing.T, f *Facts) { f.Answers[3].Err = errors.New("connect: connection refused") },
			expected{Error, Webhooks, "connection refused", "a manager is not ready"}},
		"managers that are not ready by now": {func(_ *testing.T, f *Facts) { f.Answers[3].Err = errors.New("no endpoints available") },
			expected{Error, Webhooks, "no endpoints available", "a manager is not ready"}},
		"managers of another version": {func(_ *testing.T, f *Facts) { f.Answers[3].Err = errors.New("404 page not found") },
			expected{Error, Webhooks, "validating webhook edits.stayput.dev does not answer", "another version"}},

		"a write that passes by": {func(_ *testing.T, f *Facts) { f.Write.Answered = false },
			expected{Error, Passing, "passed without an answer", "failed calling webhook"}},
		"native writes that passed by": {func(_ *testing.T, f *Facts) { f.Bypassed = []string{"Deployment shop/web: a"} },
			expected{Warning, Passing, "Deployment shop/web: a", "--use-service-account-credentials"}},
		"a write that is refused": {func(_ *testing.T, f *Facts) { f.Write = DryRun{"shop", false, errors.New("no")} },
			expected{Unchecked, Passing, "was refused: no", "who may create Deployments"}},

		"a policy is missing": {func(_ *testing.T, f *Facts) { f.PolicyNames = f.PolicyNames[1:] },
			expected{Error, Own, "stayput-namespaces", again}},
		"a policy without binding": {func(_ *testing.T, f *Facts) { f.PolicyBindings = f.PolicyBindings[1:] },
			expected{Error, Own, "not in force", again}},
		"a policy that only warns": {func(_ *testing.T, f *Facts) { f.act("stayput-marks", admissionv1.Warn) },
			expected{Error, Own, "stayput-marks", again}},
		"the advice does not warn": {func(_ *testing.T, f *Facts) { f.act(advice, admissionv1.Audit) }, expected{Error, Own, advice, again}},

		"a label that is no mode": {func(_ *testing.T, f *Facts) { f.Namespaces = append(f.Namespaces, namespace("till", "inplace")) },
			expected{Warning, Namespaces, "namespace till has the label stayput.dev/update=inplace", "set it to in-place, in-place-only, or"}},
		"a label on kube-system": {func(_ *testing.T, f *Facts) {
			f.Namespaces = append(f.Namespaces, namespace("kube-system", "in-place"))
		},
			expected{Warning, Namespaces, "Stayput never manages", "kubectl label namespace kube-system stayput.dev/update-"}},
		"a label on an excluded namespace": {func(_ *testing.T, f *Facts) {
			f.Manager.Spec.Template.Spec.Containers[0].Args = []string{"manager", "--excluded-namespaces=a,till"}
			f.Namespaces = append(f.Namespaces, namespace("till", "in-place"))
		}, expected{Warning, Namespaces, "namespace till", "kubectl label namespace till stayput.dev/update-"}},
		"a workload's label that is no mode": {func(_ *testing.T, f *Facts) { f.Misplaced = []Workload{{"Deployment", "shop", "web", "never"}} },
			expected{Warning, Namespaces, "Deployment shop/web has the label stayput.dev/update=never", "recreate"}},
		"a workload's label without the namespace's": {func(_ *testing.T, f *Facts) {
			f.Misplaced = []Workload{{"DaemonSet", "till", "a", "in-place"}}
		},
			expected{Warning, Namespaces, "its namespace has no such label", "kubectl label namespace till stayput.dev/update=in-place"}},

		"nodes that may not be read": {func(_ *testing.T, f *Facts) { f.Unread[Images] = errors.New("nodes is forbidden") },
			expected{Unchecked, Images, "nodes is forbidden", "cluster-admin"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			test.broken(t, f)
			if found := Judge(*f).Findings; len(found) != 1 || !test.want.is(found[0]) {
				t.Errorf("it finds %+v\nwant %+v", found, test.want)
			}
		})
	}
}

// act gives the binding of the policy another action.
func (f *Facts) act(policy string, action admissionv1.ValidationAction) {
	for i := range f.PolicyBindings {
		if f.PolicyBindings[i].Spec.PolicyName == policy {
			f.PolicyBindings[i].Spec.ValidationActions = []admissionv1.ValidationAction{action}
		}
	}
}

// byHand has the managers show a certificate that cert-manager has not issued.
func (f *Facts) byHand(t *testing.T, host string) {
	_, shown := certificateFor(t, host, f.Now.Add(time.Hour))
	chain, err := cert.ParseCertsPEM(shown)
	if err != nil {
		t.Fatal(err)
	}
	f.Mutating.Annotations, f.Validating.Annotations, f.CertificateFacts = nil, nil, CertificateFacts{}
	if host != ownHost {
		f.bundles(shown)
	}
	for _, hook := range f.hooks() {
		f.Served = append(f.Served, Served{Hook: hook.Name, Chain: chain})
	}
}

func controllerManager(flag string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kcm"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Command: []string{"/usr/local/bin/kube-controller-manager", flag}}}}}
}

func foreign(rules []admissionv1.RuleWithOperations, selector *metav1.LabelSelector) ForeignHook {
	return ForeignHook{"guard", admissionv1.ValidatingWebhook{Name: "guard.example", Rules: rules, NamespaceSelector: selector,
		ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "guard", Name: "guard"}}}}
}

// TestJudgeFindsNothing has clusters that are not like the others, and are right.
func TestJudgeFindsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		other func(*Facts)
		about Topic
		says  string
	}{
		"as installed":        {func(*Facts) {}, Certificate, "valid until"},
		"on 1.35 of a vendor": {func(f *Facts) { f.Version = "v1.35.2-gke.1200" }, Kubernetes, "v1.35.2-gke.1200"},
		"with the flag": {func(f *Facts) {
			f.ControllerManagers = []corev1.Pod{controllerManager("--use-service-account-credentials")}
		}, Controllers, "runs with --use-service-account-credentials"},
		"with no sign of the flag": {func(*Facts) {}, Controllers, "the first update shows"},
		"another webhook that may fail": {func(f *Facts) {
			hook := foreign(pods(admissionv1.Create), nil)
			hook.FailurePolicy = ptr.To(admissionv1.Ignore)
			f.Hooks = []ForeignHook{hook}
		}, Admission, "guard"},
		"another webhook that runs": {func(f *Facts) {
			f.Hooks, f.Backends["guard/guard"] = []ForeignHook{foreign(pods(admissionv1.Create), nil)}, true
		}, Admission, "guard"},
		"another webhook, for deletions": {func(f *Facts) { f.Hooks = []ForeignHook{foreign(pods(admissionv1.Delete), nil)} }, Admission, "none"},
		"another webhook, elsewhere": {func(f *Facts) {
			f.Hooks = []ForeignHook{foreign(pods(admissionv1.Update), &metav1.LabelSelector{MatchLabels: map[string]string{
				corev1.LabelMetadataName: "default"}})}
		}, Admission, "none"},
		"a certificate by hand": {func(f *Facts) {
			f.Mutating.Annotations, f.Validating.Annotations, f.CertificateFacts = nil, nil, CertificateFacts{}
		}, Certificate, "helm test"},
		"an issuer of another group": {func(f *Facts) {
			f.certificate("stayput-webhook").Spec.IssuerRef = cmmeta.ObjectReference{Group: "example.com", Kind: "Far", Name: "far"}
		}, Certificate, "valid until"},
		"no namespace labelled": {func(f *Facts) { f.Namespaces, f.Write = f.Namespaces[:3], DryRun{} }, Namespaces,
			"no namespace is labelled yet"},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			test.other(f)
			report := Judge(*f)
			at := slices.IndexFunc(report.Passed, func(each Passed) bool { return each.About == test.about })
			if len(report.Findings) > 0 || at < 0 || !strings.Contains(report.Passed[at].Says, test.says) {
				t.Errorf("it must find nothing, and say %q of %s; it finds %+v and says %+v", test.says, test.about, report.Findings, report.Passed)
			}
		})
	}
}

// TestJudgeBeforeInstallation checks that only the cluster is judged where nothing of Stayput is.
func TestJudgeBeforeInstallation(t *testing.T) {
	f := healthy(t)
	f.InstallationFacts = InstallationFacts{CertificateFacts: CertificateFacts{CertManager: true}}
	if report := Judge(*f); report.Installed || len(report.Findings) > 0 || len(report.Passed) != 5 {
		t.Errorf("it reports %+v", report)
	}
	f.CertManager = false
	want := expected{Warning, Certificate, "does not have cert-manager", "certificates.secretName"}
	if found := Judge(*f).Findings; len(found) != 1 || !want.is(found[0]) {
		t.Errorf("without cert-manager it finds %+v", found)
	}
}

// TestARequestToAnotherIssuerSaysNothing has a request that was denied, to an issuer that the Certificate no longer names.
func TestARequestToAnotherIssuerSaysNothing(t *testing.T) {
	f := healthy(t)
	old := f.Requests[0].DeepCopy()
	old.CreationTimestamp, old.Spec.IssuerRef.Name = metav1.NewTime(f.Now), "gone"
	old.Status.Conditions = []cmapi.CertificateRequestCondition{{Type: cmapi.CertificateRequestConditionDenied, Status: cmmeta.ConditionTrue}}
	f.Requests = append(f.Requests, *old)
	if found := Judge(*f).Findings; len(found) > 0 {
		t.Errorf("it finds %+v", found)
	}
}

// TestWithoutManagersNothingElseIsWrong checks that what follows from one finding is not found again.
func TestWithoutManagersNothingElseIsWrong(t *testing.T) {
	f := healthy(t)
	f.Manager.Status = appsv1.DeploymentStatus{}
	f.Lease, f.Endpoints, f.Answers, f.Write.Answered = nil, false, nil, false
	if found := Judge(*f).Findings; len(found) != 1 || found[0].About != Managers {
		t.Errorf("it finds %+v", found)
	}
}

// TestRightsAreThoseOfTheManifests checks that a check asks for each right that the managers have, and for no other.
func TestRightsAreThoseOfTheManifests(t *testing.T) {
	granted := map[right]bool{}
	grant := func(rules []rbacv1.PolicyRule, own bool) {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				kind, sub, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					granted[right{rule.APIGroups[0], kind, sub, verb, own, strings.Join(rule.ResourceNames, "")}] = true
				}
			}
		}
	}
	for _, role := range manifests[rbacv1.ClusterRole](t, "ClusterRole") {
		if role.Name == Deployment { // no binding in manifests grants the other one
			grant(role.Rules, false)
		}
	}
	grant(manifest[rbacv1.Role](t, "Role").Rules, true)
	for _, each := range needed() {
		if !granted[each] {
			t.Errorf("manifests do not grant %+v", each)
		}
		delete(granted, each)
	}
	for each := range granted {
		t.Errorf("no check asks for %+v", each)
	}
}

// TestNamesAreThoseOfTheManifests checks the lists of what must be installed.
func TestNamesAreThoseOfTheManifests(t *testing.T) {
	f := healthy(t)
	var mutating, validating, policies []string
	for _, each := range f.Mutating.Webhooks {
		mutating = append(mutating, each.Name)
	}
	for _, each := range f.Validating.Webhooks {
		validating = append(validating, each.Name)
	}
	for _, each := range manifests[admissionv1.ValidatingAdmissionPolicy](t, "ValidatingAdmissionPolicy") {
		policies = append(policies, each.Name)
	}
	for what, lists := range map[string][2][]string{
		"mutating webhooks": {mutating, mutatingHooks}, "validating webhooks": {validating, validatingHooks}, "policies": {policies, Policies},
	} {
		slices.Sort(lists[0])
		if want := slices.Sorted(slices.Values(lists[1])); !slices.Equal(lists[0], want) {
			t.Errorf("the manifests have the %s %q, and the check %q", what, lists[0], want)
		}
	}
}
