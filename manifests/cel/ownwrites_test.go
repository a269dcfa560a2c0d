package cel

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stayput/stayput/inplace"
)

// ownWrite is a change of an object by Stayput, and whether a policy refuses it in a labelled namespace and in another.
type ownWrite[T any] struct {
	change                func(T)
	refused, refusedOther bool
}

// checkOwnWrites makes each change of an object. The object is created with it if creates is true.
func checkOwnWrites[T runtime.Object](t *testing.T, policy string, creates bool, object func() T, writes map[string]ownWrite[T]) {
	t.Helper()
	compiled := compileRefusals(t, "../base/own-power.yaml", policy)
	for name, write := range writes {
		for namespace, refused := range map[*corev1.Namespace]bool{labelled: write.refused, {}: write.refusedOther} {
			var old runtime.Object
			if !creates {
				old = object()
			}
			sent := object()
			write.change(sent)
			if got := compiled.of(old, sent, namespace, byStayput); (got != "") != refused {
				t.Errorf("%s: %s in namespace %q: refused with %q, want refused: %t", policy, name, namespace.Name, got, refused)
			}
		}
	}
}

// stranger is an owner that does not exist. The garbage collector deletes objects whose owners do not exist.
var stranger = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}

func TestOwnWritesOfPods(t *testing.T) {
	checkOwnWrites(t, "stayput-own-pods", false, ownedPod, map[string]ownWrite[*corev1.Pod]{
		"nothing":                  {func(*corev1.Pod) {}, false, false},
		"an image":                 {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:2" }, false, true},
		"a label":                  {func(p *corev1.Pod) { p.Labels = map[string]string{"anything": "x"} }, false, true},
		"an annotation":            {func(p *corev1.Pod) { p.Annotations["anything"] = "x" }, false, true},
		"a mark":                   {func(p *corev1.Pod) { p.Annotations[inplace.AnnotationMove] = "x" }, false, true},
		"another ReplicaSet":       {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }, false, true},
		"a deadline":               {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) }, true, true},
		"a finalizer":              {func(p *corev1.Pod) { p.Finalizers = []string{"example.com/stays"} }, true, true},
		"an owner of another kind": {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Deployment" }, true, true},
		"one more owner":           {func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, stranger) }, true, true},
		"no owner":                 {func(p *corev1.Pod) { p.OwnerReferences = nil }, true, true},
	})
}

func TestOwnCreationsOfPods(t *testing.T) {
	first := func(change func(*corev1.Container)) ownWrite[*corev1.Pod] {
		return ownWrite[*corev1.Pod]{func(p *corev1.Pod) { change(&p.Spec.Containers[0]) }, true, true}
	}
	refused := func(change func(*corev1.Pod)) ownWrite[*corev1.Pod] { return ownWrite[*corev1.Pod]{change, true, true} }
	volume := func(source corev1.VolumeSource) ownWrite[*corev1.Pod] {
		return refused(func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "another", VolumeSource: source})
		})
	}
	secret := corev1.LocalObjectReference{Name: "any"}
	checkOwnWrites(t, "stayput-own-pre-pull-pods", true, newPrePullPod, map[string]ownWrite[*corev1.Pod]{
		"a pre-pull pod": {func(*corev1.Pod) {}, false, true},
		"host path":      volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
		"Secret":         volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "any"}}),
		"Secret in env": first(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: secret, Key: "key"}}}}
		}),
		"Secret as env": first(func(c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: secret}}}
		}),
		"token":          refused(func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil }),
		"network":        refused(func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		"processes":      refused(func(p *corev1.Pod) { p.Spec.HostPID = true }),
		"port":           first(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}} }),
		"command":        first(func(c *corev1.Container) { c.Args = []string{"manager"} }),
		"probe":          first(func(c *corev1.Container) { c.ReadinessProbe = &corev1.Probe{} }),
		"two containers": refused(func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "two"}) }),
		"init container": refused(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "init"}} }),
		"priority":       refused(func(p *corev1.Pod) { p.Spec.Priority = new(int32(2_000_001_000)) }),
		"any node":       refused(func(p *corev1.Pod) { p.Spec.NodeName = "" }),
		"no owner":       refused(func(p *corev1.Pod) { p.OwnerReferences = nil }),
		"another owner":  refused(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }),
		"no label":       refused(func(p *corev1.Pod) { delete(p.Labels, inplace.LabelPrePull) }),
	})
}

