package commands

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stayput/stayput/inplace"
)

// web returns a Deployment as the API server stores it, with defaults that the user did not write.
func web() *appsv1.Deployment {
	replicas, one := int32(4), intstr.FromInt32(1)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template(),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &one, MaxSurge: &one}},
		},
	}
}

func agent() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template()},
		Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: 3},
	}
}

func db() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db",
			Labels: map[string]string{inplace.LabelUpdate: inplace.InPlace}},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), Template: template(),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			Containers: []corev1.Container{{Name: "app", Image: "app:1", TerminationMessagePath: "/dev/termination-log"}}}}
}

// written returns a manifest as a user writes it, with fewer fields than the API server stores.
func written(kind, name, containers string) map[string]any {
	var object map[string]any
	text := `{"apiVersion":"apps/v1","kind":"` + kind + `","metadata":{"name":"` + name + `"},` +
		`"spec":{"selector":{"matchLabels":{"app":"web"}},` +
		`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[` + containers + `]}}}}`
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(err)
	}
	return object
}

const (
	sameImage  = `{"name":"app","image":"app:1"}`
	otherImage = `{"name":"app","image":"app:2"}`
	withEnv    = `{"name":"app","image":"app:1","env":[{"name":"A","value":"b"}]}`
)

func stored(mode string) map[string]runtime.Object {
	return map[string]runtime.Object{shopPath: shop(mode), webPath: web(), agentPath: agent()}
}

// at annotates the workload with the partition.
func at(partition string, object map[string]any) map[string]any {
	object["metadata"].(map[string]any)["annotations"] = map[string]any{inplace.AnnotationPartition: partition}
	return object
}

// halfKept is Stayput's warning about a partition of 50%.
const halfKept = "partition 50%: so many pods stay at the current revision until the partition is lowered or removed, " +
	"or Stayput is uninstalled"

// TestPlanSaysHowLong: the pods became Ready 20 s after their containers had started.
func TestPlanSaysHowLong(t *testing.T) {
	objects := stored("in-place")
	objects[inShop+"replicasets/old"] = revision("old", "app:1", 4, nil)
	for _, name := range []string{"a", "b", "c", "d"} {
		objects["/api/v1/namespaces/shop/pods/"+name] = readyAfter(20*time.Second, pod(name, "old", "app:1", true))
	}
	const want = "restarts app in 4 pods, 1 at a time; takes about 1m20s: 4 × 20s to start, 1 at a time; " +
		"stops and drains (2s behind a Service) come on top"
	s := serve(t, objects)
	said, _ := s.run("plan", "-n", "shop", "-f", s.file(written("Deployment", "web", otherImage)))
	if !strings.Contains(strings.Join(strings.Fields(said.out), " "), want) {
		t.Errorf("%q is missing in:\n%s\n%s", want, said.out, said.err)
	}
}

// readyAfter returns the pod as one that became Ready so long after its containers had started.
func readyAfter(took time.Duration, pod *corev1.Pod) *corev1.Pod {
	start := time.Unix(1767262800, 0)
	pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(took))
	pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(start)
	return pod
}

