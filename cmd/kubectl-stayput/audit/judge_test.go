package audit

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/stayput/stayput/e2e/changes"
	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
	"github.com/stayput/stayput/inplace/edit"
	"github.com/stayput/stayput/internal/observe"
)

// template returns a template with these annotations and this container, both as JSON.
func template(t *testing.T, annotations, container string) apps.Template {
	t.Helper()
	parsed, err := apps.ParseTemplate([]byte(`{"metadata":{"labels":{"app":"web"},"annotations":{` + annotations + `}},` +
		`"spec":{"containers":[{"name":"app",` + container + `}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

const (
	v1       = `"image":"app:1"`
	v2       = `"image":"app:2"`
	small    = v1 + `,"resources":{"requests":{"cpu":"1"}}`
	large    = v1 + `,"resources":{"requests":{"cpu":"2"}}`
	withEnv  = v1 + `,"env":[{"name":"A","value":"b"}]`
	restart1 = `"kubectl.kubernetes.io/restartedAt":"1"`
	restart2 = `"kubectl.kubernetes.io/restartedAt":"2"`
	sum1     = `"checksum/config":"1"`
	sum2     = `"checksum/config":"2"`
)

func deployment() *apps.Deployment {
	d := &apps.Deployment{}
	d.Spec.Replicas, d.Spec.Strategy.Type = ptr.To[int32](3), appsv1.RollingUpdateDeploymentStrategyType
	return d
}

func TestWhatAnEditWouldHaveBeen(t *testing.T) {
	none := map[string]string{}
	const notListed = "annotation kubectl.kubernetes.io/restartedAt changed " +
		"(with annotation stayput.dev/restart-annotations=kubectl.kubernetes.io/restartedAt containers restart in their pods)"
	const restartedAtListed = "stayput.dev/restart-annotations: kubectl.kubernetes.io/restartedAt"
	checksumSettings := []string{
		"stayput.dev/restart-annotations: checksum/config",
		"stayput.dev/in-place-annotations: checksum/config",
	}
	for name, c := range map[string]struct {
		annotations, container     [2]string
		labels, lists, onNamespace map[string]string
		reasons                    string // empty: in place
		settings                   []string
	}{
		"image":       {container: [2]string{v1, v2}, labels: none},
		"environment": {container: [2]string{withEnv, v1}, reasons: "/spec/containers/0/env removed"},
		"restart": {annotations: [2]string{restart1, restart2}, container: [2]string{v1, v1},
			reasons:  notListed,
			settings: []string{restartedAtListed}},
		"restart where the namespace lists it": {annotations: [2]string{restart1, restart2}, container: [2]string{v1, v1},
			onNamespace: map[string]string{"stayput.dev/restart-annotations": "kubectl.kubernetes.io/restartedAt"}},
		"CPU": {container: [2]string{small, large},
			reasons:  "cpu of container app changed, and neither its resizePolicy nor annotation stayput.dev/resize says whether it needs a restart",
			settings: []string{"stayput.dev/resize: in-place"}},
		"CPU where the setting is there": {container: [2]string{small, large}, lists: map[string]string{"stayput.dev/resize": "in-place"}},
		"checksum": {annotations: [2]string{sum1, sum2}, container: [2]string{v1, v2},
			reasons: "annotation checksum/config changed", settings: checksumSettings},
		"checksum where another annotation is listed": {annotations: [2]string{sum1 + `,"note":"1"`, sum2 + `,"note":"2"`},
			container: [2]string{v1, v1}, lists: map[string]string{"stayput.dev/in-place-annotations": "note"},
			reasons: "annotation checksum/config changed", settings: checksumSettings},
		"checksum and restart": {annotations: [2]string{sum1 + "," + restart1, sum2 + "," + restart2}, container: [2]string{v1, v1},
			reasons:  "annotation checksum/config changed; " + notListed,
			settings: []string{"stayput.dev/restart-annotations: checksum/config,kubectl.kubernetes.io/restartedAt"}},
		"checksum and environment": {annotations: [2]string{sum1, sum2}, container: [2]string{v1, withEnv},
			reasons: "annotation checksum/config changed; /spec/containers/0/env added"},
		"restart and CPU, each with a setting of its own": {annotations: [2]string{restart1, restart2}, container: [2]string{small, large},
			reasons: notListed + "; cpu of container app changed, and neither its resizePolicy nor annotation stayput.dev/resize says whether it needs a restart"},
		"workload opted out": {container: [2]string{v1, v2}, labels: map[string]string{"stayput.dev/update": "native"},
			reasons: `not updated in place: label stayput.dev/update is "native"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload{observe.Deployments, deployment(), metav1.ObjectMeta{Annotations: c.onNamespace}}
			w.object.SetLabels(c.labels)
			w.object.SetAnnotations(c.lists)
			judged := w.judge(rollout{from: template(t, c.annotations[0], c.container[0]), to: template(t, c.annotations[1], c.container[1])})
			if got := judged.reasons.String(); got != c.reasons {
				t.Errorf("reasons are %q, want %q", got, c.reasons)
			}
			if !slices.Equal(judged.settings, c.settings) {
				t.Errorf("settings are %q, want %q", judged.settings, c.settings)
			}
		})
	}
}

// everyKind are the labels of a namespace whose StatefulSets are updated in place, too.
var everyKind = map[string]string{inplace.LabelUpdate: inplace.InPlace, inplace.LabelKinds: "deployments.daemonsets.statefulsets"}

