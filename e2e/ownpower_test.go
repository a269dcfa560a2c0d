//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownPower checks that each policy about Stayput's service account is in force on an API server, with its token. What the policies refuse
// and permit is tested in manifests/cel.
func ownPower(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"each policy": eachPolicy,
		"resources":   powerOverResources,
	})
}

// estate is a namespace with a Deployment and a DaemonSet, and a client with a stolen token of Stayput's service account, the thief.
type estate struct {
	*testing.T
	namespace string
	thief     client.Client

	deployment *appsv1.Deployment
	pod        *corev1.Pod
	set        *appsv1.ReplicaSet
	revision   *appsv1.ControllerRevision
}

// newEstate makes a namespace in which only the requests are tested. The pods need not run.
func newEstate(t *testing.T, labels map[string]string, options ...option) *estate {
	t.Helper()
	e := &estate{T: t, namespace: createNamespace(t, labels), thief: newThief(t)}
	t.Cleanup(func() { deleteNamespace(t, e.namespace) })
	var err error
	e.deployment, err = clients.AppsV1().Deployments(e.namespace).Create(t.Context(), web(1, options...), metav1.CreateOptions{})
	if err == nil {
		_, err = clients.AppsV1().DaemonSets(e.namespace).Create(t.Context(), agent(templated(onNode("none"))), metav1.CreateOptions{})
	}
	if err == nil {
		err = poll(t.Context(), e.find)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newThief returns a client with a token of Stayput's service account.
func newThief(t *testing.T) client.Client {
	t.Helper()
	accounts, request := clients.CoreV1().ServiceAccounts(ownNamespace), &authenticationv1.TokenRequest{}
	token, err := accounts.CreateToken(t.Context(), ownName, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("a token of Stayput's service account: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken, config.UserAgent = token.Status.Token, user
	thief, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return thief
}

// find waits for the objects that the native controllers create.
func (e *estate) find(ctx context.Context) error {
	pods, podsErr := clients.CoreV1().Pods(e.namespace).List(ctx, metav1.ListOptions{})
	sets, setsErr := clients.AppsV1().ReplicaSets(e.namespace).List(ctx, metav1.ListOptions{})
	revisions, revisionsErr := clients.AppsV1().ControllerRevisions(e.namespace).List(ctx, metav1.ListOptions{})
	if err := errors.Join(podsErr, setsErr, revisionsErr); err != nil {
		return err
	}
	if len(pods.Items) == 0 || len(sets.Items) == 0 || len(revisions.Items) == 0 {
		return fmt.Errorf("%d pods, %d ReplicaSets, %d ControllerRevisions", len(pods.Items), len(sets.Items), len(revisions.Items))
	}
	e.pod, e.set, e.revision = &pods.Items[0], &sets.Items[0], &revisions.Items[0]
	return nil
}

// byPolicy is in the API server's message when a policy refuses what RBAC permits.
const byPolicy = "ValidatingAdmissionPolicy 'stayput-own-"

// denied checks that a policy refuses each of these requests.
func (e *estate) denied(requests map[string]error) {
	e.Helper()
	for what, err := range requests {
		if err == nil || !strings.Contains(err.Error(), byPolicy) {
			e.Errorf("%s: not refused by a policy of Stayput's: %v", what, err)
		}
	}
}

// granted checks that each of these requests succeeds.
func (e *estate) granted(requests map[string]error) {
	e.Helper()
	for what, err := range requests {
		if err != nil {
			e.Errorf("%s: %v", what, err)
		}
	}
}

// patch makes a dry run of a JSON patch as the thief. The patch has one operation, which adds or replaces a value.
func (e *estate) patch(object client.Object, path string, value any) error {
	operation := []map[string]any{{"op": "add", "path": path, "value": value}}
	return e.thief.Patch(e.Context(), copied(object), e.body(types.JSONPatchType, operation), client.DryRunAll)
}

// merge makes a dry run of a strategic merge patch as the thief.
func (e *estate) merge(object client.Object, change any) error {
	return e.thief.Patch(e.Context(), copied(object), e.body(types.StrategicMergePatchType, change), client.DryRunAll)
}

// mergeStatus makes the same with subresource status.
func (e *estate) mergeStatus(object client.Object, change any) error {
	return e.thief.Status().Patch(e.Context(), copied(object), e.body(types.StrategicMergePatchType, change), client.DryRunAll)
}

func (e *estate) body(kind types.PatchType, change any) client.Patch {
	e.Helper()
	body, err := json.Marshal(change)
	if err != nil {
		e.Fatal(err)
	}
	return client.RawPatch(kind, body)
}

// copied returns a copy, because the client writes the answer into the object.
func copied(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }

const (
	firstImage = "/spec/containers/0/image"
)

// anything is a label or an annotation that has no meaning.
var anything = map[string]string{"anything": "x"}

// metadata returns a change of this field of the metadata.
func metadata(field string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{field: value}}
}

func status(field string, value any) map[string]any {
	return map[string]any{"status": map[string]any{field: value}}
}

// withReady returns a change of a pod's Ready.
func withReady(value, reason, message string) map[string]any {
	return status("conditions", []map[string]string{{"type": string(corev1.PodReady), "status": value, "reason": reason, "message": message}})
}

// takingOut is the Ready that takes a pod out of service.
func takingOut() map[string]any {
	return withReady("False", outReason, outMessage(time.Now().Add(time.Minute)))
}

// eachPolicy makes a write that each policy refuses, and where there is one that shows that the API server does not refuse it for another
// reason. Creations of pre-pull pods are real, because dry runs of any pod are permitted. Their node is invented, so none of them runs.
func eachPolicy(t *testing.T) {
	e := newEstate(t, labelled, onNoNode)
	managers, err := clients.CoreV1().Pods(ownNamespace).List(t.Context(), managers)
	if err != nil || len(managers.Items) == 0 {
		t.Fatalf("managers: %d, %v", len(managers.Items), err)
	}
	otherPod := func(p *corev1.Pod) { p.Spec.HostNetwork, p.Labels = true, nil }
	e.granted(map[string]error{
		"pods: an image":                 e.patch(e.pod, firstImage, appImage("v2")),
		"pre-pull-pods: one":             e.createPod(e.namespace, unchanged),
		"pre-pull-pods: a dry run":       e.createPod(e.namespace, otherPod, client.DryRunAll),
		"ready: taking a pod out":        e.mergeStatus(e.pod, takingOut()),
		"replicasets: an empty one":      e.createSet(e.namespace, 0, e.set.OwnerReferences),
		"scaling: replicas":              e.patch(e.set, "/spec/replicas", 2),
		"revisions: a mark":              e.merge(e.revision, metadata("labels", map[string]string{updatingLabel: "1"})),
		"status: that of the Deployment": e.mergeStatus(e.deployment, status("observedGeneration", 1)),
	})
	e.denied(map[string]error{
		"pods: a deadline":             e.patch(e.pod, "/spec/activeDeadlineSeconds", 1),
		"pre-pull-pods: a pod's end":   e.thief.Delete(t.Context(), e.pod, client.DryRunAll),
		"pre-pull-pods: the network":   e.createPod(e.namespace, func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		"ready: Ready":                 e.mergeStatus(e.pod, withReady("True", "", "")),
		"ready: a label":               e.mergeStatus(e.pod, metadata("labels", anything)),
		"replicasets: with replicas":   e.createSet(e.namespace, 1, e.set.OwnerReferences),
		"scaling: a template":          e.patch(e.set, "/spec/template/metadata/labels/anything", "x"),
		"revisions: a number":          e.patch(e.revision, "/revision", 7),
		"status: an annotation":        e.mergeStatus(e.deployment, metadata("annotations", anything)),
		"namespaces: a manager":        e.patch(&managers.Items[0], firstImage, appImage("v2")),
		"namespaces: in kube-system":   e.createPod(metav1.NamespaceSystem, unchanged, client.DryRunAll),
		"namespaces: beside a manager": e.createPod(ownNamespace, unchanged, client.DryRunAll),
	})
	// The API server itself refuses changes of a ControllerRevision's data.
	if err := e.patch(e.revision, "/data", map[string]any{"spec": nil}); err == nil {
		t.Error("the data of a ControllerRevision was changed")
	}
}

// onNoNode creates pods that no node takes, so that no kubelet writes their status.
func onNoNode(d *appsv1.Deployment) { d.Spec.Template.Spec.SchedulerName = "none" }

// powerOverResources checks that only the resources in the mark may be written, and only through subresource resize. In a labelled
// namespace the leader would at once revert a mark that belongs to no update. The scenarios of resizes show the use there.
func powerOverResources(t *testing.T) {
	e := newEstate(t, unlabelled, sized("10m", "32Mi"))
	more := map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": "app",
		"resources": map[string]any{"requests": map[string]string{"cpu": "20m"}}}}}}
	e.denied(map[string]error{"CPU": e.resize(more)})
	mark := moveAnnotation + `={"hash":"another","resize":{"app":{"from":{"cpuRequest":"20m"},"to":{"cpuRequest":"10m"},"at":null}}}`
	if _, _, err := kubectl(t.Context(), "", "-n", e.namespace, "annotate", "pod", e.pod.Name, mark); err != nil {
		t.Fatal(err)
	}
	e.granted(map[string]error{"CPU that a pod had": e.resize(more)})
}

