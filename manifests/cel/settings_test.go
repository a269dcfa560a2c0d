package cel

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/stayput/stayput/inplace"
)

// TestListsAreRejectedByTheRule checks that the policy rejects exactly the lists of annotations that Stayput would ignore.
func TestListsAreRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	long := func(name, count int) string { return strings.Repeat(strings.Repeat("a", name)+",", count-1) + "a" }
	for _, list := range []string{
		"note", "a/b", "example.com/note, other.example.com/*", " a ,\nb/c\t", "Example.COM/A_b.c", "a.b-c/*", long(1, 2000), long(63, 20),
		strings.Repeat("a", 253) + "/a", "kubernetes.io", "notstayput.dev/a", "x.kubernetes.io/*", "kubectl.kubernetes.io/default-container",
		"", ",", "a,", "a,,b", "*", "/*", "/a", "a/", "a*", "a/b*", "a*/*", "a/*/*", "a/b/c", "a b", "-a", "a-", "a..b/c", "a_b/c", "ä", "a/**",
		strings.Repeat("a", 64), strings.Repeat("a", 254) + "/a", long(1, 2050), "a\x00b",
		"stayput.dev/decision", "stayput.dev/*", "a, stayput.dev/any", "restart.stayput.dev/app", "restart.stayput.dev/*", "kubernetes.io/config.mirror", "kubernetes.io/*",
		"container.apparmor.security.beta.kubernetes.io/app", "container.apparmor.security.beta.kubernetes.io/*",
		"kubectl.kubernetes.io/restartedAt", "kubectl.kubernetes.io/*",
		"controller.kubernetes.io/*", "controller.kubernetes.io/pod-deletion-cost",
	} {
		for _, annotation := range []string{inplace.AnnotationInPlaceAnnotations, inplace.AnnotationRestartAnnotations} {
			workload := withLists(map[string]string{annotation: list})
			refused := policy.of(withLists(nil), workload, &corev1.Namespace{}, &user.DefaultInfo{})
			flaw := inplace.Rules{}.For(workload.Annotations).Flaw
			if (refused != "") != (flaw != nil) {
				t.Errorf("%s %.100q is refused with %q, and the rule says %v", annotation, list, refused, flaw)
			}
			if refused != "" && !strings.Contains(refused, "annotation "+annotation) && !strings.ContainsAny(list, "\n") {
				t.Errorf("%s %.100q is refused with %q, which does not say what is wrong", annotation, list, refused)
			}
			if again := policy.of(workload, workload.DeepCopy(), &corev1.Namespace{}, &user.DefaultInfo{}); again != "" {
				t.Errorf("%s %.100q is refused again: %s", annotation, list, again)
			}
		}
	}
}

// TestOfTwoListsTheFlawedOneIsRejected checks that the policy names the list with the flaw, also if both lists are as large as they may be.
func TestOfTwoListsTheFlawedOneIsRejected(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	long := strings.Repeat("a,", 2000) + "a"
	for want, workload := range map[string]*appsv1.DaemonSet{
		"": withLists(map[string]string{inplace.AnnotationInPlaceAnnotations: long, inplace.AnnotationRestartAnnotations: long}),
		inplace.AnnotationInPlaceAnnotations: withLists(map[string]string{
			inplace.AnnotationInPlaceAnnotations: "*", inplace.AnnotationRestartAnnotations: long}),
		inplace.AnnotationRestartAnnotations: withLists(map[string]string{
			inplace.AnnotationInPlaceAnnotations: long, inplace.AnnotationRestartAnnotations: "kubernetes.io/*"}),
	} {
		refused := policy.of(withLists(nil), workload, &corev1.Namespace{}, &user.DefaultInfo{})
		if (refused != "") != (want != "") || !strings.Contains(refused, want) {
			t.Errorf("refused with %q, want %q", refused, want)
		}
	}
}

func withLists(annotations map[string]string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "any", Annotations: annotations}}
}

