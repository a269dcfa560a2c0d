package edit

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace"
	"github.com/stayput/stayput/inplace/apps"
)

func templateOf(t *testing.T, typed corev1.PodTemplateSpec) apps.Template {
	t.Helper()
	raw, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	template, err := apps.ParseTemplate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// TestCompareKeepsTheFirstReasons compares templates that give more reasons than a message or the memory can hold.
func TestCompareKeepsTheFirstReasons(t *testing.T) {
	const many = 2000
	all := func(many int, change func(typed *corev1.PodTemplateSpec, i int, side string)) (from, to apps.Template) {
		var sides [2]corev1.PodTemplateSpec
		for at, side := range []string{"1", "2"} {
			sides[at].Labels = map[string]string{}
			sides[at].Spec.Containers = []corev1.Container{{Name: "app", Image: "app"}} // the last of the most containers there may be
			for i := range many {
				change(&sides[at], i, side)
			}
		}
		return templateOf(t, sides[0]), templateOf(t, sides[1])
	}
	cases := map[string]func(typed *corev1.PodTemplateSpec, i int, side string){
		"fields": func(typed *corev1.PodTemplateSpec, _ int, side string) {
			typed.Spec.Tolerations = append(typed.Spec.Tolerations, corev1.Toleration{Key: side})
		},
		"containers": func(typed *corev1.PodTemplateSpec, i int, side string) {
			typed.Spec.Containers = append(typed.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", side, i)})
		},
		"init containers": func(typed *corev1.PodTemplateSpec, i int, side string) {
			typed.Spec.InitContainers = append(typed.Spec.InitContainers, corev1.Container{Name: fmt.Sprint(i), Image: side})
		},
		"labels that are all read by every volume": func(typed *corev1.PodTemplateSpec, i int, side string) {
			typed.Labels[fmt.Sprint(i)] = side
			item := corev1.DownwardAPIVolumeFile{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}
			source := &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{item}}
			typed.Spec.Volumes = append(typed.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{DownwardAPI: source}})
		},
		"keys as long as a template": func(typed *corev1.PodTemplateSpec, _ int, side string) {
			typed.Spec.NodeSelector = map[string]string{strings.Repeat("k", 100<<10): side}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			count := many
			if strings.HasSuffix(name, "containers") {
				count = apps.MostContainers - 1
			}
			from, to := all(count, change)
			found := Compare(from, to, inplace.Rules{})
			if found.InPlace() || len(found.Reasons) > inplace.MostReasons {
				t.Errorf("%d reasons", len(found.Reasons))
			}
			if text := found.String(); len(text) > 10_000 {
				t.Errorf("the text of the decision has %d characters", len(text))
			}
		})
	}
}

func TestCompareNamesTheFirstRestarts(t *testing.T) {
	var from, to corev1.PodTemplateSpec
	for i := range apps.MostContainers {
		from.Spec.Containers = append(from.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Image: "1"})
		to.Spec.Containers = append(to.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Image: "2"})
	}
	change := Compare(templateOf(t, from), templateOf(t, to), inplace.Rules{})
	if !change.InPlace() || len(change.Containers) != apps.MostContainers || len(change.String()) > 1000 {
		t.Errorf("%d images, %d characters: %s", len(change.Containers), len(change.String()), change.Reasons)
	}
}

// TestCompareSaysThatContainersAreTooMany compares templates with one container too many. Only whether they differ is compared.
func TestCompareSaysThatContainersAreTooMany(t *testing.T) {
	with := func(image string) apps.Template {
		var typed corev1.PodTemplateSpec
		for i := range apps.MostContainers {
			typed.Spec.Containers = append(typed.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Image: image})
		}
		typed.Spec.InitContainers = []corev1.Container{{Name: "init"}}
		raw, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		var template apps.Template
		if err := json.Unmarshal(raw, &template); err != nil {
			t.Fatal(err)
		}
		return template
	}
	if change := Compare(with("1"), with("1"), inplace.Rules{}); !change.None() {
		t.Errorf("nothing changes: %s", change)
	}
	change := Compare(with("1"), with("2"), inplace.Rules{})
	if change.InPlace() || !strings.Contains(change.String(), "it has 101 containers, more than 100") {
		t.Errorf("an image changes: %s", change)
	}
	if spec := with("1").Decoded().Spec; len(spec.Containers) > 0 {
		t.Errorf("plans get %d containers of the template", len(spec.Containers))
	}
}

// TestCompareTakesWhatTemplatesHave compares lists that are nested a thousand times and differ at the bottom. At each of the lists the
// whole text below it would be read again, and written as JSON: 40 MiB.
func TestCompareTakesWhatTemplatesHave(t *testing.T) {
	nested := func(last string) apps.Template {
		const depth = 1000
		raw := `{"spec":{"x":` + strings.Repeat("[", depth) + strings.Repeat("0,", 5000) + last + strings.Repeat("]", depth) + `}}`
		template, err := apps.ParseTemplate([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return template
	}
	from, to := nested("1"), nested("2")
	var change Change
	if took := allocated(func() { change = compare(from, to, inplace.Rules{}) }); took > 10<<20 {
		t.Errorf("a comparison of two templates take %d KiB", took>>10)
	}
	if len(change.Reasons) != 1 || !strings.HasPrefix(change.Reasons[0].Path, "/spec/x/0/0/0") {
		t.Errorf("found %v", change.Reasons)
	}
}

// TestReasonsBeyondTheLastAreNotSearched has 2,000 volumes that read all of 100 labels that change.
func TestReasonsBeyondTheLastAreNotSearched(t *testing.T) {
	spec, labels := corev1.PodSpec{}, []string{}
	for i := range inplace.MostReasons {
		labels = append(labels, fmt.Sprintf("l%03d", i))
	}
	for range 2000 {
		item := corev1.DownwardAPIVolumeFile{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}
		source := &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{item}}
		spec.Volumes = append(spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{DownwardAPI: source}})
	}
	if allocations := testing.AllocsPerRun(1, func() { downwardReasons(spec, labels, nil) }); allocations > 20_000 {
		t.Errorf("to find %d reasons takes %.0f allocations", inplace.MostReasons, allocations)
	}
}

// allocated returns how many bytes the function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestPathsAreCut, and a path that a newer API server tells may name no init container.
func TestPathsAreCut(t *testing.T) {
	if path := strings.Repeat("x", longestPath); short(path) != path || short(path+"x") != path+"..." {
		t.Errorf("a path is cut at another length than %d", longestPath)
	}
	spec := corev1.PodSpec{InitContainers: []corev1.Container{{Name: "setup"}}}
	for index, want := range map[string]string{"0": "setup", "1": "", "x": ""} {
		if got := initContainer(spec, index).Name; got != want {
			t.Errorf("init container %s is %q", index, got)
		}
	}
}