func TestPlan(t *testing.T) {
	tests := map[string]struct {
		mode     string
		file     []any
		warnings []string
		code     int
		want     []string
	}{
		"in place": {"in-place", []any{written("Deployment", "web", otherImage)}, []string{"stayput: in place: restarts app"}, 0,
			[]string{"shop deployment/web in place restarts app in 4 pods, 1 at a time"}},
		"in place of a DaemonSet": {"in-place", []any{written("DaemonSet", "agent", otherImage)}, nil, 0,
			[]string{"shop daemonset/agent in place restarts app in 3 pods, 1 at a time", "Stayput itself has not answered"}},
		"recreate": {"in-place", []any{written("Deployment", "web", withEnv)}, nil, 2,
			[]string{"shop deployment/web recreate /spec/containers/0/env added"}},
		"recreate decides the exit code": {"in-place",
			[]any{written("DaemonSet", "agent", otherImage), written("Deployment", "web", withEnv)}, nil, 2,
			[]string{"daemonset/agent in place", "deployment/web recreate"}},
		"namespace without label": {"", []any{written("Deployment", "web", otherImage)}, nil, 2,
			[]string{"shop deployment/web recreate not updated in place: the namespace has no label stayput.dev/update"}},
		"Stayput decides otherwise: in place": {"in-place", []any{written("Deployment", "web", withEnv)},
			[]string{"stayput: in place: no restart"}, 0,
			[]string{"shop deployment/web in place no restart"}},
		"Stayput decides otherwise: recreate": {"in-place", []any{written("Deployment", "web", otherImage)},
			[]string{"stayput: recreate: it was given back"}, 2,
			[]string{"shop deployment/web recreate it was given back"}},
		"partition": {"in-place", []any{at("50%", written("Deployment", "web", otherImage))},
			[]string{"stayput: in place: restarts app", "stayput: " + halfKept}, 0,
			[]string{"restarts app in 2 of 4 pods, 1 at a time; " + halfKept}},
		"partition of a DaemonSet": {"in-place", []any{at("3", written("DaemonSet", "agent", otherImage))}, nil, 0,
			[]string{"restarts app in 0 of 3 pods, 0 at a time; partition 3: so many"}},
		"partition of what is recreated": {"in-place", []any{at("3", written("Deployment", "web", withEnv))}, nil, 2,
			[]string{"/spec/containers/0/env added; partition 3 does not apply"}},
		"Stayput decides otherwise: recreate at a partition": {"in-place", []any{at("3", written("Deployment", "web", otherImage))},
			[]string{"stayput: recreate: it was given back", "stayput: partition 3 does not apply: it is native"}, 2,
			[]string{"it was given back; partition 3 does not apply"}},
		"other warnings": {"in-place", []any{written("Deployment", "web", otherImage)}, []string{"would violate PodSecurity"}, 0,
			[]string{"would violate PodSecurity", "in place"}},
		"new Deployment": {"in-place", []any{written("Deployment", "new", otherImage)}, nil, 0, []string{"shop deployment/new created"}},
		"unchanged":      {"in-place", []any{written("Deployment", "web", sameImage)}, nil, 0, []string{"shop deployment/web unchanged"}},
		"another kind": {"in-place",
			[]any{map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x"}}}, nil, 0,
			[]string{"thing/x skipped"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, stored(test.mode))
			s.warnings = test.warnings
			said, code := s.run("plan", "-n", "shop", "-f", s.file(test.file...))
			if code != test.code {
				t.Errorf("the exit code is %d instead of %d: %s", code, test.code, said)
			}
			for _, part := range test.want {
				if !strings.Contains(strings.Join(strings.Fields(said.out+said.err), " "), part) {
					t.Errorf("%q is missing in:\n%s\n%s", part, said.out, said.err)
				}
			}
			if all := said.out + said.err; strings.Count(all, "partition ") > 1 && strings.Contains(said.err, "partition ") {
				t.Errorf("the partition is mentioned twice: %s", all)
			}
			if test.warnings != nil && test.warnings[0][:7] == "stayput" && strings.Contains(said.err, "not answered") {
				t.Errorf("Stayput has answered, but the plugin says that it has not: %s", said.err)
			}
		})
	}
}

func TestPlanAsJSON(t *testing.T) {
	s := serve(t, stored("in-place"))
	said, _ := s.run("plan", "-n", "shop", "-o", "json", "-f", s.file(written("Deployment", "web", otherImage)))
	want := `{
  "objects": [
    {
      "kind": "Deployment",
      "namespace": "shop",
      "name": "web",
      "plan": "InPlace",
      "message": "restarts app in 4 pods, 1 at a time",
      "containers": [
        "app"
      ],
      "pods": 4,
      "atATime": 1,
      "decidedBy": "plugin"
    }
  ]
}
`
	if said.out != want {
		t.Errorf("%s\ninstead of\n%s", said.out, want)
	}
	said, _ = s.run("plan", "-n", "shop", "-o", "json", "-f", s.file(written("Deployment", "web", withEnv)))
	if part := `"path": "/spec/containers/0/env"`; !strings.Contains(said.out, part) {
		t.Errorf("%s is missing in %s", part, said.out)
	}
}

