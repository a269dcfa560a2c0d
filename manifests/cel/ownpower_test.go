package cel

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/inplace/readiness"
)

var (
	byStayput = &user.DefaultInfo{Name: "system:serviceaccount:stayput-system:stayput"}
	labelled  = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}
)

// TestTolerationsOnlyGrow checks that Stayput may only add tolerations to pods, and only in a namespace with the label.
func TestTolerationsOnlyGrow(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pods")
	one := corev1.Toleration{Key: "one", Operator: corev1.TolerationOpExists}
	other := corev1.Toleration{Key: "other", Effect: corev1.TaintEffectNoExecute}
	longer := other
	longer.TolerationSeconds = new(int64(7))
	for name, test := range map[string]struct {
		from, to []corev1.Toleration
		in       *corev1.Namespace
		refused  bool
	}{
		"the first toleration":  {nil, []corev1.Toleration{one}, labelled, false},
		"one more at the end":   {[]corev1.Toleration{one}, []corev1.Toleration{one, other}, labelled, false},
		"one more at the start": {[]corev1.Toleration{one}, []corev1.Toleration{other, one}, labelled, false},
		"no change":             {[]corev1.Toleration{one}, []corev1.Toleration{one}, &corev1.Namespace{}, false},
		"tolerated for longer":  {[]corev1.Toleration{other}, []corev1.Toleration{longer}, labelled, true},
		"another instead":       {[]corev1.Toleration{one}, []corev1.Toleration{other}, labelled, true},
		"removed":               {[]corev1.Toleration{one}, nil, labelled, true},
		"one without the label": {[]corev1.Toleration{one}, []corev1.Toleration{one, other}, &corev1.Namespace{}, true},
	} {
		old := ownedPod()
		sent := old.DeepCopy()
		old.Spec.Tolerations, sent.Spec.Tolerations = test.from, test.to
		refused := policy.of(old, sent, test.in, byStayput)
		if (refused != "") != test.refused || test.refused && !strings.Contains(refused, "only adds to the tolerations") {
			t.Errorf("%s: refused with %q", name, refused)
		}
	}
	hostile := ownedPod()
	hostile.Spec.HostNetwork = true
	if policy.of(ownedPod(), hostile, labelled, byStayput) == "" {
		t.Error("another field of the spec may change")
	}
}

// ownedPod returns a pod of a ReplicaSet, with a mark of Stayput.
func ownedPod() *corev1.Pod {
	controls := true
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}}
	pod.Annotations = map[string]string{"stayput.dev/surge-pod": "true"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "r", Controller: &controls}}
	return pod
}