// TestPartitionsAreRejectedByTheRule checks that the policy rejects exactly the values that Stayput cannot read. For such a value, it would
// keep all pods at the partition.
func TestPartitionsAreRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	for _, value := range []string{
		"0", "1", "007", "999999999", "0%", "9%", "05%", "99%", "100%",
		"", " ", "1000000000", "101%", "110%", "200%", "1000%", "001%", "percent", "50 percent", "50-percent",
		"50%", " 5", "5 ", "5\n", "\n5", "5percentpercent", "5Percent", "-1", "+1", "1.5", "1.5%", "1e2", "0x1", "half", "50percent",
		"null", "٣",
	} {
		workload := withLists(nil)
		workload.Annotations = map[string]string{inplace.AnnotationPartition: value}
		refused := policy.of(withLists(nil), workload, &corev1.Namespace{}, &user.DefaultInfo{})
		flaw := inplace.PartitionOf(workload.Annotations).Flaw()
		if (refused != "") != (flaw != "") {
			t.Errorf("%q is refused with %q, and the rule says %q", value, refused, flaw)
		}
		if refused != "" && !strings.Contains(refused, "annotation "+inplace.AnnotationPartition) && !strings.ContainsAny(value, "\n") {
			t.Errorf("%q is refused with %q, which does not say what is wrong", value, refused)
		}
		if again := policy.of(workload, workload.DeepCopy(), &corev1.Namespace{}, &user.DefaultInfo{}); again != "" {
			t.Errorf("%q is refused again: %s", value, again)
		}
	}
}

// TestLabelsAreRejected checks one valid and one invalid value of each label. A policy that does not compile would let every value pass,
// because its failurePolicy is Ignore; in this test it would refuse every value.
func TestLabelsAreRejected(t *testing.T) {
	for _, test := range []struct{ policy, label, right, wrong string }{
		{"stayput-namespaces", inplace.LabelUpdate, "in-place", "native"},
		{"stayput-workloads", inplace.LabelUpdate, "native", "inplace"},
		{"stayput-namespaces", inplace.LabelKinds, "deployments.statefulsets", "statefulsets.deployments"},
		{"stayput-namespaces", inplace.LabelKinds, "daemonsets", "deployments,daemonsets"},
	} {
		policy := compileRefusals(t, "../base/policy.yaml", test.policy)
		for value, want := range map[string]string{test.right: "", test.wrong: "label " + test.label + ": "} {
			workload := withLists(nil)
			workload.Labels = map[string]string{test.label: value}
			refused := policy.of(withLists(nil), workload, &corev1.Namespace{}, &user.DefaultInfo{})
			if (refused != "") != (want != "") || !strings.HasPrefix(refused, want) {
				t.Errorf("%s %s=%s: refused with %q, want %q", test.policy, test.label, value, refused, want)
			}
		}
	}
}

// TestEverySettingHasAForm checks that no setting may have any value.
func TestEverySettingHasAForm(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	for _, setting := range inplace.Annotations {
		refused := policy.of(withLists(nil), withLists(map[string]string{setting.Key: "?"}), &corev1.Namespace{}, &user.DefaultInfo{})
		if want := "annotation " + setting.Key + `: "?" `; !strings.HasPrefix(refused, want) {
			t.Errorf("refused with %q, want %s", refused, want)
		}
	}
}

// TestValuesAreRejectedByTheRule checks that the policy rejects exactly the words, numbers and durations that Stayput would ignore.
func TestValuesAreRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	durations := []string{"0", "500ms", "1.5s", "1m30s", "10m", "11m", "1h30m", "2h", "2h1s", "999999h", "", " 1s", "1",
		"-1s", "1d", "soon", "1s\n"}
	words := []string{"in-place", "native", "respect", "needed", "always", "never", "true", "false", "", "Native", "native ", "native\n"}
	for setting, values := range map[string][]string{
		inplace.AnnotationDrain: durations, inplace.AnnotationPreRestartTimeout: durations,
		inplace.AnnotationSurge: words, inplace.AnnotationResize: words, inplace.AnnotationInitContainers: words,
		inplace.AnnotationDisruptionBudgets:  words,
		inplace.AnnotationPrePullParallelism: {"0", "7", "010", "999", "1000", "1001", "9999", "", "-1", "1.5", "many"},
	} {
		for _, value := range values {
			refusedIfIgnored(t, policy, setting, value, func(annotations map[string]string) bool {
				return len(inplace.InForce(nil, annotations)) == 0
			})
		}
	}
}

// TestLocksAreSettings checks that the list of locks has names of settings only, and may have all.
func TestLocksAreSettings(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	all := []string{"update"}
	for _, setting := range inplace.Annotations {
		all = append(all, strings.TrimPrefix(setting.Key, "stayput.dev/"))
	}
	for list, refuses := range map[string]bool{strings.Join(all, ", "): false, "drain": false, "": true, "drain,": true,
		"stayput.dev/drain": true, "kinds": true, "drains": true, "locked": true} {
		namespace := a("Namespace", "annotation stayput.dev/locked="+list)
		if refused := policy.of(a("Namespace"), namespace, &corev1.Namespace{}, &user.DefaultInfo{}); (refused != "") != refuses {
			t.Errorf("%q is refused with %q", list, refused)
		}
	}
}

