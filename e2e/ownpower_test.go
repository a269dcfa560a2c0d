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

// ownPower checks what a client with the token of Stayput's service account can do: that each policy is in force on an API server. The
// tests of manifests/cel have more requests. Here the permitted ones only show that the API server does not refuse them for another reason.
func ownPower(t *testing.T) {
	together(t, map[string]func(*testing.T){
		"pods":               powerOverPods,
		"pods without label": powerWithoutLabel,
		"status":             powerOverStatus,
		"revisions":          powerOverRevisions,
		"pre-pull pods":      powerOverPrePullPods,
		"resources":          powerOverResources,
		"system namespaces":  powerOverSystem,
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
	firstImage  = "/spec/containers/0/image"
	firstOwner  = "/metadata/ownerReferences/0"
	anyLabel    = "/metadata/labels/anything"
	annotations = "/metadata/annotations"
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

// stranger returns a reference to an owner that does not exist. The garbage collector deletes objects whose owners do not exist.
func stranger(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: "00000000-0000-0000-0000-000000000000"}
}

func powerOverPods(t *testing.T) {
	e := newEstate(t, labelled)
	e.granted(map[string]error{
		"an image":            e.patch(e.pod, firstImage, appImage("v2")),
		"a label":             e.patch(e.pod, anyLabel, "x"),
		"annotations":         e.patch(e.pod, annotations, anything),
		"another ReplicaSet":  e.patch(e.pod, firstOwner+"/uid", "another"),
		"one more toleration": e.patch(e.pod, "/spec/tolerations/-", corev1.Toleration{Operator: corev1.TolerationOpExists}),
	})
	e.denied(map[string]error{
		"a deadline":               e.patch(e.pod, "/spec/activeDeadlineSeconds", 1),
		"a finalizer":              e.patch(e.pod, "/metadata/finalizers", []string{"example.com/stays"}),
		"an owner of another kind": e.patch(e.pod, firstOwner+"/kind", "Deployment"),
		"one more owner":           e.patch(e.pod, "/metadata/ownerReferences/-", stranger("another")),
		"no owner":                 e.patch(e.pod, "/metadata/ownerReferences", nil),
		"its end":                  e.thief.Delete(t.Context(), e.pod, client.DryRunAll),
	})
}

// powerWithoutLabel checks that without the label only the writes are left that an update needs to fall back.
func powerWithoutLabel(t *testing.T) {
	e := newEstate(t, unlabelled)
	e.granted(map[string]error{
		"the mark of a ReplicaSet":         e.merge(e.set, metadata("labels", map[string]string{renewedLabel: "1"})),
		"the mark of a ControllerRevision": e.merge(e.revision, metadata("labels", map[string]string{renewedLabel: "1"})),
		"what a ReplicaSet notes of others": e.merge(e.set,
			metadata("annotations", map[string]string{"deployment.kubernetes.io/max-replicas": "2"})),
	})
	e.denied(map[string]error{
		"taking a pod out":     e.mergeStatus(e.pod, takingOut()),
		"an image":             e.patch(e.pod, firstImage, appImage("v2")),
		"a label":              e.patch(e.pod, anyLabel, "x"),
		"annotations":          e.patch(e.pod, annotations, anything),
		"a toleration":         e.patch(e.pod, "/spec/tolerations/-", corev1.Toleration{Operator: corev1.TolerationOpExists}),
		"a mark":               e.patch(e.pod, annotations, map[string]string{moveAnnotation: "x"}),
		"another ReplicaSet":   e.patch(e.pod, firstOwner+"/uid", "another"),
		"replicas":             e.patch(e.set, "/spec/replicas", 2),
		"a Deployment's state": e.mergeStatus(e.deployment, status("observedGeneration", 1)),
		"a ReplicaSet":         e.createSet(e.namespace, 0, e.set.OwnerReferences),
		"a pod":                e.createPod(e.namespace, unchanged),
	})
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

// powerOverStatus checks writes of subresources, which can change metadata as well.
func powerOverStatus(t *testing.T) {
	e := newEstate(t, labelled, onNoNode)
	e.granted(map[string]error{
		"taking a pod out":     e.mergeStatus(e.pod, takingOut()),
		"a Deployment's state": e.mergeStatus(e.deployment, status("observedGeneration", 1)),
	})
	e.denied(map[string]error{
		"Ready":                     e.mergeStatus(e.pod, withReady("True", "", "")),
		"a pod's label":             e.mergeStatus(e.pod, metadata("labels", anything)),
		"a Deployment's owner":      e.mergeStatus(e.deployment, metadata("ownerReferences", []metav1.OwnerReference{stranger("gone")})),
		"a Deployment's annotation": e.mergeStatus(e.deployment, metadata("annotations", anything)),
		"a Deployment's finalizer":  e.mergeStatus(e.deployment, metadata("finalizers", []string{"example.com/stays"})),
	})
}

func powerOverRevisions(t *testing.T) {
	e := newEstate(t, labelled)
	e.granted(map[string]error{
		"an empty ReplicaSet":              e.createSet(e.namespace, 0, e.set.OwnerReferences),
		"replicas":                         e.patch(e.set, "/spec/replicas", 2),
		"the mark of a ReplicaSet":         e.merge(e.set, metadata("labels", map[string]string{updatingLabel: "1"})),
		"the mark of a ControllerRevision": e.merge(e.revision, metadata("labels", map[string]string{updatingLabel: "1"})),
	})
	e.denied(map[string]error{
		"a ReplicaSet with replicas":         e.createSet(e.namespace, 1, e.set.OwnerReferences),
		"a ReplicaSet without owner":         e.createSet(e.namespace, 0, nil),
		"a template":                         e.patch(e.set, "/spec/template/metadata/labels/anything", "x"),
		"a template's image":                 e.patch(e.set, "/spec/template/spec/containers/0/image", appImage("v2")),
		"minReadySeconds":                    e.patch(e.set, "/spec/minReadySeconds", 5),
		"a ReplicaSet's owner":               e.patch(e.set, firstOwner+"/uid", "another"),
		"a ReplicaSet's label":               e.patch(e.set, anyLabel, "x"),
		"a ReplicaSet's annotations":         e.patch(e.set, annotations, anything),
		"a ControllerRevision's number":      e.patch(e.revision, "/revision", 7),
		"a ControllerRevision's owner":       e.patch(e.revision, firstOwner+"/uid", "another"),
		"a ControllerRevision's label":       e.patch(e.revision, anyLabel, "x"),
		"a ControllerRevision's annotations": e.patch(e.revision, annotations, anything),
	})
	// The API server itself refuses changes of a ControllerRevision's data.
	if err := e.patch(e.revision, "/data", map[string]any{"spec": nil}); err == nil {
		t.Error("the data of a ControllerRevision was changed")
	}
}

// createSet makes a dry run of creating a ReplicaSet with the Deployment's template.
func (e *estate) createSet(namespace string, replicas int32, owners []metav1.OwnerReference) error {
	meta := metav1.ObjectMeta{Name: "another", Namespace: namespace, OwnerReferences: owners}
	set := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: *e.set.Spec.DeepCopy()}
	set.Spec.Replicas = &replicas
	return e.thief.Create(e.Context(), set, client.DryRunAll)
}

// powerOverPrePullPods creates pre-pull pods. The policies permit dry runs of any pod, so these are real creations. Their node is invented,
// so none of them runs.
func powerOverPrePullPods(t *testing.T) {
	e := newEstate(t, labelled)
	requests := map[string]error{}
	for what, change := range map[string]func(*corev1.Pod){
		"host path":     volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
		"Secret":        volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "any"}}),
		"Secret in env": func(p *corev1.Pod) { p.Spec.Containers[0].Env = secretVariable },
		"Secret as env": func(p *corev1.Pod) { p.Spec.Containers[0].EnvFrom = secretVariables },
		"token":         func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil },
		"network":       func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"processes":     func(p *corev1.Pod) { p.Spec.HostPID = true },
		"port": func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		},
		"command": func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"manager"} },
		"two containers": func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "two", Image: appImage("v1")})
		},
		"init container": func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: appImage("v1")}} },
		"probe":          func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = container("x", 80).ReadinessProbe },
		"priority":       func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" },
		"any node":       func(p *corev1.Pod) { p.Spec.NodeName = "" },
		"no owner":       func(p *corev1.Pod) { p.OwnerReferences = nil },
		"another owner":  func(p *corev1.Pod) { p.OwnerReferences = e.pod.OwnerReferences },
		"no label":       func(p *corev1.Pod) { p.Labels = nil },
	} {
		requests[what] = e.createPod(e.namespace, change)
	}
	e.denied(requests)
	e.granted(map[string]error{
		"a pre-pull pod":       e.createPod(e.namespace, unchanged),
		"a dry run of any pod": e.createPod(e.namespace, func(p *corev1.Pod) { p.Spec.HostNetwork, p.Labels = true, nil }, client.DryRunAll),
	})
}

func volume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "another", VolumeSource: source})
	}
}

var (
	anySecret      = corev1.LocalObjectReference{Name: "any"}
	secretVariable = []corev1.EnvVar{{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: anySecret, Key: "key"}}}}
	secretVariables = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: anySecret}}}
)

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

// powerOverSystem checks that the token permits nothing in system namespaces, whatever labels they have.
func powerOverSystem(t *testing.T) {
	e := newEstate(t, labelled)
	managers, err := clients.CoreV1().Pods(ownNamespace).List(t.Context(), managers)
	if err != nil || len(managers.Items) == 0 {
		t.Fatalf("managers: %d, %v", len(managers.Items), err)
	}
	e.denied(map[string]error{
		"a manager's image":           e.patch(&managers.Items[0], firstImage, appImage("v2")),
		"a pod in kube-system":        e.createPod(metav1.NamespaceSystem, unchanged, client.DryRunAll),
		"a pod beside the managers":   e.createPod(ownNamespace, unchanged, client.DryRunAll),
		"a ReplicaSet in kube-system": e.createSet(metav1.NamespaceSystem, 0, e.set.OwnerReferences),
	})
}

// unchanged leaves the pre-pull pod as it is.
func unchanged(*corev1.Pod) {}