// TestOwnPowerOverSidecars checks that Stayput may change nothing in init containers but the images of sidecars, in a labelled namespace.
// In other namespaces it may change them only in partially patched pods. e2e/ownpower_test.go asks an API server about each policy.
func TestOwnPowerOverSidecars(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pods")
	namespaces := map[bool]*corev1.Namespace{true: labelled, false: {}}
	partial := func(back map[string]string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			mark := readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{"mesh": {Image: "mesh:1"}}, Back: back}
			pod.Annotations = map[string]string{inplace.AnnotationMove: mark.String()}
		}
	}
	toMesh2 := func(pod *corev1.Pod) { pod.Spec.InitContainers[1].Image = "mesh:2" }
	for name, test := range map[string]struct {
		before, change func(*corev1.Pod)
		managed        bool
		want           string // part of why it is refused
	}{
		"no change":         {func(*corev1.Pod) {}, func(*corev1.Pod) {}, true, ""},
		"a sidecar's image": {func(*corev1.Pod) {}, toMesh2, true, ""},
		"an init container's image": {func(*corev1.Pod) {}, func(pod *corev1.Pod) {
			pod.Spec.InitContainers[0].Image = "setup:2"
		}, true, "image of a sidecar"},
		"a sidecar's command": {func(*corev1.Pod) {}, func(pod *corev1.Pod) {
			pod.Spec.InitContainers[1].Args = []string{"x"}
		}, true, "image of a sidecar"},
		"a sidecar's restart policy": {func(*corev1.Pod) {}, func(pod *corev1.Pod) {
			pod.Spec.InitContainers[1].RestartPolicy = nil
		}, true, "image of a sidecar"},
		"an init container's restart policy": {func(*corev1.Pod) {}, func(pod *corev1.Pod) {
			pod.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}, true, "image of a sidecar"},
		"init containers removed": {func(*corev1.Pod) {}, func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, true, "image of a sidecar"},
		"init container added": {func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: "x"}}
		}, true, "image of a sidecar"},
		"unlabelled":                                       {func(*corev1.Pod) {}, toMesh2, false, "partially patched"},
		"unlabelled, partially patched":                    {partial(map[string]string{"app": "app:0", "mesh": "mesh:2"}), toMesh2, false, ""},
		"unlabelled, partially patched, another image":     {partial(map[string]string{"mesh": "mesh:0"}), toMesh2, false, "partially patched"},
		"unlabelled, partially patched, another container": {partial(map[string]string{"app": "mesh:2"}), toMesh2, false, "partially patched"},
		"unlabelled, partially patched, mark changed": {
			partial(map[string]string{"mesh": "mesh:2"}), partial(map[string]string{"mesh": "mesh:9"}), false, "takes its marks off"},
		"unlabelled, mark added": {
			func(*corev1.Pod) {}, partial(map[string]string{"mesh": "mesh:9"}), false, "takes its marks off"},
		"unlabelled, mark removed": {
			partial(map[string]string{"mesh": "mesh:2"}), func(pod *corev1.Pod) { pod.Annotations = nil }, false, ""},
		"unlabelled, of a DaemonSet": {func(pod *corev1.Pod) {
			partial(map[string]string{"mesh": "mesh:2"})(pod)
			pod.Labels, pod.OwnerReferences[0].Kind = nil, "DaemonSet"
		}, toMesh2, false, "partially patched"},
		"unlabelled, about to restart": {func(pod *corev1.Pod) {
			partial(map[string]string{"mesh": "mesh:2"})(pod)
			pod.Annotations[inplace.AnnotationRestarts] = "1-c"
		}, func(pod *corev1.Pod) {
			toMesh2(pod)
			delete(pod.Annotations, inplace.AnnotationRestarts)
		}, false, ""},
		"unlabelled, completely patched": {partial(nil), toMesh2, false, "partially patched"},
		"unlabelled, a request that waits, refused": {requesting("waiting mesh: an update"), func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestarted: "refused mesh: no"}
		}, false, ""},
		"unlabelled, a request that waits, withdrawn": {requesting("waiting mesh: an update"), func(pod *corev1.Pod) {
			delete(pod.Annotations, inplace.AnnotationRestarted)
		}, false, ""},
		"unlabelled, a request that waits, changed": {requesting("waiting mesh: an update"), func(pod *corev1.Pod) {
			pod.Annotations[inplace.AnnotationRestartContainers] = "setup"
		}, false, "takes its marks off"},
		"unlabelled, a request that does not wait": {requesting("restarted mesh"), func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestarted: "refused mesh: no"}
		}, false, "takes its marks off"},
		"unlabelled, a request that has begun, refused": {func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestartContainers: "app=2030-01-01T00:00:00Z,mesh"}
		}, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestarted: "refused app=2030-01-01T00:00:00Z,mesh: no"}
		}, false, ""},
		"unlabelled, a request that has begun, carried out": {func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestartContainers: "app=2030-01-01T00:00:00Z,mesh"}
		}, toMesh2, false, "partially patched"},
		"unlabelled, a request that has not begun, refused": {func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestartContainers: "app,mesh"}
		}, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{inplace.AnnotationRestarted: "refused app,mesh: no"}
		}, false, "takes its marks off"},
		"unlabelled, a request that waits, carried out": {requesting("waiting mesh: an update"), toMesh2, false, "partially patched"},
	} {
		t.Run(name, func(t *testing.T) {
			old := podWithSidecar()
			test.before(old)
			sent := old.DeepCopy()
			test.change(sent)
			got := policy.of(old, sent, namespaces[test.managed], byStayput)
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("refused for %q, want %q", got, test.want)
			}
		})
	}
}