// replicaSet returns a ReplicaSet of a Deployment, without replicas.
func replicaSet() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d", Controller: new(true)}}},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}}}}
}

func TestOwnReplicaSets(t *testing.T) {
	type set = *appsv1.ReplicaSet
	checkOwnWrites(t, "stayput-own-replicasets", true, replicaSet, map[string]ownWrite[set]{
		"without replicas": {func(set) {}, false, true},
		"with replicas":    {func(s set) { s.Spec.Replicas = new(int32(1)) }, true, true},
		"without owner":    {func(s set) { s.OwnerReferences = nil }, true, true},
		"of another kind":  {func(s set) { s.OwnerReferences[0].Kind = "DaemonSet" }, true, true},
	})
	checkOwnWrites(t, "stayput-own-scaling", false, replicaSet, map[string]ownWrite[set]{
		"replicas":          {func(s set) { s.Spec.Replicas = new(int32(2)) }, false, true},
		"a mark":            {func(s set) { s.Labels[inplace.LabelUpdating] = "1" }, false, false},
		"a note":            {func(s set) { s.Annotations["deployment.kubernetes.io/max-replicas"] = "2" }, false, false},
		"a template":        {func(s set) { s.Spec.Template.Labels = map[string]string{"anything": "x"} }, true, true},
		"a template's pods": {func(s set) { s.Spec.Template.Spec.Containers[0].Image = "app:2" }, true, true},
		"minReadySeconds":   {func(s set) { s.Spec.MinReadySeconds = 5 }, true, true},
		"an owner":          {func(s set) { s.OwnerReferences[0].UID = "another" }, true, true},
		"a label":           {func(s set) { s.Labels["anything"] = "x" }, true, true},
		"an annotation":     {func(s set) { s.Annotations["anything"] = "x" }, true, true},
	})
}

func TestOwnControllerRevisions(t *testing.T) {
	type revision = *appsv1.ControllerRevision
	checkOwnWrites(t, "stayput-own-revisions", false, func() revision {
		return &appsv1.ControllerRevision{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevision"},
			ObjectMeta: metav1.ObjectMeta{Name: "agent-1", Labels: map[string]string{"app": "agent"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "d", Controller: new(true)}}}}
	}, map[string]ownWrite[revision]{
		"a mark":        {func(r revision) { r.Labels[inplace.LabelUpdating] = "1" }, false, false},
		"its number":    {func(r revision) { r.Revision = 7 }, true, true},
		"its data":      {func(r revision) { r.Data.Raw = []byte(`{}`) }, true, true},
		"an owner":      {func(r revision) { r.OwnerReferences[0].UID = "another" }, true, true},
		"a label":       {func(r revision) { r.Labels["anything"] = "x" }, true, true},
		"an annotation": {func(r revision) { r.Annotations = map[string]string{"anything": "x"} }, true, true},
	})
}

func TestOwnStatus(t *testing.T) {
	type deployment = *appsv1.Deployment
	checkOwnWrites(t, "stayput-own-status", false, func() deployment {
		return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	}, map[string]ownWrite[deployment]{
		"the status":    {func(d deployment) { d.Status.ObservedGeneration = 1 }, false, true},
		"an owner":      {func(d deployment) { d.OwnerReferences = []metav1.OwnerReference{stranger} }, true, true},
		"an annotation": {func(d deployment) { d.Annotations = map[string]string{"anything": "x"} }, true, true},
		"a finalizer":   {func(d deployment) { d.Finalizers = []string{"example.com/stays"} }, true, true},
	})
}
