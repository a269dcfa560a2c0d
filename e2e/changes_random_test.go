//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/internal/templates"
)

// randomChanges checks edits at random. If the plan builder calls an edit possible, the API server must accept every write of it from
// Stayput's service account, and every write of its undo, and the pod must then equal a new one. SEED=1000 begins with another pair of
// templates.
func randomChanges(t *testing.T) {
	first, pairs := uint64(0), uint64(400)
	if given := os.Getenv("SEED"); given != "" {
		seed, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			t.Fatalf("SEED: %v", err)
		}
		first = seed
	}
	if testing.Short() {
		pairs = 40
	}
	l, possible := newLaboratory(t), 0
	for seed := first; seed < first+pairs; seed++ {
		if l.tries(seed) {
			possible++
		}
	}
	if t.Logf("%d of %d edits were made in place", possible, pairs); possible == 0 {
		t.Error("none was")
	}
}

// laboratory is a namespace with pods that never run, because no node matches their node selector. The result is valid for running pods as
// well: the API server validates an update of a pod by its old and new spec alone (ValidatePodUpdate in pkg/apis/core/validation reads
// neither node nor status). Pods with scheduling gates would not do, because more of them may change.
type laboratory struct {
	*testing.T
	namespace string
	stayput   client.Client
	// owners are a DaemonSet and a StatefulSet that Stayput does not manage, without pods of their own. They take turns, because Stayput's
	// service account may patch only pods that a workload controls.
	owners []metav1.OwnerReference
}

func newLaboratory(t *testing.T) *laboratory {
	t.Helper()
	l := &laboratory{T: t, namespace: createNamespace(t, labelled), stayput: newThief(t)}
	t.Cleanup(func() { deleteNamespace(t, l.namespace) })
	err := poll(t.Context(), func(ctx context.Context) error {
		_, err := clients.CoreV1().ServiceAccounts(l.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	template, _ := templates.Pair(0)
	apps := appsv1.SchemeGroupVersion
	l.owners = []metav1.OwnerReference{
		*metav1.NewControllerRef(l.daemonSet(template, metav1.CreateOptions{}), apps.WithKind("DaemonSet")),
		*metav1.NewControllerRef(l.statefulSet(template), apps.WithKind("StatefulSet")),
	}
	return l
}

// testFinalizer keeps the StatefulSet when it has been deleted.
const testFinalizer = "e2e.stayput.dev/kept"

// statefulSet returns a StatefulSet that is being deleted until the test ends. The controller of one that stays would release its pods,
// because of their names (ClaimObject in pkg/controller/controller_ref_manager.go).
func (l *laboratory) statefulSet(template corev1.PodTemplateSpec) *appsv1.StatefulSet {
	l.Helper()
	all := clients.AppsV1().StatefulSets(l.namespace)
	made, err := all.Create(l.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "random-", Labels: map[string]string{updateLabel: "native"},
			Finalizers: []string{testFinalizer}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{templates.AppLabel: templates.App}},
			Template: template,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if _, err := all.Patch(context.Background(), made.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{}); err != nil {
			l.Error(err)
		}
	})
	if err := all.Delete(l.Context(), made.Name, metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
	return made
}

// daemonSet returns a DaemonSet with that template, as the API server returns it.
func (l *laboratory) daemonSet(template corev1.PodTemplateSpec, options metav1.CreateOptions) *appsv1.DaemonSet {
	l.Helper()
	template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "none"}
	made, err := clients.AppsV1().DaemonSets(l.namespace).Create(l.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "random-", Labels: map[string]string{updateLabel: "native"}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{templates.AppLabel: templates.App}},
			Template: template,
		},
	}, options)
	if err != nil {
		l.Fatalf("a template that is none: %v\n%s", err, templates.Text(template))
	}
	return made
}

var onlyTried = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// stored returns the template as the API server stores it.
func (l *laboratory) stored(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	l.Helper()
	return l.daemonSet(template, onlyTried).Spec.Template
}

// tries reports whether the edit is possible. If it is, tries makes it, and undoes it.
func (l *laboratory) tries(seed uint64) bool {
	l.Helper()
	from, to := templates.Pair(seed)
	from, to = l.stored(from), l.stored(to)
	plan := l.planOf(from, to)
	if !plan.Possible() {
		return false
	}
	owner := l.owners[seed%uint64(len(l.owners))]
	pod := l.pod(owner, from, metav1.CreateOptions{})
	err := l.makes(plan, pod, l.pod(owner, to, onlyTried))
	if err == nil && templates.OneWay(from, to) == "" {
		err = l.makes(l.planOf(to, from), pod, l.pod(owner, from, onlyTried))
	}
	if err != nil {
		l.Errorf("seed %d, %s: %s: %v\nfrom %s\nto %s", seed, owner.Kind, plan, err, templates.Text(from), templates.Text(to))
	}
	l.forget(pod)
	return true
}

func (l *laboratory) planOf(from, to corev1.PodTemplateSpec) templates.Plan {
	l.Helper()
	plan, err := templates.PlanOf(from, to)
	if err != nil {
		l.Fatal(err)
	}
	return plan
}

// makes carries out the plan on the pod. The pod must then equal fresh, and the containers that the plan names must be the ones that
// restart.
func (l *laboratory) makes(plan templates.Plan, pod, fresh *corev1.Pod) error {
	if !plan.Possible() {
		return errors.New(plan.String())
	}
	before := pod.DeepCopy()
	for _, write := range plan.Writes(pod) {
		if err := l.write(pod, write); err != nil {
			return err
		}
	}
	return errors.Join(plan.Restarted(before, pod), templates.Same(pod, fresh))
}

// pod returns a pod of that template and owner, as the API server returns it.
func (l *laboratory) pod(owner metav1.OwnerReference, template corev1.PodTemplateSpec, options metav1.CreateOptions) *corev1.Pod {
	l.Helper()
	made, err := clients.CoreV1().Pods(l.namespace).Create(l.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "random-", Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: template.Spec,
	}, options)
	if err != nil {
		l.Fatalf("a pod: %v\n%s", err, templates.Text(template))
	}
	return made
}

// write makes the write, and sets pod to the API server's answer. A dry run would not do where several writes follow each other. No
// controller interferes with the pod.
func (l *laboratory) write(pod *corev1.Pod, write templates.Write) error {
	body, err := json.Marshal(write.Operations)
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.JSONPatchType, body)
	if write.Subresource != "" {
		return l.stayput.SubResource(write.Subresource).Patch(l.Context(), pod, patch)
	}
	return l.stayput.Patch(l.Context(), pod, patch)
}

// forget deletes the pod with a grace period of 0, because no kubelet runs it.
func (l *laboratory) forget(pod *corev1.Pod) {
	l.Helper()
	if err := clients.CoreV1().Pods(l.namespace).Delete(l.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		l.Error(err)
	}
}
