package cel

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/readiness"
)

var (
	us       = &user.DefaultInfo{Name: "system:serviceaccount:stayput-system:stayput"}
	labelled = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}
)

// TestTolerationsOnlyGrow by our own hand, and only where the namespace has its label.
func TestTolerationsOnlyGrow(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pods")
	one, other := corev1.Toleration{Key: "one", Operator: corev1.TolerationOpExists}, corev1.Toleration{Key: "other", Effect: corev1.TaintEffectNoExecute}
	longer := other
	longer.TolerationSeconds = new(int64(7))
	for name, test := range map[string]struct {
		from, to []corev1.Toleration
		in       *corev1.Namespace
		refused  bool
	}{
		"the first":             {nil, []corev1.Toleration{one}, labelled, false},
		"one more":              {[]corev1.Toleration{one}, []corev1.Toleration{one, other}, labelled, false},
		"one before":            {[]corev1.Toleration{one}, []corev1.Toleration{other, one}, labelled, false},
		"none":                  {[]corev1.Toleration{one}, []corev1.Toleration{one}, &corev1.Namespace{}, false},
		"for longer":            {[]corev1.Toleration{other}, []corev1.Toleration{longer}, labelled, true},
		"instead":               {[]corev1.Toleration{one}, []corev1.Toleration{other}, labelled, true},
		"none any more":         {[]corev1.Toleration{one}, nil, labelled, true},
		"one without the label": {[]corev1.Toleration{one}, []corev1.Toleration{one, other}, &corev1.Namespace{}, true},
	} {
		old := ownedPod()
		sent := old.DeepCopy()
		old.Spec.Tolerations, sent.Spec.Tolerations = test.from, test.to
		if refused := policy.of(old, sent, test.in, us); (refused != "") != test.refused || test.refused && !strings.Contains(refused, "only adds to the tolerations") {
			t.Errorf("%s: refused with %q", name, refused)
		}
	}
	hostile := ownedPod()
	hostile.Spec.HostNetwork = true
	if policy.of(ownedPod(), hostile, labelled, us) == "" {
		t.Error("another field of the spec may change")
	}
}

// ownedPod is one of a ReplicaSet, with a mark of ours.
func ownedPod() *corev1.Pod {
	controls := true
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}}
	pod.Annotations = map[string]string{"stayput.dev/borrowed": "true"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: &controls}}
	return pod
}

// TestOwnPowerOverSidecars: of init containers nothing may change but the image of one that lives, in a labelled namespace, and elsewhere only of
// one that was left half-way. e2e/ownpower_test.go asks the same, and the rest, of an API server.
func TestOwnPowerOverSidecars(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pods")
	namespaces := map[bool]*corev1.Namespace{true: labelled, false: {}}
	half := func(hash string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			mark := readiness.Move{Hash: hash, Containers: map[string]readiness.MovedContainer{"mesh": {Image: "mesh:1", Sidecar: true}}}
			pod.Annotations = map[string]string{inplace.AnnotationMove: mark.String()}
		}
	}
	toMesh2 := func(pod *corev1.Pod) { pod.Spec.InitContainers[1].Image = "mesh:2" }
	for name, test := range map[string]struct {
		before, change func(*corev1.Pod)
		managed        bool
		want           string // part of why it is refused
	}{
		"nothing":             {func(*corev1.Pod) {}, func(*corev1.Pod) {}, true, ""},
		"a sidecar's image":   {func(*corev1.Pod) {}, toMesh2, true, ""},
		"an init container's": {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers[0].Image = "setup:2" }, true, "image of a sidecar"},
		"a sidecar's command": {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers[1].Args = []string{"x"} }, true, "image of a sidecar"},
		"its restart policy":  {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers[1].RestartPolicy = nil }, true, "image of a sidecar"},
		"another's restart policy": {func(*corev1.Pod) {}, func(pod *corev1.Pod) {
			pod.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}, true, "image of a sidecar"},
		"none any more":        {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, true, "image of a sidecar"},
		"one more":             {func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, func(pod *corev1.Pod) { pod.Spec.InitContainers = []corev1.Container{{Name: "x"}} }, true, "image of a sidecar"},
		"unlabelled":           {func(*corev1.Pod) {}, toMesh2, false, "left half-way"},
		"unlabelled, half-way": {half("b"), toMesh2, false, ""},
		"unlabelled, about to restart": {func(pod *corev1.Pod) {
			half("b")(pod)
			pod.Annotations[inplace.AnnotationRestarts] = "1-c"
		}, func(pod *corev1.Pod) {
			toMesh2(pod)
			delete(pod.Annotations, inplace.AnnotationRestarts)
		}, false, ""},
		"unlabelled, done": {half("a"), toMesh2, false, "left half-way"},
	} {
		t.Run(name, func(t *testing.T) {
			old := podWithSidecar()
			test.before(old)
			sent := old.DeepCopy()
			test.change(sent)
			got := policy.of(old, sent, namespaces[test.managed], us)
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("refused for %q, want %q", got, test.want)
			}
		})
	}
}