// TestLockedSettingsAreRefused checks that workloads get no setting anew that their namespace locks, and are not stuck
// with one that they have.
func TestLockedSettingsAreRefused(t *testing.T) {
	locking := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{
		inplace.AnnotationLocked: "update, drain,maintenance-window"}}}
	policies := map[string]refusals{}
	for _, name := range []string{"stayput-settings", "stayput-workloads"} {
		policies[name] = compileRefusals(t, "../base/policy.yaml", name)
	}
	for _, test := range []struct{ policy, had, has, refused string }{
		{"stayput-settings", "", "annotation stayput.dev/drain=5s", "annotation stayput.dev/drain: namespace "},
		{"stayput-settings", "annotation stayput.dev/drain=4s", "annotation stayput.dev/drain=5s", "annotation stayput.dev/drain: namespace "},
		{"stayput-settings", "annotation stayput.dev/drain=5s", "annotation stayput.dev/drain=5s", ""},
		{"stayput-settings", "annotation stayput.dev/drain=5s", "annotation stayput.dev/surge=never", ""},
		{"stayput-settings", "annotation stayput.dev/drain=5s", "annotation other=1", ""},
		{"stayput-workloads", "", "label stayput.dev/update=native", "label stayput.dev/update: namespace "},
		{"stayput-workloads", "label stayput.dev/update=native", "label stayput.dev/update=native", ""},
		{"stayput-workloads", "label stayput.dev/update=native", "label app=web", ""},
	} {
		before := a("Deployment")
		if test.had != "" {
			before = a("Deployment", test.had)
		}
		refused := policies[test.policy].of(before, a("Deployment", test.has), locking, &user.DefaultInfo{})
		if !strings.HasPrefix(refused, test.refused) || (refused == "") != (test.refused == "") {
			t.Errorf("%s after %q: %q, want %q", test.has, test.had, refused, test.refused)
		}
	}
	after := a("Namespace", "annotation stayput.dev/drain=5s")
	if refused := policies["stayput-settings"].of(a("Namespace"), after, locking, &user.DefaultInfo{}); refused != "" {
		t.Errorf("the namespace itself is refused its value: %s", refused)
	}
}

// TestSelectorsAreRejectedByTheRule checks that the policy rejects exactly the selectors that Stayput would ignore.
func TestSelectorsAreRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	for _, selector := range []string{
		"role=leader", "role==leader", "role != leader", "role", "!role", "! role", " role = leader , a.b-c.io/zone in (a, b) ", "role notin (a)",
		"patroni.dynamic.io/Role=Leader_1.x", "role=" + strings.Repeat("a", 63), strings.Repeat("a,", 124) + "ab",
		"", " ", ",", "role=", "=leader", "role=leader,", ",role", "role in leader", "role in ()", "role in (a", "role=a b", "!role=a", "!", "*",
		"role>1", "Example.com/a=b", "a/b/c=d", "/a=b", "a/=b", "role=-a", "role=a-", "-role", "role=ä", "role=a\n", "\nrole", "role in (a,)",
		"role\t=a", "role=" + strings.Repeat("a", 64), strings.Repeat("a,", 125) + "a",
	} {
		refusedIfIgnored(t, policy, inplace.AnnotationUpdateLast, selector, func(annotations map[string]string) bool {
			return inplace.UpdateLastOf(annotations).None()
		})
		refusedIfIgnored(t, policy, inplace.AnnotationCanaryNodes, selector, func(annotations map[string]string) bool {
			return inplace.NodeOrderOf(annotations).None()
		})
	}
}

// TestTopologyKeysAreRejectedByTheRule checks that the policy rejects exactly the keys that Stayput would ignore.
func TestTopologyKeysAreRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	for _, key := range []string{
		"zone", "topology.kubernetes.io/zone", "Rack_1.x", strings.Repeat("a", 63), strings.Repeat("a", 186) + "/" + strings.Repeat("b", 63),
		"", " ", "zone ", " zone", "zone,rack", "zone=a", "!zone", "/zone", "zone/", "a/b/c", "Example.com/zone", "-zone", "zone-", "zöne",
		"zone\n", strings.Repeat("a", 64), strings.Repeat("a", 187) + "/" + strings.Repeat("b", 63),
	} {
		refusedIfIgnored(t, policy, inplace.AnnotationUpdateByTopology, key, func(annotations map[string]string) bool {
			return inplace.NodeOrderOf(annotations).None()
		})
	}
}

