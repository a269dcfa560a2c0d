package edit

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/internal/sample"
)

const restartedAt = "/metadata/annotations/kubectl.kubernetes.io~1restartedAt"

// restartOf begins the annotations that ask for a restart of one container.
const restartOf = "/metadata/annotations/restart.stayput.dev~1"

// inPlaceRestarts are the rules of a workload that lists the annotation of kubectl rollout restart and a key of its own.
var inPlaceRestarts = inplace.Rules{Annotations: []string{"note"}, Restart: []string{"checksum/config", inplace.AnnotationRestartedAt}}

func TestCompareRestarts(t *testing.T) {
	plain := edits{"/spec/initContainers": ""}
	digest := sample.Digests[0]
	for name, test := range map[string]struct {
		base, before, after edits
		rules               *inplace.Rules
		want                string
	}{
		"rollout restart": {base: plain, after: edits{restartedAt: `"now"`}, want: "in place: restarts app, proxy"},
		"another": {base: plain, before: edits{restartedAt: `"then"`}, after: edits{restartedAt: `"now"`},
			want: "in place: restarts app, proxy"},
		"its undo": {base: plain, before: edits{restartedAt: `"then"`}, want: "in place: restarts app, proxy"},
		"a checksum": {base: plain, after: edits{"/metadata/annotations/checksum~1config": `"1"`},
			want: "in place: restarts app, proxy"},
		"along with an image": {base: plain, after: edits{restartedAt: `"now"`, newImage: `"app:2"`}, want: "in place: restarts app, proxy"},
		"along with a name": {base: plain, before: edits{newImage: `"app:1"`},
			after: edits{restartedAt: `"now"`, newImage: `"docker.io/library/app:1"`},
			want:  "in place: restarts app, proxy"},
		"always pulled, and another name": {base: edits{"/spec/initContainers": "", "/spec/containers/0/imagePullPolicy": `"Always"`},
			before: edits{newImage: `"app:1"`},
			after:  edits{restartedAt: `"now"`, newImage: `"docker.io/library/app:1"`}, want: "in place: restarts app, proxy"},
		"an annotation that may": {base: plain, after: edits{"/metadata/annotations/note": `"b"`}, want: "in place: no restart"},
		"none of the others": {base: plain, after: edits{restartedAt: `"now"`, "/metadata/annotations/x": `"b"`},
			want: "recreate: annotation x added"},
		"not listed": {base: plain, after: edits{restartedAt: `"1"`},
			rules: &inplace.Rules{Restart: []string{"checksum/config"}},
			want:  "recreate: annotation kubectl.kubernetes.io/restartedAt added (with annotation stayput.dev/restart-annotations=kubectl.kubernetes.io/restartedAt containers restart in their pods)"},
		"init containers": {after: edits{restartedAt: `"now"`},
			want: "recreate: init container setup would not run again"},
		"sidecars": {base: edits{"/spec/initContainers": `[{"name":"side","image":"side:1","restartPolicy":"Always"}]`},
			after: edits{restartedAt: `"now"`}, want: "in place: restarts app, proxy, side"},
		"always pulled, in full": {base: plain, before: edits{newImage: `"r.io/app:1"`, "/spec/containers/0/imagePullPolicy": `"Always"`},
			after: edits{restartedAt: `"now"`, newImage: `"r.io/app:1"`, "/spec/containers/0/imagePullPolicy": `"Always"`},
			want:  "recreate: container app has imagePullPolicy Always, and its image r.io/app:1 has no other name that would make it restart"},
		"always pulled, in short": {base: edits{"/spec/initContainers": "", "/spec/containers/0/imagePullPolicy": `"Always"`},
			after: edits{restartedAt: `"now"`},
			want:  "in place: restarts app, proxy"},
		"a digest alone": {base: edits{"/spec/initContainers": "", newImage: `"r.io/app` + digest + `"`}, after: edits{restartedAt: `"now"`},
			want: "recreate: image r.io/app" + digest + " of container app has no other name that would make it restart"},
		"an image that is no name": {base: edits{"/spec/initContainers": "", newImage: `"App"`, "/spec/containers/0/imagePullPolicy": `"Always"`},
			after: edits{restartedAt: `"now"`},
			want:  "recreate: image App of container app has no other name that would make it restart"},
		"an image that admission sets": {base: edits{"/spec/initContainers": "", newImage: `""`}, after: edits{restartedAt: `"now"`},
			want: "in place: restarts app, proxy"},
		"along with a digest alone": {base: plain, after: edits{restartedAt: `"now"`, newImage: `"r.io/app` + digest + `"`},
			want: "in place: restarts app, proxy"},
		"one container beside a digest alone": {base: edits{newImage: `"r.io/app` + digest + `"`}, after: edits{restartOf + "proxy": `"now"`},
			rules: &inplace.Rules{}, want: "in place: restarts proxy"},
		"one container": {base: plain, after: edits{restartOf + "proxy": `"now"`}, rules: &inplace.Rules{}, want: "in place: restarts proxy"},
		"one container, again": {base: plain, before: edits{restartOf + "proxy": `"then"`}, after: edits{restartOf + "proxy": `"now"`},
			rules: &inplace.Rules{}, want: "in place: restarts proxy"},
		"one container, undone": {base: plain, before: edits{restartOf + "proxy": `"then"`}, rules: &inplace.Rules{},
			want: "in place: restarts proxy"},
		"two of three": {after: edits{restartOf + "side": `"now"`, restartOf + "app": `"now"`}, rules: &inplace.Rules{},
			want: "in place: restarts app, side"},
		"one container beside all others": {base: plain, after: edits{restartOf + "proxy": `"now"`, restartedAt: `"now"`},
			want: "in place: restarts app, proxy"},
		"one container beside an image": {base: plain, after: edits{restartOf + "proxy": `"now"`, newImage: `"app:2"`},
			rules: &inplace.Rules{}, want: "in place: restarts app, proxy"},
		"one container, and init containers make pods new": {after: edits{restartOf + "app": `"now"`},
			rules: &inplace.Rules{InitContainers: true},
			want:  `recreate: init container setup would not run again, and annotation stayput.dev/init-containers is "native"`},
		"a container that is not there": {after: edits{restartOf + "ghost": `"now"`}, rules: &inplace.Rules{},
			want: "recreate: annotation restart.stayput.dev/ghost added (the template has no container or sidecar ghost to restart)"},
		"an init container": {after: edits{restartOf + "setup": `"now"`}, rules: &inplace.Rules{},
			want: "recreate: annotation restart.stayput.dev/setup added (the template has no container or sidecar setup to restart)"},
		"one container without another name": {base: edits{newImage: `"r.io/app` + digest + `"`}, after: edits{restartOf + "app": `"now"`},
			rules: &inplace.Rules{}, want: "recreate: image r.io/app" + digest + " of container app has no other name that would make it restart"},
		"startup probe of another container": {base: edits{"/spec/containers/1/startupProbe": probe}, after: edits{restartOf + "app": `"now"`},
			rules: &inplace.Rules{}, want: "in place: restarts app"},
		"startup probe": {base: edits{"/spec/initContainers": "", "/spec/containers/1/startupProbe": probe}, after: edits{restartedAt: `"now"`},
			want: "recreate: container proxy has a startup probe but no readiness probe"},
	} {
		rules := inPlaceRestarts
		if test.rules != nil {
			rules = *test.rules
		}
		change := Compare(edited(t, test.base, test.before), edited(t, test.base, test.after), rules)
		if got := change.String(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

// TestRestartComesWithAnImage: a change has both an image and a restart, since a pod may have the other image already.
func TestRestartComesWithAnImage(t *testing.T) {
	plain := edits{"/spec/initContainers": ""}
	for _, image := range []string{"app:2", "docker.io/library/app:1"} {
		for _, restarts := range []bool{true, false} {
			after := edits{newImage: `"` + image + `"`}
			if restarts {
				after[restartedAt] = `"now"`
			}
			change := Compare(edited(t, plain, edits{newImage: `"app:1"`}), edited(t, plain, after), inPlaceRestarts)
			if app := change.Containers.of("app"); !app.NewImage() || app.Restart != restarts {
				t.Errorf("%s, restarted %t: %+v", image, restarts, app)
			}
		}
	}
}

func TestNamesOf(t *testing.T) {
	one, other := sample.Digests[0], sample.Digests[1]
	for _, test := range []struct {
		image, running string
		always         bool
		want           []string
	}{
		{"app:1", "docker.io/library/app" + one, false, []string{"app:1", "app:1" + one, "docker.io/library/app:1"}},
		{"app", "docker.io/library/app" + one, false, []string{"app", "app:latest" + one, "docker.io/library/app:latest"}},
		{"localhost:5000/app", "localhost:5000/app" + one, false,
			[]string{"localhost:5000/app", "localhost:5000/app:latest" + one, "localhost:5000/app:latest"}},
		{"app:1" + one, "", false, []string{"app:1" + one, "app" + one, "docker.io/library/app:1" + one}},
		{"app", "", false, []string{"app", "docker.io/library/app:latest"}},
		{"r.io/app:1", "r.io/app" + one, false, []string{"r.io/app:1", "r.io/app:1" + one, "r.io/app:1"}},
		{"r.io/app:1", "docker-pullable://r.io/app" + one, false, []string{"r.io/app:1", "r.io/app:1" + one, "r.io/app:1"}},
		{"r.io/app:1", "r.io/app" + one, true, []string{"r.io/app:1", "r.io/app:1"}},
		{"r.io/app:1", "r.io/another" + one, false, []string{"r.io/app:1", "r.io/app:1"}},
		{"r.io/app:1", one[1:], false, []string{"r.io/app:1", "r.io/app:1"}}, // an ID, not a name
		{"app:1", "quay.io/library/app" + one, false, []string{"app:1"}},
		{"r.io/app:1" + one, "r.io/app" + other, true, []string{"r.io/app:1" + one, "r.io/app" + one, "r.io/app:1" + one}},
		{"app" + one, "", false, []string{"app" + one, "docker.io/library/app" + one}},
		{"App", "", false, []string{"App"}},
		{"r.io/app:latest", "r.io/app" + one, true, []string{"r.io/app:latest", "r.io/app:latest", "r.io/app"}},
		{"r.io/app", "r.io/app" + one, true, []string{"r.io/app", "r.io/app:latest", "r.io/app"}},
		{"docker.io/library/app:1", "docker.io/library/app" + one, true,
			[]string{"docker.io/library/app:1", "docker.io/library/app:1", "docker.io/app:1"}},
		{"docker.io/me/app:1", "docker.io/me/app" + one, true, []string{"docker.io/me/app:1", "docker.io/me/app:1"}},
	} {
		got := namesOf(test.image, test.running, test.always)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s, running %s, always %t: %q, want %q", test.image, test.running, test.always, got, test.want)
		}
		for _, name := range got {
			if !IsNameOf(name, test.image) {
				t.Errorf("%s is not known as a name of %s", name, test.image)
			}
		}
	}
}

func TestIsNameOf(t *testing.T) {
	one, other := sample.Digests[0], sample.Digests[1]
	for _, test := range []struct {
		name, image string
		want        bool
	}{
		{"app:1", "app:2", false},
		{"r.io/app:1" + one, "r.io/app:2", false},
		{"r.io/app:1", "r.io/app:1" + one, false},
		{"r.io/app:1" + other, "r.io/app:1" + one, false},
		{"r.io/app:2" + one, "r.io/app:1" + one, false},
		{"r.io/app" + one, "r.io/app:1", false}, // the tag is unknown
		{"r.io/app:1", "app:1", false},
		{"App", "App", true},
		{"App", "app", false},
		{"", "app", false},
	} {
		if got := IsNameOf(test.name, test.image); got != test.want {
			t.Errorf("%q a name of %q: %t", test.name, test.image, got)
		}
	}
}

// TestBecoming turns a pod with the images app and side into a pod of another template.
func TestBecoming(t *testing.T) {
	one := sample.Digests[0]
	running := func(container string) string { return "r.io/" + container + one }
	restart := func(container string) ContainerChange { return ContainerChange{Container: container, Restart: true} }
	image := func(container, from, to string) ContainerChange {
		return ContainerChange{Container: container, Image: ImageChange{From: from, To: to}}
	}
	both := func(change ContainerChange) ContainerChange {
		change.Restart = true
		return change
	}
	for name, test := range map[string]struct {
		app, becomes string
		change       ContainerChanges
		want         ContainerChanges
	}{
		"nothing":                     {app: "r.io/app:1", becomes: "r.io/app:1"},
		"nothing, under another name": {app: "r.io/app:1" + one, becomes: "r.io/app:1"},
		"a restart": {app: "r.io/app:1", becomes: "r.io/app:1", change: ContainerChanges{restart("app")},
			want: ContainerChanges{both(image("app", "r.io/app:1", "r.io/app:1"+one))}},
		"another restart": {app: "r.io/app:1" + one, becomes: "r.io/app:1", change: ContainerChanges{restart("app")},
			want: ContainerChanges{both(image("app", "r.io/app:1"+one, "r.io/app:1"))}},
		"a restart of what runs another image": {app: "r.io/app:0", becomes: "r.io/app:1", change: ContainerChanges{restart("app")},
			want: ContainerChanges{image("app", "r.io/app:0", "r.io/app:1")}},
		"a restart without another name": {app: "r.io/other:1", becomes: "r.io/other:1", change: ContainerChanges{restart("app")},
			want: ContainerChanges{restart("app")}},
		"an image": {app: "r.io/app:1" + one, becomes: "r.io/app:2", change: ContainerChanges{image("app", "r.io/app:1", "r.io/app:2")},
			want: ContainerChanges{image("app", "r.io/app:1"+one, "r.io/app:2")}},
		"an image that is written otherwise": {app: "app:1", becomes: "docker.io/library/app:1",
			change: ContainerChanges{image("app", "app:1", "docker.io/library/app:1")},
			want:   ContainerChanges{image("app", "app:1", "docker.io/library/app:1")}},
		"an image that is written as it has it, and a restart": {app: "docker.io/library/app:1", becomes: "docker.io/library/app:1",
			change: ContainerChanges{both(image("app", "app:1", "docker.io/library/app:1"))},
			want:   ContainerChanges{restart("app")}},
		"an image that is written otherwise, and a restart": {app: "app:1", becomes: "docker.io/library/app:1",
			change: ContainerChanges{both(image("app", "app:1", "docker.io/library/app:1"))},
			want:   ContainerChanges{image("app", "app:1", "docker.io/library/app:1")}},
		"a digest that is taken off, and a restart": {app: "r.io/app:1" + one, becomes: "r.io/app:1",
			change: ContainerChanges{both(image("app", "r.io/app:1"+one, "r.io/app:1"))},
			want:   ContainerChanges{image("app", "r.io/app:1"+one, "r.io/app:1")}},
		"another image that it has, and a restart": {app: "r.io/app:2", becomes: "r.io/app:2",
			change: ContainerChanges{both(image("app", "r.io/app:1", "r.io/app:2"))},
			want:   ContainerChanges{both(image("app", "r.io/app:2", "r.io/app:2"+one))}},
		"a digest that it has, and a restart": {app: "r.io/app:1" + one, becomes: "r.io/app:1" + one,
			change: ContainerChanges{both(image("app", "r.io/app:1", "r.io/app:1"+one))},
			want:   ContainerChanges{both(image("app", "r.io/app:1"+one, "r.io/app"+one))}},
		"an image that it has": {app: "r.io/app:2", becomes: "r.io/app:2", change: ContainerChanges{image("app", "r.io/app:1", "r.io/app:2")}},
		"an image, and a restart of the other": {app: "r.io/app:1", becomes: "r.io/app:2",
			change: ContainerChanges{image("app", "r.io/app:1", "r.io/app:2"), restart("side")},
			want:   ContainerChanges{image("app", "r.io/app:1", "r.io/app:2"), both(image("side", "r.io/side:1", "r.io/side:1"+one))}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "injected", Image: "mesh:1"},
			{Name: "app", Image: test.app}, {Name: "side", Image: "r.io/side:1"}}}}
		template := []corev1.Container{{Name: "app", Image: test.becomes}, {Name: "side", Image: "r.io/side:1"}}
		if got := test.change.ChangesTo(pod, template, running, Nothing); !slices.Equal(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestDiffering: a pod that goes back gets exactly what its own revision says. If that is only another name of the image that it has, its
// containers have restarted for nothing but that name, and restart once more.
func TestDiffering(t *testing.T) {
	const plain = "r.io/app:1"
	one := plain + sample.Digests[0]
	for name, test := range map[string]struct {
		has, gets     string
		left, restart bool
	}{
		"the same":          {plain, plain, false, false},
		"another image":     {"r.io/app:2", plain, true, false},
		"without a digest":  {one, plain, true, true},
		"with a digest":     {plain, one, true, true},
		"in another form":   {"app:1", "docker.io/library/app:1", true, true},
		"admission sets it": {plain, "", false, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: test.has}}}}
		var want ContainerChanges
		if test.left {
			want = ContainerChanges{{Container: "app", Image: ImageChange{From: test.has, To: test.gets}, Restart: test.restart}}
		}
		if got := Differing(pod, []corev1.Container{{Name: "app", Image: test.gets}}, Nothing); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestRenaming: a container whose variables read what goes back restarts for that, by another name of its image. It has one change at
// most, or it would get only one of two.
func TestRenaming(t *testing.T) {
	one := sample.Digests[0]
	resize := ResourceChange{From: Amounts{CPURequest: "100m"}, To: Amounts{CPURequest: "200m"}}
	renamed := ImageChange{From: "r.io/app:1", To: "r.io/app:1" + one}
	resizes, back := ContainerChange{Resources: resize}, ContainerChange{Image: ImageChange{"r.io/app:1", "r.io/app:0"}}
	other := ContainerChange{Container: "side", Resources: resize}
	for name, test := range map[string]struct {
		image        string
		change, want ContainerChange
	}{
		"nothing else":                {"r.io/app:1", ContainerChange{}, ContainerChange{Image: renamed, Restart: true}},
		"it is resized":               {"r.io/app:1", resizes, ContainerChange{Image: renamed, Resources: resize, Restart: true}},
		"it gets an image already":    {"r.io/app:1", back, back},
		"its image has no other name": {"App", resizes, resizes},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: test.image}, {Name: "side"}}}}
			changes := ContainerChanges{other}
			test.want.Container = "app"
			if test.change.Left() {
				test.change.Container = "app"
				changes = append(changes, test.change)
			}
			runs := func(string) string { return "r.io/app" + one }
			got := changes.Renaming(pod, []corev1.Container{{Name: "app"}, {Name: "gone"}}, runs)
			if !slices.Equal(got, ContainerChanges{other, test.want}) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestRestartOf: the container of one pod gets another name of the image that it has, never another image.