func podWithSidecar() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"pod-template-hash": "a"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-a", Controller: new(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}, InitContainers: []corev1.Container{
			{Name: "setup", Image: "setup:1"}, {Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}},
	}
}

func TestOwnResizes(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-resizes")
	const mark = `{"hash":"b","resize":{"app":{"from":{"cpuRequest":"100m"},"to":{"cpuRequest":"200m"},"at":null}}}`
	const others = "stayput changes nothing with the resources of a pod but those of its containers"
	for name, test := range map[string]struct {
		in           *corev1.Namespace
		before, both func(*corev1.Pod)
		after        func(*corev1.Pod)
		want         string
	}{
		"as marked":                     {in: labelled, after: cpu(0, "200m")},
		"back":                          {before: cpu(0, "200m"), after: cpu(0, "100m")},
		"a container that is not named": {in: labelled, after: cpu(1, "200m"), want: "stayput resizes only containers that its mark names"},
		"without a mark": {in: labelled, both: func(p *corev1.Pod) { p.Annotations = nil }, after: cpu(0, "200m"),
			want: "stayput resizes only containers that its mark names"},
		"moved already, without the label": {both: func(p *corev1.Pod) { p.Labels["pod-template-hash"] = "b" }, after: cpu(0, "200m"),
			want: "without the namespace's label stayput resizes only pods that it has left half-way"},
		"of a DaemonSet, without the label": {both: func(p *corev1.Pod) { p.Labels = nil }, after: cpu(0, "200m"),
			want: "without the namespace's label stayput resizes only pods that it has left half-way"},
		"of nobody":       {in: labelled, both: func(p *corev1.Pod) { p.OwnerReferences = nil }, after: cpu(0, "200m"), want: "stayput resizes only pods of Deployments and DaemonSets"},
		"a resize policy": {in: labelled, after: func(p *corev1.Pod) { p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{}} }, want: others},
		"of the pod":      {in: labelled, after: func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{} }, want: others},
		"a label":         {in: labelled, after: func(p *corev1.Pod) { p.Labels = map[string]string{} }, want: others},
	} {
		old := ownedPod()
		old.Labels, old.Annotations = map[string]string{"pod-template-hash": "a"}, map[string]string{inplace.AnnotationMove: mark}
		old.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "side"}}
		for i := range old.Spec.Containers {
			cpu(i, "100m")(old)
		}
		for _, change := range []func(*corev1.Pod){test.both, test.before} {
			if change != nil {
				change(old)
			}
		}
		if test.in == nil {
			test.in = &corev1.Namespace{}
		}
		sent := old.DeepCopy()
		test.after(sent)
		if got := policy.of(old, sent, test.in, us); test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func cpu(container int, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
}