// TestHooksAreRejectedByTheRule checks that the policy rejects exactly the lists of hooks that Stayput would ignore.
func TestHooksAreRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	for _, list := range []string{
		"lb", "lb, shards", " lb ,shards ", "lb,lb", "Aws.lb_1", strings.Repeat("a", 63), strings.Repeat("a,", 124) + "ab",
		"", " ", ",", "lb,", ",lb", "lb shards", "example.com/lb", "pre-restart.hook.stayput.dev/lb", "-lb", "lb-", "*", "lö", "lb\n", "lb,\tshards",
		strings.Repeat("a", 64), strings.Repeat("a,", 125) + "a",
	} {
		refusedIfIgnored(t, policy, inplace.AnnotationPreRestartHooks, list, func(annotations map[string]string) bool {
			return len(inplace.HooksOf(annotations)) == 0
		})
	}
}

// TestWindowsAreRejectedByTheRule checks that the policy rejects the windows that Stayput finds invalid, apart from the names of zones.
func TestWindowsAreRejectedByTheRule(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	for _, window := range []string{
		"always", " always ", "02:00-04:00", "Sat 02:00-04:00 Europe/Berlin", "Mon-Fri,Sun 22:00-02:00 ; 12:00-24:00 UTC", "Fri-Mon 00:00-24:00",
		"Sat  02:00-04:00  Etc/GMT+1",
		"", " ", "never", "Always", "Sat", "Sat 02:00", "Sat 2:00-4:00", "Sat 02:00-25:00", "Sat 24:00-02:00", "Sat 02:60-03:00", "sat 02:00-04:00",
		"Sat Sun 02:00-04:00", "Sat, Sun 02:00-04:00", "Sat 02:00 - 04:00", "02:00-04:00;", ";02:00-04:00", "always;02:00-04:00",
		"02:00-04:00 Europe Berlin", "02:00-04:00 ../etc", "02:00-04:00\n", "02:00-04:00" + strings.Repeat(" ", 240),
	} {
		refusedIfIgnored(t, policy, inplace.AnnotationMaintenanceWindow, window, func(annotations map[string]string) bool {
			kept, _ := inplace.WindowOf(annotations).Keeping(inplace.Partition{}, time.Time{})
			return kept.WindowFlaw != ""
		})
	}
}

// refusedIfIgnored checks that the policy refuses the value of the annotation, says why, and lets it be where it is stored already; or that
// the value is not ignored.
func refusedIfIgnored(t *testing.T, policy refusals, annotation, value string, ignored func(annotations map[string]string) bool) {
	t.Helper()
	workload := withLists(map[string]string{annotation: value})
	refused := policy.of(withLists(nil), workload, &corev1.Namespace{}, &user.DefaultInfo{})
	if none := ignored(workload.Annotations); (refused != "") != none {
		t.Errorf("%s %q is refused with %q, and ignored: %t", annotation, value, refused, none)
	}
	if refused != "" && !strings.Contains(value, "\n") && !strings.HasPrefix(refused, "annotation "+annotation+": ") {
		t.Errorf("%s %q is refused with %q, which does not say what is wrong", annotation, value, refused)
	}
	if again := policy.of(workload, workload.DeepCopy(), &corev1.Namespace{}, &user.DefaultInfo{}); again != "" {
		t.Errorf("%s %q is refused again: %s", annotation, value, again)
	}
}

// TestStatefulSetsHaveAPartitionOfTheirOwn checks that the label is refused on a StatefulSet, and says what to use instead.
func TestStatefulSetsHaveAPartitionOfTheirOwn(t *testing.T) {
	policy := compileRefusals(t, "../base/policy.yaml", "stayput-settings")
	for kind, refuses := range map[string]bool{"StatefulSet": true, "DaemonSet": false, "Deployment": false} {
		before := withLists(nil)
		before.Kind = kind
		after := before.DeepCopy()
		after.Annotations = map[string]string{inplace.AnnotationPartition: "1"}
		refused := policy.of(before, after, &corev1.Namespace{}, &user.DefaultInfo{})
		if strings.Contains(refused, "spec.updateStrategy.rollingUpdate.partition") != refuses || (refused != "") != refuses {
			t.Errorf("on a %s it is refused with %q", kind, refused)
		}
	}
}