// TestOwnPowerOverWhatVariablesRead checks that without the label Stayput may change only those labels and annotations of a pod that the
// mark of a partially patched pod names.
func TestOwnPowerOverWhatVariablesRead(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pods")
	const off = "takes its marks off"
	read := edit.ReadKeys{Labels: []string{"example.com/chart", "tier"}, Annotations: []string{"note"}}
	label := func(key, value string) func(*corev1.Pod) { return func(pod *corev1.Pod) { pod.Labels[key] = value } }
	annotation := func(key, value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations[key] = value }
	}
	for name, test := range map[string]struct {
		hash   string
		read   edit.ReadKeys
		change func(*corev1.Pod)
		want   string
	}{
		"a label":                           {"b", read, label("tier", "front"), ""},
		"a label, removed":                  {"b", read, func(pod *corev1.Pod) { delete(pod.Labels, "tier") }, ""},
		"a label, added":                    {"b", read, label("example.com/chart", "1"), ""},
		"an annotation":                     {"b", read, annotation("note", "1"), ""},
		"a label that is not named":         {"b", read, label("app", "other"), off},
		"part of a name":                    {"b", read, label("chart", "1"), off},
		"an annotation that is not named":   {"b", read, annotation("tier", "1"), off},
		"a label of an annotation's name":   {"b", read, label("note", "1"), off},
		"nothing is named":                  {"b", edit.ReadKeys{}, label("tier", "front"), off},
		"the hash":                          {"b", edit.ReadKeys{Labels: []string{"pod-template-hash"}}, label("pod-template-hash", "c"), off},
		"a label of a completely moved pod": {"a", read, label("tier", "front"), off},
		"a new mark":                        {"b", read, annotation(inplace.AnnotationMove, `{"hash":"b","read":{"labels":["app"]}}`), off},
		"both, and the mark is removed": {"b", read, func(pod *corev1.Pod) {
			pod.Labels["tier"], pod.Annotations = "front", map[string]string{"note": ""}
		}, ""},
		"a label of Stayput's own pre-pulls": {"b", edit.ReadKeys{Labels: []string{inplace.LabelPrePull}}, label(inplace.LabelPrePull, "x"),
			"its own"},
	} {
		old := podWithSidecar()
		old.Labels["app"], old.Labels["tier"] = "web", "back"
		mark := readiness.Move{Hash: test.hash, Containers: map[string]readiness.MovedContainer{"app": {Image: "app:1"}},
			Back: map[string]string{"app": "app:0"}, Read: test.read}
		old.Annotations = map[string]string{"note": "2", inplace.AnnotationMove: mark.String()}
		sent := old.DeepCopy()
		test.change(sent)
		if got := policy.of(old, sent, &corev1.Namespace{}, byStayput); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: refused for %q, want %q", name, got, test.want)
		}
	}
}