func TestRestartOf(t *testing.T) {
	one := sample.Digests[0]
	side := corev1.Container{Name: "side", Image: "r.io/app:1" + one}
	for name, test := range map[string]struct{ has, template, gets string }{
		"as its template has it":      {"r.io/app:1", "r.io/app:1", "r.io/app:1" + one},
		"restarted before":            {"r.io/app:1" + one, "r.io/app:1", "r.io/app:1"},
		"admission set another image": {"mirror.io/app:1", "r.io/app:1", ""},
		"no other name":               {"App", "App", ""},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: test.has}}}}
		template := []corev1.Container{{Name: "app", Image: test.template}, side}
		want := ContainerChange{Container: "app", Restart: true}
		if test.gets != "" {
			want.Image = ImageChange{From: test.has, To: test.gets}
		}
		if got := RestartOf(pod, template, "app", "r.io/app"+one); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestForbidsRestart: only what is true of that container of the pod keeps it from restarting.
func TestForbidsRestart(t *testing.T) {
	spec := corev1.PodSpec{InitContainers: []corev1.Container{{Name: "setup"}},
		Containers: []corev1.Container{{Name: "slow", StartupProbe: &corev1.Probe{}}, {Name: "app"}}}
	for name, test := range map[string]struct {
		container string
		rules     inplace.Rules
		want      string
	}{
		"it may":                 {"app", inplace.Rules{}, ""},
		"it has a startup probe": {"slow", inplace.Rules{}, "container slow has a startup probe but no readiness probe"},
		"there is none":          {"ghost", inplace.Rules{}, "the pod has no container or sidecar ghost"},
		"an init container":      {"setup", inplace.Rules{}, "the pod has no container or sidecar setup"},
		"init containers make it new": {"app", inplace.Rules{InitContainers: true},
			`init container setup would not run again, and annotation stayput.dev/init-containers is "native"`},
	} {
		if got := ForbidsRestart(&spec, test.container, test.rules).String(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestInitContainersThatDoNotRunAgain: users are told of them where containers restart in their pods, and only there.
func TestInitContainersThatDoNotRunAgain(t *testing.T) {
	for name, test := range map[string]struct {
		after edits
		want  string
	}{
		"an image":           {edits{newImage: `"app:2"`}, "init container setup does not run again"},
		"a label":            {edits{version: `"2"`}, ""},
		"an image and ports": {edits{newImage: `"app:2"`, "/spec/containers/0/ports": ""}, ""},
	} {
		if got := Compare(edited(t), edited(t, test.after), inplace.Rules{}).InitContainersNotRerun; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestRestartedMidUpdate checks what remains of a change after the containers have restarted for it.
func TestRestartedMidUpdate(t *testing.T) {
	image := ContainerChange{Container: "app", Image: ImageChange{From: "app:1", To: "app:2"}}
	renamed := ContainerChange{Container: "mesh", Image: ImageChange{From: "mesh:1", To: "mesh:2"}, Restart: true}
	change := ContainerChanges{image, {Container: "side", Restart: true}, renamed}.WithoutRestart()
	if !slices.Equal(change, ContainerChanges{image}) {
		t.Errorf("left: %+v", change)
	}
}

// TestUnrestartable: admission may have added an init container that the template does not have.
func TestUnrestartable(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "vault"}}
	restart := ContainerChanges{{Container: "app", Restart: true}}
	asked := Change{Containers: restart, AsNew: true}
	if reason := asked.Unrestartable(pod); reason == nil || reason.Message != "pod p: init container vault would not run again" {
		t.Errorf("got %v", reason)
	}
	for name, change := range map[string]Change{
		"an image":             {Containers: ContainerChanges{{Container: "app", Image: ImageChange{From: "a", To: "b"}}}, AsNew: true},
		"nothing any more":     {AsNew: true},
		"for a variable alone": {Containers: restart},
	} {
		if change.Unrestartable(pod) != nil {
			t.Errorf("%s: a reason where there is none", name)
		}
	}
	if asked.Unrestartable(&corev1.Pod{}) != nil {
		t.Error("a reason without an init container")
	}
}