func TestStrategiesCount(t *testing.T) {
	recreate, one := deployment(), intstr.FromInt32(1)
	recreate.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	onDelete, surging := &apps.DaemonSet{}, &apps.DaemonSet{}
	onDelete.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	notNow := &apps.StatefulSet{}
	of := func(kind observe.Kind, object apps.Workload) workload {
		return workload{kind: kind, object: object, within: metav1.ObjectMeta{Labels: everyKind}}
	}
	notNow.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	surging.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxSurge: &one}
	for name, c := range map[string]struct {
		workload
		want string
	}{
		"Deployment":             {of(observe.Deployments, deployment()), ""},
		"Deployment, Recreate":   {of(observe.Deployments, recreate), "strategy Recreate promises that two versions never run at once"},
		"DaemonSet":              {of(observe.DaemonSets, &apps.DaemonSet{}), ""},
		"DaemonSet, OnDelete":    {of(observe.DaemonSets, onDelete), "with strategy OnDelete the user decides when a pod is updated"},
		"DaemonSet with a surge": {of(observe.DaemonSets, surging), "maxSurge asks for a new pod before the old one goes"},
		"StatefulSet":            {of(observe.StatefulSets, &apps.StatefulSet{}), ""},
		"StatefulSet, OnDelete":  {of(observe.StatefulSets, notNow), "with strategy OnDelete the user decides when a pod is updated"},
	} {
		t.Run(name, func(t *testing.T) {
			judged := c.workload.judge(rollout{from: template(t, "", v1), to: template(t, "", v2)})
			if got := judged.reasons.String(); got != c.want || len(judged.settings) > 0 {
				t.Errorf("reasons are %q and settings %q, want %q", got, judged.settings, c.want)
			}
		})
	}
}

func TestRolloutsAreStepsBetweenNeighbours(t *testing.T) {
	a, b := template(t, "", v1), template(t, "", v2)
	for name, c := range map[string]struct {
		history
		want []int64
	}{
		"one revision":                    {history{7: a}, nil},
		"two":                             {history{1: a, 2: b}, []int64{2}},
		"an undo: one template, two ages": {history{1: a, 2: b, 3: a}, []int64{2, 3}},
		"a revision is gone":              {history{1: a, 3: b, 4: a}, []int64{4}},
		"the same template twice":         {history{1: a, 2: a}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int64
			for _, each := range c.rollouts() {
				got = append(got, each.revision)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("rollouts to %v, want %v", got, c.want)
			}
		})
	}
}

func TestPlaceHasNoIndexes(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "/spec": "/spec",
		"/spec/containers/12/env/3/value":    "/spec/containers/*/env",
		"/metadata/annotations/checksum~1a1": "/metadata/annotations/checksum~1a1",
	} {
		if got := place(inplace.Reason{Path: path}); got != want {
			t.Errorf("%s is counted at %q, want %q", path, got, want)
		}
	}
}

func TestTally(t *testing.T) {
	shop := workload{observe.Deployments, deployment(), metav1.ObjectMeta{}}
	shop.object.SetNamespace("shop")
	shop.object.SetName("web")
	shop.object.SetLabels(map[string]string{"team": "a"})
	other := workload{observe.DaemonSets, &apps.DaemonSet{}, metav1.ObjectMeta{Labels: map[string]string{"team": "b"}}}
	other.object.SetNamespace("other")
	counted := newTally("team")
	counted.add(shop, history{1: template(t, "", v1), 2: template(t, "", v2), 3: template(t, restart1, v2)})
	counted.add(shop, history{4: template(t, "", v1), 5: template(t, "", withEnv), 6: template(t, "", v1)})
	counted.add(other, history{1: template(t, "", v1), 2: template(t, "", v2)})
	counted.add(workload{object: deployment()}, history{1: template(t, "", v1)})
	if text, err := yaml.Marshal(counted.report()); err != nil || string(text) != tallied {
		t.Errorf("%v, got:\n%s", err, text)
	}
}

const tallied = `inPlace: 2
label: team
labels:
- inPlace: 1
  name: a
  native: 2
  rollouts: 4
  withSetting: 1
- inPlace: 1
  name: b
  native: 0
  rollouts: 1
  withSetting: 0
namespaces:
- inPlace: 1
  name: shop
  native: 2
  rollouts: 4
  withSetting: 1
- inPlace: 1
  name: other
  native: 0
  rollouts: 1
  withSetting: 0
native: 2
reasons:
- code: TemplateField
  example: deployment/web in shop, revision 5
  message: /spec/containers/0/env added
  path: /spec/containers/*/env
  rollouts: 2
rollouts: 5
settings:
- rollouts: 1
  setting: 'stayput.dev/restart-annotations: kubectl.kubernetes.io/restartedAt'
unchanged: 1
withSetting: 1
workloads: 4
`

// TestJudgesAsStayputDoes judges each change of docs/reference/changes.md. What managers know by their flags, an audit does not know.
func TestJudgesAsStayputDoes(t *testing.T) {
	for _, c := range changes.Table {
		if len(c.Flags) > 0 {
			continue
		}
		after := c.Template()
		before := parsed(t, after)
		c.Edit(&after)
		w := workload{kind: observe.Deployments, object: deployment()}
		w.object.SetAnnotations(c.Annotations)
		reasons := w.judge(rollout{from: before, to: parsed(t, after)}).reasons
		if got := edit.RecreatePrefix + reasons.String(); c.InPlace() != (len(reasons) == 0) || !c.InPlace() && got != c.Decision {
			t.Errorf("%s: got %q, want %q", c.Name, got, c.Decision)
		}
	}
}

func parsed(t *testing.T, typed corev1.PodTemplateSpec) apps.Template {
	t.Helper()
	template, err := apps.ParseTemplate([]byte(marshal(t, typed)))
	if err != nil {
		t.Fatal(err)
	}
	return template
}