// TestOwnPowerOverPodsThatLookLikePrePullPods: image policies may leave pre-pull pods of Stayput's user alone, and another client may give
// a new pod their label. So Stayput may make no dry run of such a pod, and changes nothing in it but annotations.
func TestOwnPowerOverPodsThatLookLikePrePullPods(t *testing.T) {
	pods := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pods")
	resizes := compileRefusals(t, "../base/own-power.yaml", "stayput-own-resizes")
	creations := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pre-pull-pods")
	old := podWithSidecar()
	mark := readiness.Move{Hash: "b", Containers: map[string]readiness.MovedContainer{"app": {Image: "app:1"}},
		Back: map[string]string{"app": "app:9"}, Resize: readiness.Resize{"app": {Back: edit.Amounts{CPURequest: "9"}}}}
	old.Annotations = map[string]string{inplace.AnnotationMove: mark.String()}
	for name, test := range map[string]struct {
		policy refusals
		change func(*corev1.Pod)
		label  string // what is refused with the label of a pre-pull pod, and not without
	}{
		"an image":       {pods, func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "app:9" }, "nothing but annotations"},
		"CPU":            {resizes, cpu(0, "9"), "resizes no pod"},
		"marks":          {pods, func(pod *corev1.Pod) { pod.Annotations = nil }, ""},
		"nothing at all": {pods, func(*corev1.Pod) {}, ""},
	} {
		for _, in := range []*corev1.Namespace{labelled, {}} {
			for _, isLabelled := range []bool{true, false} {
				pod, want := old.DeepCopy(), ""
				if isLabelled {
					pod.Labels[inplace.LabelPrePull], want = "x", test.label
				}
				sent := pod.DeepCopy()
				test.change(sent)
				if got := test.policy.of(pod, sent, in, byStayput); want == "" && got != "" || !strings.Contains(got, want) {
					t.Errorf("%s in %q, with the label %t: %q, want %q", name, in.Name, isLabelled, got, want)
				}
			}
		}
	}
	relabelled := old.DeepCopy()
	relabelled.Labels[inplace.LabelPrePull] = "x"
	moved := relabelled.DeepCopy()
	moved.Labels["pod-template-hash"] = "b"
	if got := pods.of(relabelled, moved, labelled, byStayput); !strings.Contains(got, "nothing but annotations") {
		t.Errorf("it becomes a pod of another ReplicaSet: %q", got)
	}
	if got := creations.ofDryRun(nil, relabelled, labelled, byStayput); !strings.Contains(got, "dry run") {
		t.Errorf("a dry run with the label: %q", got)
	}
	if got := creations.ofDryRun(nil, old, labelled, byStayput); got != "" {
		t.Errorf("a dry run without the label: %q", got)
	}
}

type object interface {
	runtime.Object
	metav1.Object
}

// TestOwnTextsAreShort checks that Stayput puts no other labels on revisions than its marks, and writes no more text than it needs: into
// revisions, and into pods where the namespace has no label.
func TestOwnTextsAreShort(t *testing.T) {
	const own = "../base/own-power.yaml"
	scaling, revisions := compileRefusals(t, own, "stayput-own-scaling"), compileRefusals(t, own, "stayput-own-revisions")
	pods, long := compileRefusals(t, own, "stayput-own-pods"), strings.Repeat("9", 250_000)
	owned := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "web", Controller: new(true)}}}
	}
	of := appsv1.SchemeGroupVersion.String()
	replicaSet := &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{APIVersion: of, Kind: "ReplicaSet"}, ObjectMeta: owned("Deployment")}
	revision := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: of, Kind: "ControllerRevision"}, ObjectMeta: owned("DaemonSet")}
	pod := ownedPod()
	requesting("waiting app")(pod)
	label := func(key string) func(metav1.Object) {
		return func(o metav1.Object) { o.SetLabels(map[string]string{"app": "web", key: "1"}) }
	}
	annotation := func(key, value string) func(metav1.Object) {
		return func(o metav1.Object) { o.GetAnnotations()[key] = value }
	}
	for _, mark := range inplace.Marks {
		for policy, revision := range map[*refusals]object{&scaling: replicaSet, &revisions: revision} {
			sent := revision.DeepCopyObject().(object)
			label(mark)(sent)
			if refused := policy.of(revision, sent, labelled, byStayput); refused != "" {
				t.Errorf("mark %s of a %T: %s", mark, revision, refused)
			}
		}
	}
	for name, test := range map[string]struct {
		policy  refusals
		object  object
		change  func(metav1.Object)
		refused bool
	}{
		"replicas noted":                {scaling, replicaSet, annotation("deployment.kubernetes.io/max-replicas", "1000000000"), false},
		"a long text there":             {scaling, replicaSet, annotation("deployment.kubernetes.io/max-replicas", long), true},
		"another label of a ReplicaSet": {scaling, replicaSet, label("stayput.dev/a"), true},
		"another label of a revision":   {revisions, revision, label("stayput.dev/a"), true},
		"a nudge of a pod":              {pods, pod, annotation(inplace.AnnotationNudged, "2026-01-01T00:00:00Z"), false},
		"a long nudge":                  {pods, pod, annotation(inplace.AnnotationNudged, long), true},
		"what becomes of a request":     {pods, pod, annotation(inplace.AnnotationRestarted, "refused app: "+long[:20<<10]), false},
		"a long text of what becomes":   {pods, pod, annotation(inplace.AnnotationRestarted, "refused app: "+long), true},
	} {
		sent := test.object.DeepCopyObject().(object)
		test.change(sent)
		if refused := test.policy.of(test.object, sent, &corev1.Namespace{}, byStayput); (refused != "") != test.refused {
			t.Errorf("%s: refused with %q", name, refused)
		}
	}
}