// TestPlanOfWhatIsRefused checks the plan of an edit that Stayput refuses. The plugin has nothing but the API server's error.
func TestPlanOfWhatIsRefused(t *testing.T) {
	s := serve(t, stored("in-place-only"))
	s.refusal = apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{
		field.Forbidden(field.NewPath("spec", "template", "spec"),
			"/spec/containers/0/env added, which stayput.dev/update=in-place-only does not allow")})
	said, code := s.run("plan", "-n", "shop", "-f", s.file(written("Deployment", "web", withEnv)))
	if code != 2 || !strings.Contains(said.out, "refused, as pods would be recreated: /spec/containers/0/env added") {
		t.Errorf("exit code %d: %s", code, said)
	}
	s.refusal = apierrors.NewForbidden(appsv1.Resource("deployments"), "web", nil)
	said, code = s.run("plan", "-n", "shop", "-f", s.file(written("Deployment", "web", withEnv)))
	if code != 1 || !strings.Contains(said.out, "error") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// scaler returns an autoscaler of that workload by CPU. It waits for the window, in seconds, before it scales up.
func scaler(kind, name string, window int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-cpu"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: kind, Name: name},
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &window}},
		},
	}
}

// TestPlanBesideAnAutoscaler checks that the plan says once that the autoscaler counts the CPU of starting containers, also if Stayput has
// said so, and does not say it to a user who may not list autoscalers.
func TestPlanBesideAnAutoscaler(t *testing.T) {
	const said = "HorizontalPodAutoscaler by-cpu scales by cpu: "
	for name, test := range map[string]struct {
		window    int32
		container string
		answers   []string
		forbidden []string
		code      int
		want      int
	}{
		"scales up at once": {container: otherImage, want: 1},
		"Stayput has answered": {
			container: otherImage, answers: []string{"stayput: in place: restarts app", "stayput: " + said + "so"}, want: 1},
		"waits before it scales up":       {window: 300, container: otherImage},
		"pods are recreated":              {container: withEnv, code: 2},
		"Stayput says pods are recreated": {container: otherImage, answers: []string{"stayput: recreate: it was given back"}, code: 2},
		"the user may not list it":        {container: otherImage, forbidden: []string{scalersPath}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := stored("in-place")
			objects[scalersPath+"/by-cpu"] = scaler("Deployment", "web", test.window)
			s := serve(t, objects)
			s.warnings, s.forbidden = test.answers, test.forbidden
			told, code := s.run("plan", "-n", "shop", "-f", s.file(written("Deployment", "web", test.container)))
			if got := strings.Count(told.out+told.err, said); got != test.want || code != test.code {
				t.Errorf("%q is said %d times instead of %d, exit code %d: %s %s", said, got, test.want, code, told.out, told.err)
			}
		})
	}
}

// TestPlanOfEachKindBesideAnAutoscaler checks that autoscalers of Deployments and of StatefulSets are found; DaemonSets have none.
func TestPlanOfEachKindBesideAnAutoscaler(t *testing.T) {
	for kind, test := range map[string]struct {
		name string
		want bool
	}{"Deployment": {"web", true}, "StatefulSet": {"db", true}, "DaemonSet": {"agent", false}} {
		objects := stored("in-place")
		objects[dbPath], objects[scalersPath+"/by-cpu"] = db(), scaler(kind, test.name, 0)
		s := serve(t, objects)
		told, code := s.run("plan", "-n", "shop", "-f", s.file(written(kind, test.name, otherImage)))
		said := strings.Join(strings.Fields(told.out), " ")
		says := strings.Contains(said, "HorizontalPodAutoscaler by-cpu scales by cpu: ")
		if says != test.want || code != 0 || !strings.Contains(said, "in place restarts app in ") {
			t.Errorf("%s: exit code %d: %s %s", kind, code, told.out, told.err)
		}
	}
}

// TestPlanWithoutNamespaces checks that a user who may not read the namespace gets no plan.
func TestPlanWithoutNamespaces(t *testing.T) {
	s := serve(t, stored("in-place"))
	s.forbidden = []string{shopPath}
	file := s.file(written("Deployment", "web", otherImage))
	if said, code := s.run("plan", "-n", "shop", "-f", file); code != 1 || !strings.Contains(said.out, `namespaces "shop" is forbidden`) {
		t.Errorf("exit code %d: %s", code, said)
	}
}