// resize makes a dry run of a strategic merge patch with subresource resize, as the thief.
func (e *estate) resize(change any) error {
	return e.thief.SubResource("resize").Patch(e.Context(), copied(e.pod), e.body(types.StrategicMergePatchType, change), client.DryRunAll)
}

// createSet makes a dry run of creating a ReplicaSet with the Deployment's template.
func (e *estate) createSet(namespace string, replicas int32, owners []metav1.OwnerReference) error {
	meta := metav1.ObjectMeta{Name: "another", Namespace: namespace, OwnerReferences: owners}
	set := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: *e.set.Spec.DeepCopy()}
	set.Spec.Replicas = &replicas
	return e.thief.Create(e.Context(), set, client.DryRunAll)
}

// createPod creates a changed pre-pull pod as the thief.
func (e *estate) createPod(namespace string, change func(*corev1.Pod), options ...client.CreateOption) error {
	prePullPod := e.prePullPod()
	prePullPod.Namespace = namespace
	change(prePullPod)
	return e.thief.Create(e.Context(), prePullPod, options...)
}

// prePullPod returns a pre-pull pod of the Deployment, on a node that does not exist.
func (e *estate) prePullPod() *corev1.Pod {
	yes, no, noUser := true, false, int64(65532)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "web-pull-", Labels: map[string]string{prePullLabel: "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: e.deployment.UID,
				Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: "none", AutomountServiceAccountToken: &no, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: prePullLabel}},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &noUser,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "wait", Image: appImage("v1"), Args: []string{"wait"},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				VolumeMounts: []corev1.VolumeMount{{Name: "image", MountPath: "/image", ReadOnly: true}}}},
			Volumes: []corev1.Volume{{Name: "image",
				VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: appImage("v2")}}}},
		},
	}
}

// unchanged leaves the pre-pull pod as it is.
func unchanged(*corev1.Pod) {}