// requesting gives a pod a request, and what it says of it.
func requesting(says string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{inplace.AnnotationRestartContainers: "mesh",
			inplace.AnnotationRestartDeadline: "2030-01-01T00:00:00Z", inplace.AnnotationRestarted: says}
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
	mark := readiness.Move{Hash: "b", Resize: readiness.Resize{
		"app": {Back: edit.Amounts{CPURequest: "100m"}, To: edit.Amounts{CPURequest: "200m"}}}}.String()
	const notBack = "without the namespace's label stayput resizes containers only to what they had before the pod was partially patched"
	const others = "stayput changes nothing with the resources of a pod but those of its containers"
	for name, test := range map[string]struct {
		in           *corev1.Namespace
		before, both func(*corev1.Pod)
		after        func(*corev1.Pod)
		want         string
	}{
		"as marked":                     {in: labelled, after: cpu(0, "200m")},
		"back":                          {before: cpu(0, "200m"), after: cpu(0, "100m")},
		"back, spelled otherwise":       {before: cpu(0, "200m"), after: cpu(0, "0.1")},
		"not back":                      {before: cpu(0, "200m"), after: cpu(0, "300m"), want: notBack},
		"not back, in another resource": {before: cpu(0, "200m"), after: memory(0, "1Gi"), want: notBack},
		"request removed": {before: cpu(0, "200m"), want: notBack,
			after: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }},
		"a container that is not named": {in: labelled, after: cpu(1, "200m"), want: "stayput resizes only containers that its mark names"},
		"without a mark": {in: labelled, both: func(p *corev1.Pod) { p.Annotations = nil }, after: cpu(0, "200m"),
			want: "stayput resizes only containers that its mark names"},
		"completely patched, without the label": {before: cpu(0, "200m"), after: cpu(0, "100m"), want: notBack,
			both: func(p *corev1.Pod) { p.Labels["pod-template-hash"] = "b" }},
		"of a DaemonSet, without the label": {before: cpu(0, "200m"), after: cpu(0, "100m"), want: notBack,
			both: func(p *corev1.Pod) { p.Labels = nil }},
		"of a pod without owner": {in: labelled, both: func(p *corev1.Pod) { p.OwnerReferences = nil }, after: cpu(0, "200m"),
			want: "stayput resizes only pods of Deployments, DaemonSets and StatefulSets"},
		"a resize policy": {in: labelled, want: others,
			after: func(p *corev1.Pod) { p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{}} }},
		"of the whole pod": {in: labelled, after: func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{} }, want: others},
		"a label":          {in: labelled, after: func(p *corev1.Pod) { p.Labels = map[string]string{} }, want: others},
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
		if got := policy.of(old, sent, test.in, byStayput); test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func memory(container int, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(amount)}
	}
}

