package inplace

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHooksOf(t *testing.T) {
	const lb, shards = PreRestartHookPrefix + "lb", PreRestartHookPrefix + "shards"
	long := strings.TrimSuffix(strings.Repeat("a,", 126), ",")
	for list, want := range map[string]Hooks{
		"lb": {lb}, "shards, lb": {lb, shards}, " lb ,shards ": {lb, shards}, "lb,lb": {lb}, "Aws.lb_1": {PreRestartHookPrefix + "Aws.lb_1"},
		"": nil, ",": nil, "lb,": nil, "lb shards": nil, "example.com/lb": nil, "-lb": nil, "lb\n": nil, "*": nil, "lö": nil,
		strings.Repeat("a", 64): nil, long: nil,
	} {
		if got := HooksOf(map[string]string{AnnotationPreRestartHooks: list}); !slices.Equal(got, want) {
			t.Errorf("%q names %v, want %v", list, got, want)
		}
	}
	if got := HooksOf(nil); got != nil {
		t.Errorf("without the annotation it names %v", got)
	}
}

func TestHooksOnAPod(t *testing.T) {
	hooks := HooksOf(map[string]string{AnnotationPreRestartHooks: "lb, shards"})
	for _, c := range []struct {
		pod  map[string]string
		want string
	}{
		{map[string]string{"lb": "", PreRestartHookPrefix + "other": ""}, "annotations "},
		{map[string]string{PreRestartHookPrefix + "lb": ""}, "annotation pre-restart.hook.stayput.dev/lb"},
		{map[string]string{PreRestartHookPrefix + "lb": "false", PreRestartHookPrefix + "shards": "me"},
			"annotations pre-restart.hook.stayput.dev/lb, pre-restart.hook.stayput.dev/shards"},
	} {
		if got := hooks.On(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.pod}}).String(); got != c.want {
			t.Errorf("%v: %q, want %q", c.pod, got, c.want)
		}
	}
}