func TestPlanDemands(t *testing.T) {
	s := serve(t, stored("in-place"))
	elsewhere := written("Deployment", "web", otherImage)
	elsewhere["metadata"].(map[string]any)["namespace"] = "elsewhere"
	for want, arguments := range map[string][]string{
		"must specify one of -f and -k": {"plan"},
		"unknown command":               {"plan", "-f", s.file(), "web"},
		"unknown output":                {"plan", "-f", s.file(), "-o", "wide"},
		"of namespace elsewhere":        {"plan", "-n", "shop", "-f", s.file(elsewhere)},
	} {
		if said, code := s.run(arguments...); code != 1 || !strings.Contains(said.err, want) {
			t.Errorf("%v: exit code %d: %s", arguments, code, said)
		}
	}
}

// TestPlanOfAResize checks that the plan distinguishes containers that restart from containers that are only resized.
func TestPlanOfAResize(t *testing.T) {
	was := web()
	was.Annotations = map[string]string{inplace.AnnotationResize: inplace.InPlace}
	was.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	s := serve(t, map[string]runtime.Object{shopPath: shop("in-place"), webPath: was})
	for text, want := range map[string]string{
		`{"name":"app","image":"app:1","resources":{"requests":{"cpu":"2"}}}`: `"resizes app, no restart; partition 1: so many pods stay|` +
			`"resized": [ "app" ], "decidedBy"`,
		`{"name":"app","image":"app:2","resources":{"requests":{"cpu":"2"}}}`: `"resizes app, restarts app in 3 of 4 pods, 1 at a time; ` +
			`partition 1|"containers": [ "app" ], "resized": [ "app" ], "pods": 4, "atPartition": 1,`,
	} {
		said, code := s.run("plan", "-n", "shop", "-o", "json", "-f", s.file(at("1", written("Deployment", "web", text))))
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(strings.Join(strings.Fields(said.out), " "), part) || code != 0 {
				t.Errorf("%s is missing, exit code %d: %s", part, code, said)
			}
		}
	}
}

// TestPlanSaysWhatVariablesRead checks that the plan says why containers restart although only a label changes.
func TestPlanSaysWhatVariablesRead(t *testing.T) {
	was := web()
	was.Spec.Template.Labels["tier"] = "front"
	was.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TIER", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['tier']"}}}}
	now := was.DeepCopy()
	now.Spec.Template.Labels["tier"] = "back"
	s := serve(t, map[string]runtime.Object{shopPath: shop("in-place"), webPath: was})
	said, code := s.run("plan", "-n", "shop", "-f", s.file(now))
	if want := "restarts app in 4 pods, 1 at a time; variables read label tier (app)"; code != 0 || !strings.Contains(said.out, want) {
		t.Errorf("exit code %d, not %q: %s", code, want, said)
	}
}

// TestPlanRemovesWhatWasApplied checks that a field is removed which the last apply had and this one has not, as kubectl apply does.
func TestPlanRemovesWhatWasApplied(t *testing.T) {
	was := web()
	was.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	last, err := json.Marshal(written("Deployment", "web", withEnv))
	if err != nil {
		t.Fatal(err)
	}
	was.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(last)}
	s := serve(t, map[string]runtime.Object{shopPath: shop("in-place"), webPath: was})
	said, code := s.run("plan", "-n", "shop", "-f", s.file(written("Deployment", "web", sameImage)))
	if code != 2 || !strings.Contains(said.out, "/spec/containers/0/env removed") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

func TestPlanOfAKustomization(t *testing.T) {
	s := serve(t, stored("in-place"))
	folder := t.TempDir()
	for name, text := range map[string]string{
		"web.yaml": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},` +
			`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app:1"}]}}}}`,
		"kustomization.yaml": "resources: [web.yaml]\nimages: [{name: app, newTag: '2'}]\nnamespace: shop\n",
	} {
		if err := os.WriteFile(folder+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if said, code := s.run("plan", "-k", folder); code != 0 || !strings.Contains(said.out, "restarts app") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
