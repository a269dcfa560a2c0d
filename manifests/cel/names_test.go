package cel

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
)

// own are the names that Stayput sets on objects other than workloads.
var own = append([]string{inplace.LabelPrePull, inplace.AnnotationMove, inplace.AnnotationRestarts, inplace.AnnotationRestarted,
	inplace.AnnotationSurgePod, inplace.AnnotationNudged}, inplace.Marks...)

// namesInGo returns the names of labels and annotations in package inplace that are for users, as "label key" or "annotation key".
func namesInGo(t *testing.T) (names []string) {
	t.Helper()
	files, _ := filepath.Glob("../../inplace/*.go")
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			literal, is := spec.Values[0].(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			if key, err := strconv.Unquote(literal.Value); err == nil && regexp.MustCompile(`^([a-z.-]+\.)?stayput\.dev/[a-z-]*$`).MatchString(key) {
				sort := map[bool]string{true: "label ", false: "annotation "}[strings.HasPrefix(spec.Names[0].Name, "Label")]
				if !slices.Contains(own, key) {
					names = append(names, sort+key)
				}
			}
			return true
		})
	}
	return names
}

// countsIn returns where each name counts, as the policy says.
func countsIn(t *testing.T) map[string][]string {
	t.Helper()
	counts := map[string][]string{}
	for _, variable := range validatingSpec(t, "../base/policy.yaml", "stayput-names").Variables {
		if variable.Name != "counts" {
			continue
		}
		for _, entry := range regexp.MustCompile(`"([^"]+)": \[([^\]]+)\]`).FindAllStringSubmatch(variable.Expression, -1) {
			counts[entry[1]] = strings.Split(strings.ReplaceAll(entry[2], `"`, ""), ", ")
		}
	}
	return counts
}

// TestNamesAreThoseOfTheProgram checks that the policy knows each name that the program has, as what it is, and no other one.
func TestNamesAreThoseOfTheProgram(t *testing.T) {
	got, want := slices.Sorted(maps.Keys(countsIn(t))), slices.Sorted(slices.Values(namesInGo(t)))
	if !slices.Equal(got, want) {
		t.Errorf("the policy has\n%s\nand the program\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSettingsCountOnTheirKinds checks that the policy and the program say the same of each setting.
func TestSettingsCountOnTheirKinds(t *testing.T) {
	counts := countsIn(t)
	for _, setting := range inplace.Annotations {
		kinds := setting.Kinds
		if len(kinds) == 0 {
			kinds = []string{"Deployment", "DaemonSet", "StatefulSet"}
		}
		if got, want := counts["annotation "+setting.Key], slices.Concat([]string{"Namespace"}, kinds); !slices.Equal(got, want) {
			t.Errorf("%s counts on %v, and the policy says %v", setting.Key, want, got)
		}
	}
}

// a returns a namespace or workload with these labels and annotations, each as "label key=value" or "annotation key=value". Those that
// begin with "template " are in its template.
func a(kind string, settings ...string) runtime.Object {
	own, template := metav1.ObjectMeta{Name: "any"}, metav1.ObjectMeta{}
	for _, setting := range settings {
		into := &own
		if rest, is := strings.CutPrefix(setting, "template "); is {
			into, setting = &template, rest
		}
		sort, pair, _ := strings.Cut(setting, " ")
		key, value, _ := strings.Cut(pair, "=")
		if sort == "label" {
			metav1.SetMetaDataLabel(into, key, value)
		} else {
			metav1.SetMetaDataAnnotation(into, key, value)
		}
	}
	if kind == "Namespace" {
		return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: own}
	}
	return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind}, ObjectMeta: own,
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: template}}}
}

// managed is a namespace with the label.
var managed = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inplace.LabelUpdate: "in-place"}}}

// TestNamesCountWhereThePolicySays checks each name on each kind, as what it is and as what it is not.
func TestNamesCountWhereThePolicySays(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-names")
	for name, counts := range countsIn(t) {
		for _, kind := range []string{"Namespace", "Deployment", "DaemonSet", "StatefulSet"} {
			key := name[strings.Index(name, " ")+1:]
			if strings.HasSuffix(key, "/") {
				key += "app"
			}
			as, other, what := "label ", "annotation ", "it counts as a label only"
			if strings.HasPrefix(name, "annotation ") {
				as, other, what = other, as, "it counts as an annotation only"
			}
			if told := policy.of(nil, a(kind, as+key+"=1"), managed, &user.DefaultInfo{}); (told != "") == slices.Contains(counts, kind) ||
				told != "" && told != as+key+": it counts on a "+strings.Join(counts, " or ")+" only" {
				t.Errorf("%s on a %s: %q", name, kind, told)
			}
			if told := policy.of(nil, a(kind, other+key+"=1"), managed, &user.DefaultInfo{}); told != other+key+": "+what {
				t.Errorf("the wrong way round, %s on a %s: %q", name, kind, told)
			}
		}
	}
}