// TestOwnPowerEndsAtKubeSystem checks that Stayput may not write to pods in kube-system, not even to their status.
func TestOwnPowerEndsAtKubeSystem(t *testing.T) {
	spec := validatingSpec(t, "../base/own-power.yaml", "stayput-own-namespaces")
	rule := spec.MatchConstraints.ResourceRules[0]
	for _, resource := range []string{"pods", "pods/resize", "pods/status"} {
		if !slices.Contains(rule.Resources, resource) {
			t.Errorf("%s are not among %v", resource, rule.Resources)
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.MatchConstraints.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for namespace, refused := range map[string]bool{"kube-system": true, "stayput-system": true, "shop": false} {
		if matches := selector.Matches(labels.Set{corev1.LabelMetadataName: namespace}); matches != refused {
			t.Errorf("the policy applies to %s: %t, want %t", namespace, matches, refused)
		}
	}
}

// TestOwnPrePullPodsAreRestricted checks that pre-pull pods follow the Pod Security Standard "restricted". They are never Ready, so that no
// Service sends them requests, whatever their labels are.
func TestOwnPrePullPodsAreRestricted(t *testing.T) {
	policy := compileRefusals(t, "../base/own-power.yaml", "stayput-own-pre-pull-pods")
	const restricted, never = "run restricted", "never Ready"
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"as Stayput creates it":        {func(*corev1.Pod) {}, ""},
		"another label":                {func(p *corev1.Pod) { p.Labels["app"] = "web" }, ""},
		"Ready":                        {func(p *corev1.Pod) { p.Spec.ReadinessGates = nil }, never},
		"another gate":                 {func(p *corev1.Pod) { p.Spec.ReadinessGates[0].ConditionType = "example.com/any" }, never},
		"SELinux's level":              {seLinux(corev1.SELinuxOptions{Level: "s0:c1"}), ""},
		"SELinux's container type":     {seLinux(corev1.SELinuxOptions{Type: "container_t"}), ""},
		"another SELinux type":         {seLinux(corev1.SELinuxOptions{Type: "spc_t"}), restricted},
		"an SELinux user":              {seLinux(corev1.SELinuxOptions{User: "system_u"}), restricted},
		"an SELinux role":              {seLinux(corev1.SELinuxOptions{Role: "system_r"}), restricted},
		"AppArmor's own profile":       {appArmor("runtime/default"), ""},
		"no AppArmor":                  {appArmor("unconfined"), restricted},
		"root":                         {func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = new(int64(0)) }, restricted},
		"a user that admission chose":  {runAs(&corev1.SecurityContext{RunAsUser: new(int64(1000660000)), RunAsNonRoot: new(true)}), ""},
		"a container as root":          {runAs(&corev1.SecurityContext{RunAsUser: new(int64(0))}), restricted},
		"a container that may be root": {runAs(&corev1.SecurityContext{RunAsNonRoot: new(false)}), restricted},
		"a privileged container":       {runAs(&corev1.SecurityContext{Privileged: new(true)}), restricted},
	} {
		pod := newPrePullPod()
		test.change(pod)
		if got := policy.of(nil, pod, labelled, byStayput); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := policy.of(nil, newPrePullPod(), &corev1.Namespace{}, byStayput); !strings.Contains(got, "only in labelled namespaces") {
		t.Errorf("without the label: %q", got)
	}
}

func newPrePullPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{inplace.LabelPrePull: "x"}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Controller: new(true)}}},
		Spec: corev1.PodSpec{NodeName: "n1", AutomountServiceAccountToken: new(false),
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: inplace.LabelPrePull}},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "wait", Image: "stayput", Args: []string{"wait"}, SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}}},
	}
}

func seLinux(options corev1.SELinuxOptions) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.SecurityContext.SELinuxOptions = &options }
}

// runAs returns a change that adds these fields to the container's own security context.
func runAs(more *corev1.SecurityContext) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		own := pod.Spec.Containers[0].SecurityContext
		own.RunAsUser, own.RunAsNonRoot, own.Privileged = more.RunAsUser, more.RunAsNonRoot, more.Privileged
	}
}

func appArmor(profile string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations["container.apparmor.security.beta.kubernetes.io/wait"] = profile
	}
}

func cpu(container int, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[container].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
}
