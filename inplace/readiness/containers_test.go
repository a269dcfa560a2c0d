package readiness_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stayput/stayput/inplace/readiness"
)

func TestSleeps(t *testing.T) {
	hook := func(hook *corev1.LifecycleHandler) *corev1.Lifecycle { return &corev1.Lifecycle{PreStop: hook} }
	for name, test := range map[string]struct {
		lifecycle *corev1.Lifecycle
		want      time.Duration
	}{
		"no hooks":    {nil, 0},
		"no preStop":  {&corev1.Lifecycle{}, 0},
		"a command":   {hook(&corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}), 0},
		"a sleep":     {hook(&corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}), 5 * time.Second},
		"for decades": {hook(&corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: math.MaxInt64}}), math.MaxInt32 * time.Second},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Lifecycle: test.lifecycle}}}}
		if got := readiness.Sleeps(pod, "app"); got != test.want || readiness.Sleeps(pod, "other") != 0 {
			t.Errorf("%s: %s", name, got)
		}
	}
}