// TestWrongSettingsAreTold has settings that new users get wrong, and what they are told.
func TestWrongSettingsAreTold(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-names")
	nothing := ": there is no such setting, so it does nothing; the nearest to "
	for _, test := range []struct {
		kind, setting, want string
	}{
		{"Deployment", "label stayput.dev/partitions=2", "label stayput.dev/partitions" + nothing +
			"stayput.dev/partitions is the annotation stayput.dev/partition"},
		{"Deployment", "label stayput.dev/partition=2", "label stayput.dev/partition: it counts as an annotation only"},
		{"Namespace", "annotation stayput.dev/kinds=statefulsets", "annotation stayput.dev/kinds: it counts as a label only"},
		{"Namespace", "label stayput.dev/maintenance-window=always", "label stayput.dev/maintenance-window: it counts as an annotation only"},
		{"StatefulSet", "annotation stayput.dev/surge=replace", "annotation stayput.dev/surge: it counts on a Namespace or Deployment only"},
		{"StatefulSet", "label stayput.dev/kinds=statefulsets", "label stayput.dev/kinds: it counts on a Namespace only"},

		{"Namespace", "label stayput.dev/kind=statefulsets", "label stayput.dev/kind" + nothing +
			"stayput.dev/kind is the label stayput.dev/kinds"},
		{"Namespace", "label stayput.dev/updates=in-place", "label stayput.dev/updates" + nothing +
			"stayput.dev/updates is the label stayput.dev/update"},
		{"Namespace", "label stayput.dev/Update=in-place", "label stayput.dev/Update" + nothing +
			"stayput.dev/Update is the label stayput.dev/update"},
		{"Namespace", "label stayput.dev/drian=5s", "label stayput.dev/drian" + nothing +
			"stayput.dev/drian is the annotation stayput.dev/drain"},
		{"Deployment", "annotation stayput.dev/prerestart-hook=lb", "annotation stayput.dev/prerestart-hook" + nothing +
			"stayput.dev/prerestart-hook is the annotation stayput.dev/pre-restart-hooks"},
		{"Deployment", "annotation restart.stayput.dev/app=1", "annotation restart.stayput.dev/app: it counts on a pod template only"},
		{"Deployment", "template annotation restart.stayput.dev/app=1", ""},
		{"Deployment", "template annotation stayput.dev/drain=5s",
			"annotation stayput.dev/drain: it counts on a Namespace or Deployment or DaemonSet or StatefulSet only"},
		{"Deployment", "annotation stayput.dev/decision=in place", ""},
		{"Deployment", "annotation notstayput.dev=1", ""},
	} {
		if told := policy.of(nil, a(test.kind, test.setting), managed, &user.DefaultInfo{}); told != test.want {
			t.Errorf("%s with %s: %q, want %q", test.kind, test.setting, told, test.want)
		}
		if told := policy.of(a(test.kind), a(test.kind, test.setting), managed, &user.DefaultInfo{}); told != test.want {
			t.Errorf("%s that gets %s: %q, want %q", test.kind, test.setting, told, test.want)
		}
		if told := policy.of(a(test.kind, test.setting), a(test.kind, test.setting, "label app=web"), managed, &user.DefaultInfo{}); told != "" {
			t.Errorf("%s with %s is told again: %q", test.kind, test.setting, told)
		}
	}
	common := a("Deployment", "annotation stayput.dev/drain=5s", "template annotation stayput.dev/drain=5s")
	if told := policy.of(nil, common, managed, &user.DefaultInfo{}); told != "" {
		t.Errorf("the same annotation on the object and in its template: %q", told)
	}
	two := a("Deployment", "label stayput.dev/drains=5s", "label stayput.dev/surge=needed")
	told := policy.of(nil, two, managed, &user.DefaultInfo{})
	if !strings.Contains(told, "no such setting") || !strings.Contains(told, "as an annotation") {
		t.Errorf("of two wrong settings it tells %q", told)
	}
	long := a("Namespace", "label stayput.dev/"+strings.Repeat("a", 63)+"=1", "label stayput.dev/a=", "annotation stayput.dev/é=1")
	if told := policy.of(nil, long, managed, &user.DefaultInfo{}); !strings.Contains(told, "no such setting") {
		t.Errorf("of odd names it tells %q", told)
	}
}

// TestWorkloadsNeedTheNamespacesLabel checks that who labels the workload only is told what is missing.
func TestWorkloadsNeedTheNamespacesLabel(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-names")
	const missing = "label stayput.dev/update: it counts only where the namespace has the label, too, and till has none"
	till := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "till"}}
	for _, test := range []struct {
		kind, mode string
		in         *corev1.Namespace
		want       string
	}{
		{"Deployment", "in-place", till, missing}, {"Deployment", "native", till, ""}, {"Deployment", "in-place", managed, ""},
		{"Namespace", "in-place", till, ""},
	} {
		if told := policy.of(nil, a(test.kind, "label stayput.dev/update="+test.mode), test.in, &user.DefaultInfo{}); told != test.want {
			t.Errorf("%s with %s in %s: %q, want %q", test.kind, test.mode, test.in.Name, told, test.want)
		}
	}
}
