package check

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/stayput/stayput/inplace"
)

const own = "stayput-system"

// ownHost is the host for which the webhooks' certificate must be.
const ownHost = "stayput-webhook." + own + ".svc"

// manifest returns the first object of that kind in manifests/base.
func manifest[T any](t *testing.T, kind string) *T {
	t.Helper()
	all := manifests[T](t, kind)
	if len(all) == 0 {
		t.Fatalf("manifests/base has no %s", kind)
	}
	return &all[0]
}

// manifests returns all objects of that kind in manifests/base.
func manifests[T any](t *testing.T, kind string) (all []T) {
	t.Helper()
	for _, document := range documents()[kind] {
		var object T
		if err := json.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// documents returns the objects of manifests/base as JSON, by their kinds.
var documents = sync.OnceValue(func() map[string][][]byte {
	byKind := map[string][][]byte{}
	files, _ := filepath.Glob("../../manifests/base/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			var is metav1.TypeMeta
			object, err := yaml.YAMLToJSON(document)
			if err = errors.Join(err, json.Unmarshal(object, &is)); err != nil {
				panic(fmt.Errorf("%s: %w", file, err))
			}
			byKind[is.Kind] = append(byKind[is.Kind], object)
		}
	}
	return byKind
})

// certificateFor returns a self-signed certificate for a host, in PEM too. It is its own CA bundle.
func certificateFor(t *testing.T, host string, until time.Time) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// healthy returns the facts of a cluster in which everything works, as the manifests install it.
func healthy(t *testing.T) *Facts {
	t.Helper()
	now := time.Now()
	_, certificate := certificateFor(t, ownHost, now.Add(time.Hour))
	f := &Facts{Namespace: own, Now: now, Unread: map[Topic]error{}}
	f.ClusterFacts = ClusterFacts{Version: "v1.36.3", Nodes: []corev1.Node{node("one", "v1.36.3", "containerd://2.1.4")},
		Accounts: nativeControllers, Backends: map[string]bool{},
		Namespaces: []corev1.Namespace{namespace("default", ""), namespace("kube-system", ""), namespace(own, ""), namespace("shop", "in-place")}}
	f.InstallationFacts = InstallationFacts{
		Manager: manifest[appsv1.Deployment](t, "Deployment"), Lease: lease(now),
		Mutating:   manifest[admissionv1.MutatingWebhookConfiguration](t, "MutatingWebhookConfiguration"),
		Validating: manifest[admissionv1.ValidatingWebhookConfiguration](t, "ValidatingWebhookConfiguration"),
		Service:    &corev1.Service{}, Endpoints: true, Write: DryRun{Namespace: "shop", Answered: true}, Fallbacks: true, Schemas: flowSchemas,
		PolicyNames: Policies, PolicyBindings: manifests[admissionv1.ValidatingAdmissionPolicyBinding](t, "ValidatingAdmissionPolicyBinding"),
		CertificateFacts: issued(t, certificate),
	}
	f.Manager.Status = appsv1.DeploymentStatus{AvailableReplicas: 2, UpdatedReplicas: 2}
	f.bundles(certificate)
	for _, hook := range f.hooks() {
		f.Answers = append(f.Answers, Answer{Hook: hook.Name})
	}
	return f
}

// bundles gives each webhook a CA.
func (f *Facts) bundles(bundle []byte) {
	for i := range f.Mutating.Webhooks {
		f.Mutating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for i := range f.Validating.Webhooks {
		f.Validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
}

// issued returns what cert-manager says when it has issued the certificate.
func issued(t *testing.T, pem []byte) CertificateFacts {
	t.Helper()
	facts := CertificateFacts{CertManager: true, Certificates: manifests[cmapi.Certificate](t, "Certificate"),
		Issuers: manifests[cmapi.Issuer](t, "Issuer")}
	for i := range facts.Certificates {
		facts.Certificates[i].Status.Conditions = []cmapi.CertificateCondition{
			{Type: cmapi.CertificateConditionReady, Status: cmmeta.ConditionTrue}}
	}
	for i := range facts.Issuers {
		facts.Issuers[i].Status.Conditions = []cmapi.IssuerCondition{{Type: cmapi.IssuerConditionReady, Status: cmmeta.ConditionTrue}}
	}
	webhook := slices.IndexFunc(facts.Certificates, func(each cmapi.Certificate) bool { return each.Name == "stayput-webhook" })
	facts.Requests = []cmapi.CertificateRequest{{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "stayput-webhook-1",
			Annotations: map[string]string{cmapi.CertificateNameKey: "stayput-webhook"}},
		Spec: cmapi.CertificateRequestSpec{IssuerRef: facts.Certificates[webhook].Spec.IssuerRef},
		Status: cmapi.CertificateRequestStatus{Certificate: pem, Conditions: []cmapi.CertificateRequestCondition{
			{Type: cmapi.CertificateRequestConditionApproved, Status: cmmeta.ConditionTrue},
			{Type: cmapi.CertificateRequestConditionReady, Status: cmmeta.ConditionTrue, Reason: cmapi.CertificateRequestReasonIssued}}},
	}}
	return facts
}

// unissued has the certificate not ready, and its request in this condition.
func (f *Facts) unissued(condition cmapi.CertificateRequestCondition) {
	certificate, request := f.certificate("stayput-webhook"), &f.Requests[0]
	certificate.Status.Conditions[0] = cmapi.CertificateCondition{Type: cmapi.CertificateConditionReady, Status: cmmeta.ConditionFalse,
		Message: "Issuing certificate as Secret does not exist"}
	request.Status = cmapi.CertificateRequestStatus{Conditions: []cmapi.CertificateRequestCondition{condition}}
	if condition.Type == cmapi.CertificateRequestConditionReady {
		request.Status.Conditions = append(request.Status.Conditions,
			cmapi.CertificateRequestCondition{Type: cmapi.CertificateRequestConditionApproved, Status: cmmeta.ConditionTrue})
	}
}

func (f *Facts) certificate(name string) *cmapi.Certificate {
	for i := range f.Certificates {
		if f.Certificates[i].Name == name {
			return &f.Certificates[i]
		}
	}
	return nil
}

func node(name, kubelet, runtime string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{
		KubeletVersion: kubelet, ContainerRuntimeVersion: runtime, OperatingSystem: "linux"}}}
}

func namespace(name, mode string) corev1.Namespace {
	labels := map[string]string{corev1.LabelMetadataName: name}
	if mode != "" {
		labels[inplace.LabelUpdate] = mode
	}
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func lease(renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: inplace.Lease},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}, HolderIdentity: ptr.To("manager")}}
}

// waiting returns a manager's pod whose container waits.
func waiting(reason string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stayput-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Image: "registry.example/stayput:v1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "certificate", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: "stayput-webhook"}}}}}}
}

// pods returns rules by which a webhook is called for pods.
func pods(operation admissionv1.OperationType) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{operation},
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}
}
